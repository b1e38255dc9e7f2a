-- origin: production, or demo for rows that were made up, which are in no count of production.
ALTER TABLE traffic ADD COLUMN origin TEXT NOT NULL DEFAULT 'production';
CREATE INDEX traffic_by_id ON traffic (id);
CREATE INDEX traffic_by_request ON traffic (request_id);
CREATE INDEX traffic_by_verdict ON traffic (verdict, occurred_at) WHERE verdict <> 'ALLOW';
CREATE INDEX traffic_by_agent ON traffic (agent, occurred_at);
CREATE INDEX traffic_by_key ON traffic (key_prefix, occurred_at);

-- Sums of the rows of traffic. size_ms: how long a bucket is. dimension: what the rows are told apart by; value: of it.
CREATE TABLE traffic_sums (
    size_ms       BIGINT NOT NULL,
    dimension     TEXT   NOT NULL,
    origin        TEXT   NOT NULL,
    bucket_at     BIGINT NOT NULL,
    value         TEXT   NOT NULL,
    requests      BIGINT NOT NULL,
    blocks        BIGINT NOT NULL,
    reviews       BIGINT NOT NULL,
    failures      BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    reply_tokens  BIGINT NOT NULL,
    cost_microusd BIGINT NOT NULL,
    elapsed_us    BIGINT NOT NULL,
    overhead_us   BIGINT NOT NULL,
    PRIMARY KEY (size_ms, dimension, origin, bucket_at, value)
);

-- Up to which row of traffic the sums are made.
CREATE TABLE traffic_summed (
    name     TEXT   NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
);
