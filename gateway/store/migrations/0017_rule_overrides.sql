-- What an operator has set otherwise than the rule file says. severity: NULL leaves that of the file.
CREATE TABLE rule_overrides (
    rule       TEXT    NOT NULL PRIMARY KEY,
    enabled    INTEGER NOT NULL,
    severity   TEXT,
    reason     TEXT,
    changed_at BIGINT  NOT NULL,
    changed_by TEXT    NOT NULL,
    version    INTEGER NOT NULL
);
