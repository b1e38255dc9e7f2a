-- A value stands in one form for each type, so that two entries that mean the same are equal.
-- scope: global, or the id of the one key the entry is about.
CREATE TABLE access_entries (
    id         TEXT   NOT NULL PRIMARY KEY,
    list_name  TEXT   NOT NULL,
    entry_type TEXT   NOT NULL,
    value      TEXT   NOT NULL,
    scope      TEXT   NOT NULL,
    reason     TEXT,
    created_at BIGINT NOT NULL,
    created_by TEXT   NOT NULL,
    expires_at BIGINT,
    hits       BIGINT NOT NULL DEFAULT 0,
    version    BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX access_entries_by_value ON access_entries (entry_type, value);
