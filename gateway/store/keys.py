"""Every SQL statement about API keys. Knows digests, never a key."""

import json

from gateway.domain.keys import MAX_KEY_LIMIT, KeyRecord
from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.principals import Scope
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction
from gateway.store.filters import check_limit

_COLUMNS = """
    id, name, prefix, digest, scopes, rate_limit, created_at, created_by, expires_at, revoked_at, last_used_at,
    rotated_from, version, policy, models, lineage
"""
INSERT = f"""
    INSERT INTO api_keys ({_COLUMNS})
    VALUES (:id, :name, :prefix, :digest, :scopes, :rate_limit, :created_at, :created_by, :expires_at, :revoked_at,
            :last_used_at, :rotated_from, :version, :policy, :models, :lineage)
"""  # noqa: S608  # our own column names
BY_DIGEST = f"SELECT {_COLUMNS} FROM api_keys WHERE digest = :digest"  # noqa: S608
BY_ID = f"SELECT {_COLUMNS} FROM api_keys WHERE id = :id"  # noqa: S608
BY_PREFIX = f"SELECT {_COLUMNS} FROM api_keys WHERE prefix = :prefix ORDER BY id LIMIT 2"  # noqa: S608
ALL = f"SELECT {_COLUMNS} FROM api_keys ORDER BY id DESC"  # noqa: S608
PAGE = f"SELECT {_COLUMNS} FROM api_keys WHERE id < :before ORDER BY id DESC LIMIT :limit"  # noqa: S608
COUNT_OF_POLICY = """
    SELECT COUNT(*) AS count FROM api_keys
     WHERE policy = :policy AND (revoked_at IS NULL OR revoked_at > :now_at)
"""
COUNT = "SELECT COUNT(*) AS count FROM api_keys"
REVOKE = """
    UPDATE api_keys SET revoked_at = :revoked_at, version = version + 1
     WHERE id = :id AND (revoked_at IS NULL OR revoked_at > :now_at)
"""
CHANGE = """
    UPDATE api_keys
       SET name = :name, scopes = :scopes, rate_limit = :rate_limit, expires_at = :expires_at, policy = :policy,
           models = :models, version = version + 1
     WHERE id = :id
"""
MARK_FIRST_USED = """
    UPDATE api_keys SET last_used_at = :now_at
     WHERE id = :id AND last_used_at IS NULL
"""
MARK_USED = """
    UPDATE api_keys SET last_used_at = :now_at
     WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now_at)
"""


class KeyRepository:
    """The table of API keys."""

    def insert(self, tx: AuthorityTransaction, record: KeyRecord) -> None:
        """Insert a record.

        Raises:
            Conflict: a key of this id or digest exists.
        """
        tx.change(
            INSERT,
            {
                "id": record.id,
                "name": record.name,
                "prefix": record.prefix,
                "digest": record.digest,
                "scopes": json.dumps(record.scopes),
                "rate_limit": record.rate_limit,
                "created_at": record.created_at,
                "created_by": record.created_by,
                "expires_at": record.expires_at,
                "revoked_at": record.revoked_at,
                "last_used_at": record.last_used_at,
                "rotated_from": record.rotated_from,
                "version": record.version,
                "policy": record.policy,
                "models": json.dumps(record.models),
                "lineage": record.lineage or record.id,
            },
        )

    def by_digest(self, tx: Transaction, digest: str) -> KeyRecord | None:
        """Return the record of the key with this SHA-256."""
        rows = tx.query(BY_DIGEST, {"digest": digest})
        return _record(rows[0]) if rows else None

    def by_id(self, tx: Transaction, key_id: str) -> KeyRecord | None:
        """Return the record of this id."""
        rows = tx.query(BY_ID, {"id": key_id})
        return _record(rows[0]) if rows else None

    def by_prefix(self, tx: Transaction, prefix: str) -> tuple[KeyRecord, ...]:
        """Return the records of this prefix, two at most: a second one says that the prefix is not enough."""
        return tuple(_record(row) for row in tx.query(BY_PREFIX, {"prefix": prefix}))

    def all(self, tx: Transaction) -> tuple[KeyRecord, ...]:
        """Return all records, newest first."""
        return tuple(_record(row) for row in tx.query(ALL))

    def count(self, tx: Transaction) -> int:
        """Return how many keys there are, revoked ones included."""
        return int(tx.query(COUNT)[0]["count"])

    def count_of_policy(self, tx: Transaction, policy_id: str, *, now_at: int) -> int:
        """Return how many keys that are not revoked have this policy."""
        return int(tx.query(COUNT_OF_POLICY, {"policy": policy_id, "now_at": now_at})[0]["count"])

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[KeyRecord]:
        """Return a part of all records, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        check_limit(limit, MAX_KEY_LIMIT)
        before = id_at("key", read_cursor(cursor, ("keys",), count=ID_NUMBERS)) if cursor else "key`"
        rows = tx.query(PAGE, {"before": before, "limit": limit + 1})
        items = tuple(_record(row) for row in rows[:limit])
        after = write_cursor(("keys",), position_of(items[-1].id)) if len(rows) > limit else None
        return Page(items, limit, after)

    def change(self, tx: AuthorityTransaction, record: KeyRecord) -> None:
        """Write what may change of a key, and raise the version. Holds in every process once committed."""
        tx.change(
            CHANGE,
            {
                "id": record.id,
                "name": record.name,
                "scopes": json.dumps(record.scopes),
                "rate_limit": record.rate_limit,
                "expires_at": record.expires_at,
                "policy": record.policy,
                "models": json.dumps(record.models),
            },
        )

    def revoke(self, tx: AuthorityTransaction, key_id: str, *, now_at: int, revoked_at: int | None = None) -> bool:
        """Revoke the key, now or at `revoked_at`, and tell whether it was not yet revoked at `now_at`.

        Holds in every process once committed.
        """
        values = {"id": key_id, "now_at": now_at, "revoked_at": now_at if revoked_at is None else revoked_at}
        return tx.change(REVOKE, values) == 1

    def mark_first_used(self, tx: Transaction, key_id: str, *, now_at: int) -> bool:
        """Note the first use and tell whether this was it."""
        return tx.execute(MARK_FIRST_USED, {"id": key_id, "now_at": now_at}) == 1

    def mark_used(self, tx: Transaction, key_id: str, *, now_at: int) -> None:
        """Note a use."""
        tx.execute(MARK_USED, {"id": key_id, "now_at": now_at})


def _record(row: Row) -> KeyRecord:
    return KeyRecord(
        id=row["id"],
        name=row["name"],
        prefix=row["prefix"],
        digest=row["digest"],
        scopes=tuple(Scope(scope) for scope in json.loads(row["scopes"])),
        rate_limit=row["rate_limit"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
        rotated_from=row["rotated_from"],
        version=row["version"],
        policy=row["policy"],
        models=tuple(json.loads(row["models"])),
        lineage=row["lineage"],
    )
