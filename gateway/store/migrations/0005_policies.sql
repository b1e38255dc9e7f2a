-- category_actions: JSON, the category to its action.
CREATE TABLE policies (
    id               TEXT    NOT NULL PRIMARY KEY,
    name             TEXT    NOT NULL,
    mode             TEXT    NOT NULL,
    block_score         INTEGER NOT NULL,
    review_score        INTEGER NOT NULL,
    category_actions TEXT    NOT NULL,
    unscannable      TEXT    NOT NULL,
    outbound         TEXT    NOT NULL,
    tool_injection   INTEGER NOT NULL,
    created_at       BIGINT  NOT NULL,
    created_by       TEXT    NOT NULL,
    version          BIGINT  NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX policies_by_folded_name ON policies (lower(name));
ALTER TABLE api_keys ADD COLUMN policy TEXT;
