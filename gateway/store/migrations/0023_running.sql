-- What a gateway that serves keeps of its settings and facts, without secrets: JSON, for commands that judge it.
CREATE TABLE running_gateways (
    instance_id TEXT   NOT NULL PRIMARY KEY,
    seen_at     BIGINT NOT NULL,
    facts       TEXT   NOT NULL
);

-- Whose settings a run judged: an instance. Empty in older runs.
ALTER TABLE trust_audits ADD COLUMN settings_of TEXT NOT NULL DEFAULT '';
