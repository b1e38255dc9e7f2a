-- In which requests a secret was seen, by its keyed hash.
CREATE TABLE secret_sightings (
    secret      TEXT   NOT NULL,
    request_id  TEXT   NOT NULL,
    occurred_at BIGINT NOT NULL,
    PRIMARY KEY (secret, request_id)
);
CREATE INDEX secret_sightings_by_time ON secret_sightings (occurred_at);
