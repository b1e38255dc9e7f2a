-- Calls that hosts on one database may admit for a key, by the quarter of a second in which they were granted.
CREATE TABLE rate_grants (
    key_id  TEXT    NOT NULL,
    at      BIGINT  NOT NULL,
    granted BIGINT  NOT NULL,
    PRIMARY KEY (key_id, at)
);
