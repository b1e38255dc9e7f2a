"""Every SQL statement about policies."""

import json

from gateway.domain.captures import Capture
from gateway.domain.policies import OutboundAction, PolicyRecord, ShieldMode, Unscannable
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_COLUMNS = """
    id, name, mode, block_score, review_score, category_actions, unscannable, outbound, tool_injection, capture,
    capture_days, created_at, created_by, version
"""
INSERT = f"""
    INSERT INTO policies ({_COLUMNS})
    VALUES (:id, :name, :mode, :block_score, :review_score, :category_actions, :unscannable, :outbound, :tool_injection,
            :capture, :capture_days, :created_at, :created_by, :version)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_COLUMNS} FROM policies ORDER BY id"  # noqa: S608
BY_ID = f"SELECT {_COLUMNS} FROM policies WHERE id = :id"  # noqa: S608
BY_NAME = f"SELECT {_COLUMNS} FROM policies WHERE lower(name) = :folded"  # noqa: S608
COUNT = "SELECT COUNT(*) AS count FROM policies"
CHANGE = """
    UPDATE policies
       SET name = :name, mode = :mode, block_score = :block_score, review_score = :review_score,
           category_actions = :category_actions, unscannable = :unscannable, outbound = :outbound,
           tool_injection = :tool_injection, capture = :capture, capture_days = :capture_days,
           version = version + 1
     WHERE id = :id
"""
REMOVE = "DELETE FROM policies WHERE id = :id"


class PolicyRepository:
    """The table of policies."""

    def insert(self, tx: AuthorityTransaction, record: PolicyRecord) -> None:
        """Insert a policy whose name none has."""
        made = {"created_at": record.created_at, "created_by": record.created_by, "version": record.version}
        tx.change(INSERT, _values(record) | made)

    def all(self, tx: Transaction) -> tuple[PolicyRecord, ...]:
        """Return all policies, oldest first."""
        return tuple(_record(row) for row in tx.query(ALL))

    def count(self, tx: Transaction) -> int:
        """Return how many policies there are."""
        return int(tx.query(COUNT)[0]["count"])

    def find(self, tx: Transaction, id_or_name: str) -> PolicyRecord | None:
        """Return the policy of this id, else of this name, whatever the case of its letters."""
        rows = tx.query(BY_ID, {"id": id_or_name})
        if not rows and id_or_name.isascii():
            rows = tx.query(BY_NAME, {"folded": id_or_name.lower()})
        return _record(rows[0]) if rows else None

    def change(self, tx: AuthorityTransaction, record: PolicyRecord) -> None:
        """Write all but id and maker, and raise the version. Holds in every process once committed."""
        tx.change(CHANGE, _values(record))

    def remove(self, tx: AuthorityTransaction, policy_id: str) -> None:
        """Delete a policy that no key has."""
        tx.change(REMOVE, {"id": policy_id})


def _values(record: PolicyRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "name": record.name,
        "mode": record.mode.value,
        "block_score": record.block_score,
        "review_score": record.review_score,
        "category_actions": json.dumps(dict(record.category_actions), sort_keys=True),
        "unscannable": record.unscannable.value,
        "outbound": record.outbound.value,
        "tool_injection": int(record.tool_injection),
        "capture": record.capture.value,
        "capture_days": record.capture_days,
    }


def _record(row: Row) -> PolicyRecord:
    return PolicyRecord(
        id=row["id"],
        name=row["name"],
        mode=ShieldMode(row["mode"]),
        block_score=row["block_score"],
        review_score=row["review_score"],
        category_actions=json.loads(row["category_actions"]),
        unscannable=Unscannable(row["unscannable"]),
        outbound=OutboundAction(row["outbound"]),
        tool_injection=bool(row["tool_injection"]),
        capture=Capture(row["capture"]),
        capture_days=row["capture_days"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        version=row["version"],
    )
