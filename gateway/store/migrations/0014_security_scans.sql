-- items: JSON, each with its name, hash, verdict and detections. Never a text.
CREATE TABLE security_scans (
    id          TEXT    NOT NULL PRIMARY KEY,
    occurred_at BIGINT  NOT NULL,
    started_by  TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    score       INTEGER NOT NULL,
    scanned     INTEGER NOT NULL,
    blocked     INTEGER NOT NULL,
    reviewed    INTEGER NOT NULL,
    unreadable  INTEGER NOT NULL,
    detections  INTEGER NOT NULL,
    items       TEXT    NOT NULL
);
