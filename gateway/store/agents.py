"""Every SQL statement about agents."""

import json
from dataclasses import fields

from gateway.domain.agents import AgentRecord, AgentSource
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_COLUMNS = tuple(field.name for field in fields(AgentRecord))
_NAMES = ", ".join(_COLUMNS)
INSERT = f"""
    INSERT INTO agents ({_NAMES}) VALUES ({", ".join(":" + name for name in _COLUMNS)})
"""  # noqa: S608  # our own column names
UPDATE = f"""
    UPDATE agents SET {", ".join(f"{name} = :{name}" for name in _COLUMNS if name != "id")} WHERE id = :id
"""  # noqa: S608
ALL = f"SELECT position, {_NAMES} FROM agents ORDER BY position DESC"  # noqa: S608
BY_ID = f"SELECT {_NAMES} FROM agents WHERE id = :id"  # noqa: S608
BY_NAME = f"SELECT {_NAMES} FROM agents WHERE folded = :folded"  # noqa: S608
UNKNOWN_OF_KEY = """
    SELECT id FROM alerts WHERE last_seen_at > :since AND rule = :rule AND key_prefix = :key_prefix LIMIT :most
"""
COUNT = "SELECT COUNT(*) AS count FROM agents"
BLOCKED = "SELECT id, folded FROM agents WHERE blocked_at IS NOT NULL"


class AgentRepository:
    """The table of agents."""

    def insert(self, tx: Transaction, record: AgentRecord) -> None:
        """Insert an agent whose name none has."""
        tx.execute(INSERT, _values(record))

    def update(self, tx: Transaction, record: AgentRecord) -> None:
        """Write an agent as it stands now; what it may do has not changed."""
        tx.execute(UPDATE, _values(record))

    def decide(self, tx: AuthorityTransaction, record: AgentRecord) -> None:
        """Write an agent that was blocked or unblocked."""
        tx.change(UPDATE, _values(record))

    def all(self, tx: Transaction) -> tuple[tuple[int, AgentRecord], ...]:
        """Return all agents with their places, newest first."""
        return tuple((int(row["position"]), _record(row)) for row in tx.query(ALL))

    def by_name(self, tx: Transaction, folded: str) -> AgentRecord | None:
        """Return the agent of a folded name."""
        rows = tx.query(BY_NAME, {"folded": folded})
        return _record(rows[0]) if rows else None

    def find(self, tx: Transaction, id: str) -> AgentRecord | None:
        """Return the agent of this id."""
        rows = tx.query(BY_ID, {"id": id})
        return _record(rows[0]) if rows else None

    def count_unknown(self, tx: Transaction, rule: str, key_prefix: str, *, since: int, most: int) -> int:
        """Count the unknown agents of a key, by the alerts of `rule` that they raised after `since`, up to `most`."""
        values = {"rule": rule, "key_prefix": key_prefix, "since": since, "most": most}
        return len(tx.query(UNKNOWN_OF_KEY, values))

    def count(self, tx: Transaction) -> int:
        """Return how many agents there are."""
        return int(tx.query(COUNT)[0]["count"])

    def blocked(self, tx: Transaction) -> dict[str, str]:
        """Return the ids of the blocked agents by their folded names."""
        return {str(row["folded"]): str(row["id"]) for row in tx.query(BLOCKED)}


def _values(record: AgentRecord) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(record, name) for name in _COLUMNS}
    for name in ("tools", "tags"):
        values[name] = json.dumps(values[name], ensure_ascii=False, separators=(",", ":"))
    return values


def _record(row: Row) -> AgentRecord:
    values = {name: row[name] for name in _COLUMNS}
    values["source"] = AgentSource(values["source"])
    for name in ("tools", "tags"):
        values[name] = tuple(json.loads(values[name]))
    return AgentRecord(**values)
