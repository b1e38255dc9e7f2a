"""Store reports and their schedules. The queries of reports are in `report_queries`."""

from gateway.domain.paging import Page
from gateway.domain.reports import Report, ReportSchedule
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import Table

MAX_REPORTS = 100
KEPT_REPORTS = 200
_TYPE = {"type": "report_type", "format": "report_format"}
REPORTS = Table("reports", Report, columns=_TYPE, extra=("document",), id_prefix="rep")
DOCUMENT = f"SELECT {REPORTS.names}, document FROM reports WHERE id = :id"  # noqa: S608  # our own column names
PRUNE = "DELETE FROM reports WHERE id IN (SELECT id FROM reports ORDER BY id DESC LIMIT 100 OFFSET :kept)"
SCHEDULES = Table("report_schedules", ReportSchedule, columns=_TYPE)
PUT_OFF = """
    UPDATE report_schedules SET next_at = :next_at
     WHERE id = :id AND enabled = 1 AND next_at = :due_at AND next_at <= :now_at
"""


class ReportRepository:
    """The tables of reports and of schedules."""

    def insert(self, tx: Transaction, report: Report, document: str) -> None:
        """Keep a report, and delete the oldest beyond `KEPT_REPORTS`."""
        REPORTS.insert(tx, report, document=document)
        tx.execute(PRUNE, {"kept": KEPT_REPORTS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[Report]:
        """List reports, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor belongs to another list.
        """
        return REPORTS.read_page(tx, Where(), ("reports",), limit=limit, highest=MAX_REPORTS, cursor=cursor)

    def document(self, tx: Transaction, report_id: str) -> tuple[Report, str] | None:
        """Return a report and its document."""
        rows = tx.query(DOCUMENT, {"id": report_id})
        return (REPORTS.record(rows[0]), str(rows[0]["document"])) if rows else None

    def insert_schedule(self, tx: Transaction, schedule: ReportSchedule) -> None:
        """Insert a schedule."""
        SCHEDULES.insert(tx, schedule)

    def schedules(self, tx: Transaction) -> tuple[ReportSchedule, ...]:
        """Return all schedules, oldest first."""
        return SCHEDULES.all(tx)

    def change_schedule(self, tx: Transaction, schedule: ReportSchedule) -> None:
        """Write a schedule and raise its version."""
        SCHEDULES.change(tx, schedule)

    def put_off(self, tx: Transaction, schedule: ReportSchedule, *, next_at: int, now_at: int) -> bool:
        """Move a schedule to its next time. Return whether it was due and no other process had moved it."""
        values = {"id": schedule.id, "due_at": schedule.next_at, "next_at": next_at, "now_at": now_at}
        return tx.execute(PUT_OFF, values) == 1

    def remove_schedule(self, tx: Transaction, schedule_id: str) -> None:
        """Delete a schedule."""
        SCHEDULES.remove(tx, schedule_id)
