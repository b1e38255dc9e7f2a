"""Store the access list: who and what is let in or refused."""

from collections.abc import Mapping

from gateway.domain.access_list import MAX_ENTRY_LIMIT, AccessEntry, EntryFilter
from gateway.domain.paging import Page
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import AuthorityTable

VERSIONS = "SELECT id, version FROM access_entries ORDER BY id"
ADD_HITS = "UPDATE access_entries SET hits = hits + :hits WHERE id = :id"


class AccessRepository(AuthorityTable[AccessEntry]):
    """The table of the access list. It keeps expired entries until somebody removes them."""

    def __init__(self) -> None:
        changes = ("list_name", "value", "scope", "reason", "expires_at")
        super().__init__("access_entries", AccessEntry, changes=changes, id_prefix="acl")

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of all entries, oldest first: equal as long as no entry changes."""
        return tuple((row["id"], row["version"]) for row in tx.query(VERSIONS))

    def page(self, tx: Transaction, wanted: EntryFilter) -> Page[AccessEntry]:
        """Return a part of the entries, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        where = Where()
        where.equal(wanted, "list_name", "entry_type")
        query = ("access", wanted.list_name or "", wanted.entry_type or "")
        return self.read_page(tx, where, query, limit=wanted.limit, highest=MAX_ENTRY_LIMIT, cursor=wanted.cursor)

    def add_hits(self, tx: Transaction, hits: Mapping[str, int]) -> None:
        """Add to the hits of entries, by id. An id without an entry is ignored."""
        for entry_id, count in hits.items():
            tx.execute(ADD_HITS, {"id": entry_id, "hits": count})
