-- document: the whole report as text. schedule: the id of what made it, null when somebody asked for it.
CREATE TABLE reports (
    id              TEXT   NOT NULL PRIMARY KEY,
    report_type     TEXT   NOT NULL,
    report_format   TEXT   NOT NULL,
    since_at        BIGINT NOT NULL,
    until_at        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    created_by      TEXT   NOT NULL,
    schedule        TEXT,
    document_bytes  BIGINT NOT NULL,
    document_sha256 TEXT   NOT NULL,
    document        TEXT   NOT NULL
);

CREATE TABLE report_schedules (
    id            TEXT    NOT NULL PRIMARY KEY,
    report_type   TEXT    NOT NULL,
    report_format TEXT    NOT NULL,
    every         TEXT    NOT NULL,
    enabled       INTEGER NOT NULL,
    next_at       BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    created_by    TEXT    NOT NULL,
    version       BIGINT  NOT NULL DEFAULT 1
);
