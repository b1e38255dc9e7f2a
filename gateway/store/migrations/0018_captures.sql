-- capture: what of a text is kept, none, redacted or full; capture_days: for how long.
ALTER TABLE policies ADD COLUMN capture TEXT NOT NULL DEFAULT 'none';
ALTER TABLE policies ADD COLUMN capture_days INTEGER NOT NULL DEFAULT 7;

-- Texts that a policy wants kept, by the row of traffic that they belong to.
CREATE TABLE captures (
    traffic_id  TEXT    NOT NULL,
    direction   TEXT    NOT NULL,
    mode        TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    is_cut      INTEGER NOT NULL,
    captured_at BIGINT  NOT NULL,
    expires_at  BIGINT  NOT NULL,
    PRIMARY KEY (traffic_id, direction)
);
CREATE INDEX captures_by_expiry ON captures (expires_at);
CREATE INDEX captures_by_age ON captures (captured_at);
