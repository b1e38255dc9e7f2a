-- Acceptances for a key or a policy, of a request that was harmless, and those that wait for an approval.
ALTER TABLE risk_acceptances ADD COLUMN policy_id TEXT;
ALTER TABLE risk_acceptances ADD COLUMN request_id TEXT;
ALTER TABLE risk_acceptances ADD COLUMN is_proposed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE risk_acceptances ADD COLUMN proposed_by TEXT;
