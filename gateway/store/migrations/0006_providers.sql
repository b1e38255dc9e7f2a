-- key_reference: where the key is, never the key. models: JSON, globs. prices: JSON, glob of the model to its price.
CREATE TABLE providers (
    id              TEXT             NOT NULL PRIMARY KEY,
    name            TEXT             NOT NULL,
    type            TEXT             NOT NULL,
    base_url        TEXT,
    key_reference   TEXT,
    models          TEXT             NOT NULL,
    priority        INTEGER          NOT NULL,
    weight          INTEGER          NOT NULL,
    timeout_seconds DOUBLE PRECISION NOT NULL,
    max_retries     INTEGER          NOT NULL,
    prices          TEXT             NOT NULL,
    enabled         INTEGER          NOT NULL,
    allow_private   INTEGER          NOT NULL,
    created_at      BIGINT           NOT NULL,
    created_by      TEXT             NOT NULL,
    version         BIGINT           NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX providers_by_folded_name ON providers (lower(name));
