-- The form of the events that an output sends.
ALTER TABLE event_outputs ADD COLUMN format TEXT NOT NULL DEFAULT 'json';
