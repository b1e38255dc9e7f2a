-- Rows of audit_events and traffic are written first where nothing is indexed, so that a commit writes few pages, and
-- moved in batches (store/fresh.py). Whoever reads asks the views, which have both. Places count on from one to the other.
CREATE TABLE audit_events_fresh (
    position      INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL,
    seq           BIGINT  NOT NULL,
    occurred_at   BIGINT  NOT NULL,
    source        TEXT    NOT NULL,
    action        TEXT    NOT NULL,
    outcome       TEXT    NOT NULL,
    reason        TEXT,
    actor         TEXT    NOT NULL,
    actor_type    TEXT    NOT NULL,
    actor_id      TEXT,
    key_prefix    TEXT,
    ip            TEXT,
    user_agent    TEXT,
    resource_type TEXT,
    resource_id   TEXT,
    before        TEXT,
    after         TEXT,
    request_id    TEXT,
    instance_id   TEXT    NOT NULL,
    details       TEXT    NOT NULL,
    prev_hash     TEXT    NOT NULL,
    hash          TEXT    NOT NULL
);
CREATE VIEW audit_events_all AS SELECT * FROM audit_events UNION ALL SELECT * FROM audit_events_fresh;

CREATE TABLE traffic_fresh (
    position      INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL,
    occurred_at   BIGINT  NOT NULL,
    request_id    TEXT    NOT NULL,
    operation     TEXT    NOT NULL,
    principal_id  TEXT    NOT NULL,
    key_prefix    TEXT,
    agent         TEXT,
    model         TEXT,
    provider      TEXT,
    direction     TEXT,
    verdict       TEXT    NOT NULL,
    score         INTEGER NOT NULL,
    action        TEXT    NOT NULL,
    status        INTEGER NOT NULL,
    detections    TEXT    NOT NULL,
    text_sha256   TEXT,
    text_chars    BIGINT  NOT NULL,
    prompt_tokens BIGINT,
    reply_tokens  BIGINT,
    cost_microusd BIGINT,
    elapsed_us    BIGINT  NOT NULL,
    overhead_us   BIGINT  NOT NULL,
    instance_id   TEXT,
    origin        TEXT    NOT NULL DEFAULT 'production'
);
CREATE VIEW traffic_all AS SELECT * FROM traffic UNION ALL SELECT * FROM traffic_fresh;
