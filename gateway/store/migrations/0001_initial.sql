-- Times are Unix milliseconds. JSON is text. One statement ends with the semicolon that ends its last line.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE api_keys (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL,
    prefix       TEXT    NOT NULL,
    digest       TEXT    NOT NULL UNIQUE,
    scopes       TEXT    NOT NULL,
    rate_limit   INTEGER NOT NULL,
    created_at   BIGINT  NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    last_used_at BIGINT,
    rotated_from TEXT
);
CREATE INDEX api_keys_by_prefix ON api_keys (prefix);

-- The place in the table is the order of commits. Nothing in the program updates or deletes a row.
CREATE TABLE audit_events (
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
CREATE UNIQUE INDEX audit_events_by_seq ON audit_events (instance_id, seq);
CREATE INDEX audit_events_by_time ON audit_events (occurred_at);
CREATE INDEX audit_events_by_action ON audit_events (action, occurred_at);

-- first_seq, first_prev_hash: where the chain begins now, once older events are pruned.
CREATE TABLE audit_heads (
    instance_id     TEXT   NOT NULL PRIMARY KEY,
    seq             BIGINT NOT NULL,
    hash            TEXT   NOT NULL,
    first_seq       BIGINT NOT NULL,
    first_prev_hash TEXT   NOT NULL
);

CREATE TABLE alerts (
    position            INTEGER PRIMARY KEY,
    id                  TEXT    NOT NULL UNIQUE,
    title               TEXT    NOT NULL,
    description         TEXT    NOT NULL,
    severity            TEXT    NOT NULL,
    source              TEXT    NOT NULL,
    rule                TEXT    NOT NULL,
    fingerprint         TEXT    NOT NULL,
    status              TEXT    NOT NULL,
    count               BIGINT  NOT NULL,
    first_seen_at       BIGINT  NOT NULL,
    last_seen_at        BIGINT  NOT NULL,
    acknowledged_by     TEXT,
    assigned_to         TEXT,
    resolved_by         TEXT,
    resolved_at         BIGINT,
    resolution          TEXT,
    suppressed_until_at BIGINT,
    agent               TEXT,
    key_prefix          TEXT,
    request_id          TEXT,
    origin              TEXT,
    evidence            TEXT    NOT NULL
);
CREATE INDEX alerts_by_fingerprint ON alerts (fingerprint, position);
CREATE INDEX alerts_by_last_seen ON alerts (last_seen_at);

CREATE TABLE traffic (
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
    instance_id   TEXT
);
CREATE INDEX traffic_by_time ON traffic (occurred_at);
