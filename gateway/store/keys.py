"""Store API keys. The table holds digests and never a key."""

from dataclasses import replace

from gateway.domain.keys import MAX_KEY_LIMIT, KeyRecord
from gateway.domain.paging import MAX_INTEGER
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import AuthorityTable

# A key that was never used stands below all that were; one that never expires stands above all that do.
SORTS = {
    "name": "lower(name)",
    "created": "created_at",
    "last_used": "COALESCE(last_used_at, -1)",
    "expires": f"COALESCE(expires_at, {MAX_INTEGER})",
    "rate_limit": "rate_limit",
}
BY_DIGEST = "WHERE digest = :digest"
OF_POLICY = "WHERE policy = :policy AND (revoked_at IS NULL OR revoked_at > :now_at)"
REVOKE = """
    UPDATE api_keys SET revoked_at = :revoked_at, version = version + 1
     WHERE id = :id AND (revoked_at IS NULL OR revoked_at > :now_at)
"""
MARK_FIRST_USED = "UPDATE api_keys SET last_used_at = :now_at WHERE id = :id AND last_used_at IS NULL"
MARK_USED = """
    UPDATE api_keys SET last_used_at = :now_at
     WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now_at)
"""


class KeyRepository(AuthorityTable[KeyRecord]):
    """The table of API keys. None is removed: a revoked one stays."""

    def __init__(self) -> None:
        changes = ("name", "scopes", "rate_limit", "expires_at", "policy", "models")
        super().__init__("api_keys", KeyRecord, changes=changes, sorts=SORTS, page_limit=MAX_KEY_LIMIT)

    def insert(self, tx: AuthorityTransaction, record: KeyRecord, **extra: object) -> None:
        """Insert a record. A key that replaces no other begins a lineage of its own."""
        super().insert(tx, replace(record, lineage=record.lineage or record.id), **extra)

    def by_digest(self, tx: Transaction, digest: str) -> KeyRecord | None:
        return self.one(tx, BY_DIGEST, digest=digest)

    def by_prefix(self, tx: Transaction, prefix: str) -> tuple[KeyRecord, ...]:
        """Return at most two records of this prefix: a second one means that the prefix is ambiguous."""
        return self.many(tx, "WHERE prefix = :prefix ORDER BY id LIMIT 2", prefix=prefix)

    def all(self, tx: Transaction) -> tuple[KeyRecord, ...]:
        """Return all records, newest first."""
        return self.many(tx, "ORDER BY id DESC")

    def count_of_policy(self, tx: Transaction, policy_id: str, *, now_at: int) -> int:
        return self.count(tx, OF_POLICY, policy=policy_id, now_at=now_at)

    def revoke(self, tx: AuthorityTransaction, key_id: str, *, now_at: int, revoked_at: int | None = None) -> bool:
        """Revoke the key, now or at `revoked_at`, and return whether it was still good at `now_at`.

        Every process obeys once this is committed.
        """
        values = {"id": key_id, "now_at": now_at, "revoked_at": now_at if revoked_at is None else revoked_at}
        return tx.change(REVOKE, values) == 1

    def mark_first_used(self, tx: Transaction, key_id: str, *, now_at: int) -> bool:
        """Record the first use and return whether this was it."""
        return tx.execute(MARK_FIRST_USED, {"id": key_id, "now_at": now_at}) == 1

    def mark_used(self, tx: Transaction, key_id: str, *, now_at: int) -> None:
        tx.execute(MARK_USED, {"id": key_id, "now_at": now_at})
