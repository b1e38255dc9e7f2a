"""Store security scans."""

from gateway.domain.paging import Page
from gateway.domain.security_scans import ScannedItem, SecurityScan
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import Table, json_records

MAX_SCANS = 100
KEPT_SCANS = 500
PRUNE = """
    DELETE FROM security_scans WHERE id IN (SELECT id FROM security_scans ORDER BY id DESC LIMIT 100 OFFSET :kept)
"""


class SecurityScanRepository(Table[SecurityScan]):
    """The table of security scans."""

    def __init__(self) -> None:
        super().__init__("security_scans", SecurityScan, codecs={"items": json_records(ScannedItem)}, id_prefix="run")

    def insert(self, tx: Transaction, record: SecurityScan, **extra: object) -> None:
        """Keep a scan, and delete the oldest beyond `KEPT_SCANS`."""
        super().insert(tx, record, **extra)
        tx.execute(PRUNE, {"kept": KEPT_SCANS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[SecurityScan]:
        """List scans, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor belongs to another list.
        """
        return self.read_page(tx, Where(), ("security_scans",), limit=limit, highest=MAX_SCANS, cursor=cursor)
