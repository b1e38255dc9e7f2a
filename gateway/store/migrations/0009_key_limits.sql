-- What an API key may use: globs of models, none for all. lineage: the first key of a row of rotations, so that what
-- holds for a key holds for the one that takes its place.

ALTER TABLE api_keys ADD COLUMN models TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN lineage TEXT;
WITH RECURSIVE chain (key_id, at_id, before_id) AS (
    SELECT id, id, rotated_from FROM api_keys
    UNION ALL
    SELECT chain.key_id, older.id, older.rotated_from
      FROM chain JOIN api_keys AS older ON older.id = chain.before_id
)
UPDATE api_keys
   SET lineage = (SELECT at_id FROM chain WHERE chain.key_id = api_keys.id AND chain.before_id IS NULL);
