-- An operator's own rules, on top of the rule files: every version of each. rule: as a rule file has it, NULL for a
-- version that removes the rule.
CREATE TABLE local_rules (
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    rule       TEXT,
    reason     TEXT    NOT NULL,
    changed_at BIGINT  NOT NULL,
    changed_by TEXT    NOT NULL,
    PRIMARY KEY (id, version)
);
