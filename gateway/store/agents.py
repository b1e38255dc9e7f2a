"""Store agents."""

from gateway.domain.agents import AgentRecord
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import Table

UNKNOWN_OF_KEY = """
    SELECT id FROM alerts WHERE last_seen_at > :since AND rule = :rule AND key_prefix = :key_prefix LIMIT :most
"""


class AgentRepository(Table[AgentRecord]):
    """The agents. `decide` changes what an agent may do; `change` writes the rest, which the gateway has seen."""

    def __init__(self) -> None:
        super().__init__("agents", AgentRecord, raises_version=False, order=("position",))

    def decide(self, tx: AuthorityTransaction, record: AgentRecord) -> None:
        """Write an agent that was blocked or unblocked."""
        tx.change(self.update_sql, self.params(record))

    def positions(self, tx: Transaction) -> tuple[tuple[int, AgentRecord], ...]:
        """Return all agents with their positions, newest first."""
        rows = tx.query(f"SELECT position, {self.names} FROM agents ORDER BY position DESC")  # noqa: S608
        return tuple((int(row["position"]), self.record(row)) for row in rows)

    def by_name(self, tx: Transaction, folded: str) -> AgentRecord | None:
        return self.one(tx, "WHERE folded = :folded", folded=folded)

    def count_unknown(self, tx: Transaction, rule: str, key_prefix: str, *, since: int, most: int) -> int:
        """Count the unknown agents of a key by the alerts of `rule` that they raised after `since`, up to `most`."""
        values = {"rule": rule, "key_prefix": key_prefix, "since": since, "most": most}
        return len(tx.query(UNKNOWN_OF_KEY, values))

    def blocked(self, tx: Transaction) -> dict[str, str]:
        rows = tx.query("SELECT id, folded FROM agents WHERE blocked_at IS NOT NULL")
        return {str(row["folded"]): str(row["id"]) for row in rows}
