-- One row a gateway that writes to this database, renewed by its heartbeat.
CREATE TABLE instances (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    version        TEXT    NOT NULL,
    archive_sha256 TEXT,
    status         TEXT    NOT NULL,
    started_at     BIGINT  NOT NULL,
    last_seen_at   BIGINT  NOT NULL,
    cpu_percent    REAL,
    memory_bytes   BIGINT,
    threats        BIGINT  NOT NULL,
    alerts         BIGINT  NOT NULL,
    agents         BIGINT  NOT NULL,
    sessions       BIGINT  NOT NULL,
    posture_score  INTEGER,
    threat_score   INTEGER
);

-- Other gateways, with a database of their own. key_reference: where their key is to be found, never the key.
-- answer: JSON of the instances they told of last.
CREATE TABLE fleet_peers (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    folded         TEXT    NOT NULL UNIQUE,
    url            TEXT    NOT NULL,
    key_reference  TEXT    NOT NULL,
    allow_private  INTEGER NOT NULL,
    created_at     BIGINT  NOT NULL,
    created_by     TEXT    NOT NULL,
    asked_at       BIGINT,
    answered_at    BIGINT,
    problem        TEXT,
    answer         TEXT
);

-- What one process at a time may do: the job of this name is another's until then.
CREATE TABLE leases (
    name     TEXT   NOT NULL PRIMARY KEY,
    holder   TEXT   NOT NULL,
    until_at BIGINT NOT NULL
);
