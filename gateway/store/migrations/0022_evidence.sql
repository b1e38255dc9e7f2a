-- Who called, as it names itself, and in which direction something was found. An event of before has neither, and its
-- hash covers neither.
ALTER TABLE audit_events ADD COLUMN agent TEXT;
ALTER TABLE audit_events ADD COLUMN direction TEXT;
ALTER TABLE audit_events_fresh ADD COLUMN agent TEXT;
ALTER TABLE audit_events_fresh ADD COLUMN direction TEXT;
CREATE INDEX audit_events_by_request ON audit_events (request_id) WHERE request_id IS NOT NULL;
-- Sums of refusals name the requests that had no event of their own.
CREATE INDEX audit_events_of_sums ON audit_events (occurred_at) WHERE reason = 'repeated';
