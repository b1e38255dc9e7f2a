"""Single values that belong to the database as a whole."""

from gateway.store.database import Transaction, insert_into

SET = insert_into("meta", ("name", "value"), key=("name",))
COUNT = """
    INSERT INTO meta (name, value) VALUES (:name, '1')
        ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)
"""
AUTHORITY = "authority"
"""The name of the number of transactions that changed authority, which is missing before the first one."""
ORIGIN = "origin"
"""The name of the origin of the data in this database, which is missing for production."""
COPYING = "copying"
"""The name of the source of a copy into this database, which is missing once it is whole."""
INSTANCE_ID = "instance_id"
"""The name of the id under which this database's gateway writes its audit chain."""
OLDEST_SCHEMA = "oldest_schema"
"""The name of the number of the oldest schema whose programs may run on this database."""
SEAL_CHECK = "seal_check"
"""The name of a keyed hash that tells whether a host has the seal key of the others."""


class MetaRepository:
    """Named texts."""

    def get(self, tx: Transaction, name: str) -> str | None:
        rows = tx.query("SELECT value FROM meta WHERE name = :name", {"name": name})
        return str(rows[0]["value"]) if rows else None

    def set(self, tx: Transaction, name: str, value: str) -> None:
        tx.execute(SET, {"name": name, "value": value})
