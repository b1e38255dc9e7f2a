"""Single values that belong to the database as a whole."""

from gateway.clock import Ids
from gateway.store.database import Transaction

SET = """
    INSERT INTO meta (name, value) VALUES (:name, :value)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
COUNT = """
    INSERT INTO meta (name, value) VALUES (:name, '1')
        ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)
"""
AUTHORITY = "authority"
"""The name of the number of transactions that changed authority, which is missing before the first one."""
ORIGIN = "origin"
"""The name of the origin of the data in this database, which is missing for production."""
_INSTANCE_ID = "instance_id"


class MetaRepository:
    """Named texts."""

    def get(self, tx: Transaction, name: str) -> str | None:
        rows = tx.query("SELECT value FROM meta WHERE name = :name", {"name": name})
        return str(rows[0]["value"]) if rows else None

    def set(self, tx: Transaction, name: str, value: str) -> None:
        tx.execute(SET, {"name": name, "value": value})

    def instance_id(self, tx: Transaction, ids: Ids) -> str:
        """Return the id under which this database's gateway writes its audit chain, made the first time."""
        known = self.get(tx, _INSTANCE_ID)
        if known is None:
            known = ids.new("ins")
            self.set(tx, _INSTANCE_ID, known)
        return known
