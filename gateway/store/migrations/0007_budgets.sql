-- Budgets: what may be spent in a period, what was spent and held in each, and which requests hold it.
-- Amounts are whole numbers of the unit: micro-dollars, tokens, requests. Times in Unix milliseconds.

CREATE TABLE budgets (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    scope           TEXT    NOT NULL,
    scope_value     TEXT,
    unit            TEXT    NOT NULL,
    limit_amount    BIGINT  NOT NULL,
    period          TEXT    NOT NULL,
    soft_pct        INTEGER NOT NULL,
    action          TEXT    NOT NULL,
    override_amount BIGINT,
    override_until  BIGINT,
    override_reason TEXT,
    override_by     TEXT,
    created_at      BIGINT  NOT NULL,
    created_by      TEXT    NOT NULL,
    version         BIGINT  NOT NULL DEFAULT 1
);

CREATE TABLE budget_periods (
    budget_id    TEXT   NOT NULL,
    begins_at    BIGINT NOT NULL,
    spent        BIGINT NOT NULL DEFAULT 0,
    reserved     BIGINT NOT NULL DEFAULT 0,
    soft_at      BIGINT,
    exceeded_at  BIGINT,
    PRIMARY KEY (budget_id, begins_at)
);

CREATE TABLE budget_holds (
    id        TEXT   NOT NULL,
    budget_id TEXT   NOT NULL,
    begins_at BIGINT NOT NULL,
    amount    BIGINT NOT NULL,
    held_at   BIGINT NOT NULL,
    PRIMARY KEY (id, budget_id)
);
CREATE INDEX budget_holds_by_time ON budget_holds (held_at);
