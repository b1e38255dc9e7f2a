-- secret: where the secret stands, never the secret. audit_position, alert_position: up to where it was sent.
CREATE TABLE event_outputs (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    target         TEXT    NOT NULL,
    secret         TEXT,
    kinds          TEXT    NOT NULL,
    min_severity   TEXT    NOT NULL,
    allow_private  INTEGER NOT NULL,
    enabled        INTEGER NOT NULL,
    created_at     BIGINT  NOT NULL,
    created_by     TEXT    NOT NULL,
    version        BIGINT  NOT NULL DEFAULT 1,
    audit_position BIGINT  NOT NULL,
    alert_position BIGINT  NOT NULL,
    sent           BIGINT  NOT NULL DEFAULT 0,
    failed         BIGINT  NOT NULL DEFAULT 0,
    dropped        BIGINT  NOT NULL DEFAULT 0,
    last_sent_at   BIGINT,
    last_error     TEXT,
    last_error_at  BIGINT
);
CREATE UNIQUE INDEX event_outputs_by_folded_name ON event_outputs (lower(name));
