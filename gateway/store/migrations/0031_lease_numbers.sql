-- Rises with each take by another holder: a paused process that wakes up has an old number, and writes nothing.
ALTER TABLE leases ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
