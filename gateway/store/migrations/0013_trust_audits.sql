-- checks: JSON, every check with what it found. score: null when no check applied.
CREATE TABLE trust_audits (
    id           TEXT    NOT NULL PRIMARY KEY,
    occurred_at  BIGINT  NOT NULL,
    started_by   TEXT    NOT NULL,
    score        INTEGER,
    passed       INTEGER NOT NULL,
    warned       INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    checks       TEXT    NOT NULL
);

-- One point for each span of time, whichever process made it.
CREATE TABLE posture_points (
    occurred_at   BIGINT  NOT NULL PRIMARY KEY,
    threat_score  INTEGER NOT NULL,
    posture_score INTEGER
);

-- A page that is filtered by one of these reads its own rows alone.
CREATE INDEX audit_events_by_actor ON audit_events (actor, occurred_at);
CREATE INDEX audit_events_by_source ON audit_events (source, occurred_at);
CREATE INDEX audit_events_by_resource ON audit_events (resource_type, occurred_at);

-- Places of a chain that were once found whole: from the newest one on it is checked again.
CREATE TABLE audit_checkpoints (
    instance_id TEXT   NOT NULL,
    seq         BIGINT NOT NULL,
    hash        TEXT   NOT NULL,
    occurred_at BIGINT NOT NULL,
    PRIMARY KEY (instance_id, seq)
);
