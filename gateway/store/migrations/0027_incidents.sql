-- Alerts of one agent and key within an hour are one incident.
ALTER TABLE alerts ADD COLUMN incident TEXT NOT NULL DEFAULT '';
UPDATE alerts SET incident = 'inc' || substr(id, 4);
CREATE INDEX alerts_by_incident ON alerts (incident, position);
CREATE INDEX alerts_by_who ON alerts (key_prefix, agent, position);
