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
_INSTANCE_ID = "instance_id"
_ORIGIN = "origin"


class MetaRepository:
    """Named texts."""

    def get(self, tx: Transaction, name: str) -> str | None:
        rows = tx.query("SELECT value FROM meta WHERE name = :name", {"name": name})
        return str(rows[0]["value"]) if rows else None

    def set(self, tx: Transaction, name: str, value: str) -> None:
        tx.execute(SET, {"name": name, "value": value})

    def changes_of_authority(self, tx: Transaction) -> str | None:
        """Return the count of transactions that changed authority, or None before the first one."""
        return self.get(tx, AUTHORITY)

    def instance_id(self, tx: Transaction, ids: Ids) -> str:
        """Return the id under which this database's gateway writes its audit chain, made the first time."""
        known = self.get(tx, _INSTANCE_ID)
        if known is None:
            known = ids.new("ins")
            self.set(tx, _INSTANCE_ID, known)
        return known

    def origin(self, tx: Transaction) -> str | None:
        """Return the origin of the data in this database, or None for production."""
        return self.get(tx, _ORIGIN)

    def set_origin(self, tx: Transaction, origin: str) -> None:
        """Set the origin of the data in this database, which counts from the next opening on."""
        self.set(tx, _ORIGIN, origin)
