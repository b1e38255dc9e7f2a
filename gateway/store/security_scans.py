"""Every SQL statement about security scans."""

import json

from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.security_scans import ScannedItem, SecurityScan
from gateway.schema import decode, encode
from gateway.shield.detections import Verdict
from gateway.store.database import Row, Transaction
from gateway.store.filters import Where, check_limit

MAX_SCANS = 100
KEPT_SCANS = 500
_COLUMNS = "id, occurred_at, started_by, verdict, score, scanned, blocked, reviewed, unreadable, detections, items"
INSERT = f"""
    INSERT INTO security_scans ({_COLUMNS})
    VALUES (:id, :occurred_at, :started_by, :verdict, :score, :scanned, :blocked, :reviewed, :unreadable, :detections,
            :items)
"""  # noqa: S608  # our own column names
LIST = f"SELECT {_COLUMNS} FROM security_scans"  # noqa: S608
NEWEST_FIRST = " ORDER BY id DESC LIMIT :limit"
BY_ID = f"SELECT {_COLUMNS} FROM security_scans WHERE id = :id"  # noqa: S608
PRUNE = """
    DELETE FROM security_scans WHERE id IN (SELECT id FROM security_scans ORDER BY id DESC LIMIT 100 OFFSET :kept)
"""


class SecurityScanRepository:
    """The table of security scans."""

    def insert(self, tx: Transaction, scan: SecurityScan) -> None:
        """Keep a run, and remove the oldest beyond `KEPT_SCANS`."""
        names = (
            "id",
            "occurred_at",
            "started_by",
            "score",
            "scanned",
            "blocked",
            "reviewed",
            "unreadable",
            "detections",
        )
        values: dict[str, object] = {name: getattr(scan, name) for name in names}
        items = json.dumps([encode(item) for item in scan.items], ensure_ascii=False, separators=(",", ":"))
        tx.execute(INSERT, values | {"verdict": scan.verdict.value, "items": items})
        tx.execute(PRUNE, {"kept": KEPT_SCANS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[SecurityScan]:
        """List runs, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor is of another query.
        """
        query, where = ("security_scans",), Where()
        if cursor is not None:
            where.add("id < :after", after=id_at("run", read_cursor(cursor, query, count=ID_NUMBERS)))
        params = where.params | {"limit": check_limit(limit, MAX_SCANS) + 1}
        rows = tx.query(LIST + where.sql() + NEWEST_FIRST, params)
        scans = tuple(_scan(row) for row in rows[:limit])
        following = write_cursor(query, position_of(scans[-1].id)) if len(rows) > limit else None
        return Page(scans, limit, following)

    def by_id(self, tx: Transaction, scan_id: str) -> SecurityScan | None:
        """Return one run."""
        rows = tx.query(BY_ID, {"id": scan_id})
        return _scan(rows[0]) if rows else None


def _scan(row: Row) -> SecurityScan:
    return SecurityScan(
        id=row["id"],
        occurred_at=row["occurred_at"],
        started_by=row["started_by"],
        verdict=Verdict(row["verdict"]),
        score=row["score"],
        scanned=row["scanned"],
        blocked=row["blocked"],
        reviewed=row["reviewed"],
        unreadable=row["unreadable"],
        detections=row["detections"],
        items=tuple(decode(ScannedItem, item) for item in json.loads(row["items"])),
    )
