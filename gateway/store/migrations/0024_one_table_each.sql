-- Rows of audit_events and traffic are written where they are indexed. Rows that an earlier version had put into the
-- tables without an index are moved, and the end of each audit chain is noted in audit_heads from now on.
INSERT INTO audit_heads (instance_id, seq, hash, first_seq, first_prev_hash)
    SELECT instance_id, seq, hash, 1, '0000000000000000000000000000000000000000000000000000000000000000'
      FROM audit_events_fresh
     WHERE position IN (SELECT MAX(position) FROM audit_events_fresh GROUP BY instance_id)
        ON CONFLICT (instance_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
INSERT INTO audit_events SELECT * FROM audit_events_fresh ORDER BY position;
INSERT INTO traffic SELECT * FROM traffic_fresh ORDER BY position;
DROP VIEW audit_events_all;
DROP VIEW traffic_all;
DROP TABLE audit_events_fresh;
DROP TABLE traffic_fresh;
