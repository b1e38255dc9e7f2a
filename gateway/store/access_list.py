"""Every SQL statement about the access list."""

from collections.abc import Mapping

from gateway.domain.access_list import MAX_ENTRY_LIMIT, AccessEntry, EntryFilter, EntryType, ListName
from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction
from gateway.store.filters import check_limit

_COLUMNS = "id, list_name, entry_type, value, scope, reason, created_at, created_by, expires_at, hits, version"
INSERT = f"""
    INSERT INTO access_entries ({_COLUMNS})
    VALUES (:id, :list_name, :entry_type, :value, :scope, :reason, :created_at, :created_by, :expires_at, :hits,
            :version)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_COLUMNS} FROM access_entries ORDER BY id"  # noqa: S608
VERSIONS = "SELECT id, version FROM access_entries ORDER BY id"
BY_ID = f"SELECT {_COLUMNS} FROM access_entries WHERE id = :id"  # noqa: S608
PAGE = f"""
    SELECT {_COLUMNS} FROM access_entries
     WHERE id < :before
       AND (:list_name = '' OR list_name = :list_name)
       AND (:entry_type = '' OR entry_type = :entry_type)
     ORDER BY id DESC LIMIT :limit
"""  # noqa: S608
CHANGE = """
    UPDATE access_entries
       SET list_name = :list_name, value = :value, scope = :scope, reason = :reason, expires_at = :expires_at,
           version = version + 1
     WHERE id = :id
"""
REMOVE = "DELETE FROM access_entries WHERE id = :id"
ADD_HITS = "UPDATE access_entries SET hits = hits + :hits WHERE id = :id"


class AccessRepository:
    """The table of the access list."""

    def insert(self, tx: AuthorityTransaction, entry: AccessEntry) -> None:
        """Insert an entry. Holds in every process once committed."""
        tx.change(
            INSERT,
            {
                "id": entry.id,
                "list_name": entry.list_name.value,
                "entry_type": entry.entry_type.value,
                "value": entry.value,
                "scope": entry.scope,
                "reason": entry.reason,
                "created_at": entry.created_at,
                "created_by": entry.created_by,
                "expires_at": entry.expires_at,
                "hits": entry.hits,
                "version": entry.version,
            },
        )

    def all(self, tx: Transaction) -> tuple[AccessEntry, ...]:
        """Return all entries, oldest first, expired ones included."""
        return tuple(_entry(row) for row in tx.query(ALL))

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of all entries, oldest first: equal as long as no entry was changed."""
        return tuple((row["id"], row["version"]) for row in tx.query(VERSIONS))

    def by_id(self, tx: Transaction, entry_id: str) -> AccessEntry | None:
        """Return the entry of this id."""
        rows = tx.query(BY_ID, {"id": entry_id})
        return _entry(rows[0]) if rows else None

    def page(self, tx: Transaction, wanted: EntryFilter) -> Page[AccessEntry]:
        """Return a part of the entries, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        check_limit(wanted.limit, MAX_ENTRY_LIMIT)
        list_name = wanted.list_name.value if wanted.list_name else ""
        entry_type = wanted.entry_type.value if wanted.entry_type else ""
        query = ("access", list_name, entry_type)
        before = id_at("acl", read_cursor(wanted.cursor, query, count=ID_NUMBERS)) if wanted.cursor else "acl`"
        rows = tx.query(
            PAGE, {"before": before, "list_name": list_name, "entry_type": entry_type, "limit": wanted.limit + 1}
        )
        items = tuple(_entry(row) for row in rows[: wanted.limit])
        after = write_cursor(query, position_of(items[-1].id)) if len(rows) > wanted.limit else None
        return Page(items, wanted.limit, after)

    def change(self, tx: AuthorityTransaction, entry: AccessEntry) -> None:
        """Write all but type, maker and hits, and raise the version. Holds in every process once committed."""
        tx.change(
            CHANGE,
            {
                "id": entry.id,
                "list_name": entry.list_name.value,
                "value": entry.value,
                "scope": entry.scope,
                "reason": entry.reason,
                "expires_at": entry.expires_at,
            },
        )

    def remove(self, tx: AuthorityTransaction, entry_id: str) -> None:
        """Delete an entry. Holds in every process once committed."""
        tx.change(REMOVE, {"id": entry_id})

    def add_hits(self, tx: Transaction, hits: Mapping[str, int]) -> None:
        """Add to the hits of entries, by id. One that is gone is left out."""
        for entry_id, count in hits.items():
            tx.execute(ADD_HITS, {"id": entry_id, "hits": count})


def _entry(row: Row) -> AccessEntry:
    return AccessEntry(
        id=row["id"],
        list_name=ListName(row["list_name"]),
        entry_type=EntryType(row["entry_type"]),
        value=row["value"],
        scope=row["scope"],
        reason=row["reason"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        hits=row["hits"],
        version=row["version"],
    )
