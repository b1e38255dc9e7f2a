"""Store agents."""

from gateway.domain.agents import AgentRecord
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import Table

AGENTS = Table("agents", AgentRecord, raises_version=False)
ALL = f"SELECT position, {AGENTS.names} FROM agents ORDER BY position DESC"  # noqa: S608  # our own column names
BY_NAME = "WHERE folded = :folded"
UNKNOWN_OF_KEY = """
    SELECT id FROM alerts WHERE last_seen_at > :since AND rule = :rule AND key_prefix = :key_prefix LIMIT :most
"""
BLOCKED = "SELECT id, folded FROM agents WHERE blocked_at IS NOT NULL"


class AgentRepository:
    """The table of agents. Only blocking changes what an agent may do; all else is what the gateway has seen."""

    def insert(self, tx: Transaction, record: AgentRecord) -> None:
        """Insert an agent with a name that is not taken."""
        AGENTS.insert(tx, record)

    def update(self, tx: Transaction, record: AgentRecord) -> None:
        """Write all of an agent, without a change of what it may do."""
        AGENTS.change(tx, record)

    def decide(self, tx: AuthorityTransaction, record: AgentRecord) -> None:
        """Write an agent that was blocked or unblocked."""
        tx.change(AGENTS.update_sql, AGENTS.params(record))

    def all(self, tx: Transaction) -> tuple[tuple[int, AgentRecord], ...]:
        """Return all agents with their positions, newest first."""
        return tuple((int(row["position"]), AGENTS.record(row)) for row in tx.query(ALL))

    def by_name(self, tx: Transaction, folded: str) -> AgentRecord | None:
        """Return the agent of a folded name."""
        return AGENTS.one(tx, BY_NAME, folded=folded)

    def find(self, tx: Transaction, id: str) -> AgentRecord | None:
        """Return the agent of this id."""
        return AGENTS.by_id(tx, id)

    def count_unknown(self, tx: Transaction, rule: str, key_prefix: str, *, since: int, most: int) -> int:
        """Count the unknown agents of a key by the alerts of `rule` that they raised after `since`, up to `most`."""
        values = {"rule": rule, "key_prefix": key_prefix, "since": since, "most": most}
        return len(tx.query(UNKNOWN_OF_KEY, values))

    def count(self, tx: Transaction) -> int:
        """Count the agents."""
        return AGENTS.count(tx)

    def blocked(self, tx: Transaction) -> dict[str, str]:
        """Return the ids of the blocked agents by their folded names."""
        return {str(row["folded"]): str(row["id"]) for row in tx.query(BLOCKED)}
