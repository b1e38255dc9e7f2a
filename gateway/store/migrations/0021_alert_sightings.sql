-- Which requests were counted on an alert, so that each of them leads to it. The newest are kept, see store/alerts.py.
CREATE TABLE alert_sightings (
    alert_id   TEXT    NOT NULL,
    slot       INTEGER NOT NULL,
    request_id TEXT    NOT NULL,
    PRIMARY KEY (alert_id, slot)
);
CREATE INDEX alert_sightings_by_request ON alert_sightings (request_id);
INSERT INTO alert_sightings (alert_id, slot, request_id)
    SELECT id, 0, request_id FROM alerts WHERE request_id IS NOT NULL;
