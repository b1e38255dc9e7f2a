-- Most events are of chats in which nothing was found. Whoever asks for these finds them by time, so that they need not
-- stand in the indexes of what an event is about. The values are those of USUAL in store/audit.py.
DROP INDEX audit_events_by_action;
DROP INDEX audit_events_by_source;
DROP INDEX audit_events_by_resource;
CREATE INDEX audit_events_by_action ON audit_events (action, occurred_at) WHERE action <> 'chat_completed';
CREATE INDEX audit_events_by_source ON audit_events (source, occurred_at) WHERE source <> 'chat';
CREATE INDEX audit_events_by_resource ON audit_events (resource_type, occurred_at) WHERE resource_type <> 'model';
