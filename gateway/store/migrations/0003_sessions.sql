-- What a signed-in user's browser holds is in no table: `digest` is its SHA-256.
CREATE TABLE sessions (
    id           TEXT   NOT NULL PRIMARY KEY,
    digest       TEXT   NOT NULL UNIQUE,
    user_id      TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    ip           TEXT,
    user_agent   TEXT
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- account: SHA-256 of the name that was typed, which may be anything, even a password typed into the wrong field.
CREATE TABLE sign_in_failures (
    account   TEXT   NOT NULL,
    network   TEXT   NOT NULL,
    failed_at BIGINT NOT NULL
);
CREATE INDEX sign_in_failures_by_account ON sign_in_failures (account, network, failed_at);
CREATE INDEX sign_in_failures_by_network ON sign_in_failures (network, failed_at);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (failed_at);

CREATE UNIQUE INDEX users_by_folded_name ON users (lower(username));
ALTER TABLE users ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE api_keys ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
