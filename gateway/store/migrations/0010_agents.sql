-- Who calls through the gateway, as they name themselves. folded: the name without regard to case; tools, tags: JSON.
CREATE TABLE agents (
    position      INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL,
    folded        TEXT    NOT NULL UNIQUE,
    source        TEXT    NOT NULL,
    origin        TEXT    NOT NULL,
    owner         TEXT,
    role          TEXT,
    model         TEXT,
    tools         TEXT    NOT NULL,
    tags          TEXT    NOT NULL,
    first_seen_at BIGINT,
    last_seen_at  BIGINT,
    blocked_at    BIGINT,
    retired_at    BIGINT,
    created_at    BIGINT  NOT NULL,
    created_by    TEXT    NOT NULL,
    version       BIGINT  NOT NULL
);

-- The state of an alert has a version; a suppression may hang on a risk acceptance.
ALTER TABLE alerts ADD COLUMN acceptance TEXT;
ALTER TABLE alerts ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
CREATE INDEX alerts_by_status ON alerts (status, position);
CREATE INDEX audit_events_of_alerts ON audit_events (resource_id, seq) WHERE resource_type = 'alert';
