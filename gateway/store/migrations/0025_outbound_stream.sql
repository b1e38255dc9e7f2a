-- How a streamed reply leaves under a policy.
ALTER TABLE policies ADD COLUMN outbound_stream TEXT NOT NULL DEFAULT 'held';
