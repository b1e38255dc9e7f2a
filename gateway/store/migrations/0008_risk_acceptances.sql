-- Risk acceptances: what somebody answers for, until when. A revoked one stays, as evidence.

CREATE TABLE risk_acceptances (
    id          TEXT   NOT NULL PRIMARY KEY,
    scope       TEXT   NOT NULL,
    rule        TEXT   NOT NULL,
    agent       TEXT,
    key_id      TEXT,
    digest      TEXT,
    reason      TEXT   NOT NULL,
    accepted_at BIGINT NOT NULL,
    accepted_by TEXT   NOT NULL,
    until_at    BIGINT NOT NULL,
    revoked_at  BIGINT,
    revoked_by  TEXT,
    version     BIGINT NOT NULL DEFAULT 1
);
