"""Store reports and their schedules. The queries of reports are in `report_queries`."""

from gateway.domain.reports import KEPT_REPORTS, MAX_REPORTS, Report, ReportSchedule
from gateway.store.database import Transaction
from gateway.store.table import Table

_TYPE = {"type": "report_type", "format": "report_format"}
ADVANCE = """
    UPDATE report_schedules SET next_at = :next_at
     WHERE id = :id AND enabled = 1 AND next_at = :due_at AND next_at <= :now_at
"""


class ReportRepository(Table[Report]):
    """The reports, each with its document."""

    def __init__(self) -> None:
        super().__init__(
            "reports", Report, columns=_TYPE, extra=("document",), page_limit=MAX_REPORTS, kept=KEPT_REPORTS
        )

    def document(self, tx: Transaction, report_id: str) -> tuple[Report, str] | None:
        rows = tx.query(f"SELECT {self.names}, document FROM reports WHERE id = :id", {"id": report_id})  # noqa: S608
        return (self.record(rows[0]), str(rows[0]["document"])) if rows else None


class ReportScheduleRepository(Table[ReportSchedule]):
    """The schedules of reports."""

    def __init__(self) -> None:
        super().__init__("report_schedules", ReportSchedule, columns=_TYPE)

    def advance(self, tx: Transaction, schedule: ReportSchedule, *, next_at: int, now_at: int) -> bool:
        """Move a schedule to its next time. Return whether it was due and no other process had moved it."""
        values = {"id": schedule.id, "due_at": schedule.next_at, "next_at": next_at, "now_at": now_at}
        return tx.execute(ADVANCE, values) == 1
