"""Store the access list: who and what is let in or refused."""

from collections.abc import Mapping

from gateway.domain.access_list import MAX_ENTRY_LIMIT, AccessEntry, EntryFilter
from gateway.domain.paging import Page
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import AuthorityTable

ENTRIES = AuthorityTable(
    "access_entries",
    AccessEntry,
    changes=("list_name", "value", "scope", "reason", "expires_at"),
    id_prefix="acl",
)
VERSIONS = "SELECT id, version FROM access_entries ORDER BY id"
ADD_HITS = "UPDATE access_entries SET hits = hits + :hits WHERE id = :id"


class AccessRepository:
    """The table of the access list. A committed change holds in every process."""

    def insert(self, tx: AuthorityTransaction, entry: AccessEntry) -> None:
        """Insert an entry."""
        ENTRIES.insert(tx, entry)

    def all(self, tx: Transaction) -> tuple[AccessEntry, ...]:
        """Return all entries, oldest first, including expired ones."""
        return ENTRIES.all(tx)

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of all entries, oldest first: equal as long as no entry changes."""
        return tuple((row["id"], row["version"]) for row in tx.query(VERSIONS))

    def by_id(self, tx: Transaction, entry_id: str) -> AccessEntry | None:
        """Return the entry of this id."""
        return ENTRIES.find(tx, entry_id)

    def page(self, tx: Transaction, wanted: EntryFilter) -> Page[AccessEntry]:
        """Return a part of the entries, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        where = Where()
        where.equal(wanted, "list_name", "entry_type")
        query = ("access", wanted.list_name or "", wanted.entry_type or "")
        return ENTRIES.page(tx, where, query, limit=wanted.limit, highest=MAX_ENTRY_LIMIT, cursor=wanted.cursor)

    def change(self, tx: AuthorityTransaction, entry: AccessEntry) -> None:
        """Write all but type, maker and hits, and raise the version."""
        ENTRIES.update(tx, entry)

    def remove(self, tx: AuthorityTransaction, entry_id: str) -> None:
        """Delete an entry."""
        ENTRIES.delete(tx, entry_id)

    def add_hits(self, tx: Transaction, hits: Mapping[str, int]) -> None:
        """Add to the hits of entries, by id. An id without an entry is ignored."""
        for entry_id, count in hits.items():
            tx.execute(ADD_HITS, {"id": entry_id, "hits": count})
