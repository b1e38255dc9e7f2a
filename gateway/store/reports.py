"""Every SQL statement about kept reports and their schedules. What reports ask stands in `report_queries`."""

from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.reports import Report, ReportFormat, ReportSchedule, ReportType
from gateway.store.database import Row, Transaction
from gateway.store.filters import Where, check_limit

MAX_REPORTS = 100
KEPT_REPORTS = 200
_COLUMNS = """
    id, report_type, report_format, since_at, until_at, created_at, created_by, schedule, document_bytes,
    document_sha256
"""
INSERT = f"""
    INSERT INTO reports ({_COLUMNS}, document)
    VALUES (:id, :report_type, :report_format, :since_at, :until_at, :created_at, :created_by, :schedule,
            :document_bytes, :document_sha256, :document)
"""  # noqa: S608  # our own column names
LIST = f"SELECT {_COLUMNS} FROM reports"  # noqa: S608
NEWEST_FIRST = " ORDER BY id DESC LIMIT :limit"
DOCUMENT = f"SELECT {_COLUMNS}, document FROM reports WHERE id = :id"  # noqa: S608
PRUNE = "DELETE FROM reports WHERE id IN (SELECT id FROM reports ORDER BY id DESC LIMIT 100 OFFSET :kept)"
_SCHEDULE = "id, report_type, report_format, every, enabled, next_at, created_at, created_by, version"
INSERT_SCHEDULE = f"""
    INSERT INTO report_schedules ({_SCHEDULE})
    VALUES (:id, :report_type, :report_format, :every, :enabled, :next_at, :created_at, :created_by, :version)
"""  # noqa: S608
SCHEDULES = f"SELECT {_SCHEDULE} FROM report_schedules ORDER BY id"  # noqa: S608
CHANGE_SCHEDULE = """
    UPDATE report_schedules
       SET report_type = :report_type, report_format = :report_format, every = :every, enabled = :enabled,
           next_at = :next_at, version = version + 1
     WHERE id = :id
"""
PUT_OFF = """
    UPDATE report_schedules SET next_at = :next_at
     WHERE id = :id AND enabled = 1 AND next_at = :due_at AND next_at <= :now_at
"""
REMOVE_SCHEDULE = "DELETE FROM report_schedules WHERE id = :id"


class ReportRepository:
    """The tables of reports and of schedules."""

    def insert(self, tx: Transaction, report: Report, document: str) -> None:
        """Keep a report, and remove the oldest beyond `KEPT_REPORTS`."""
        values = {
            "id": report.id,
            "report_type": report.type.value,
            "report_format": report.format.value,
            "since_at": report.since_at,
            "until_at": report.until_at,
            "created_at": report.created_at,
            "created_by": report.created_by,
            "schedule": report.schedule,
            "document_bytes": report.document_bytes,
            "document_sha256": report.document_sha256,
            "document": document,
        }
        tx.execute(INSERT, values)
        tx.execute(PRUNE, {"kept": KEPT_REPORTS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[Report]:
        """List reports, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor is of another query.
        """
        query, where = ("reports",), Where()
        if cursor is not None:
            where.add("id < :after", after=id_at("rep", read_cursor(cursor, query, count=ID_NUMBERS)))
        params = where.params | {"limit": check_limit(limit, MAX_REPORTS) + 1}
        rows = tx.query(LIST + where.sql() + NEWEST_FIRST, params)
        reports = tuple(_report(row) for row in rows[:limit])
        following = write_cursor(query, position_of(reports[-1].id)) if len(rows) > limit else None
        return Page(reports, limit, following)

    def document(self, tx: Transaction, report_id: str) -> tuple[Report, str] | None:
        """Return a report and its document."""
        rows = tx.query(DOCUMENT, {"id": report_id})
        return (_report(rows[0]), str(rows[0]["document"])) if rows else None

    def insert_schedule(self, tx: Transaction, schedule: ReportSchedule) -> None:
        """Insert a schedule."""
        tx.execute(INSERT_SCHEDULE, _values(schedule) | {"version": schedule.version})

    def schedules(self, tx: Transaction) -> tuple[ReportSchedule, ...]:
        """Return all schedules, oldest first."""
        return tuple(_schedule(row) for row in tx.query(SCHEDULES))

    def change_schedule(self, tx: Transaction, schedule: ReportSchedule) -> None:
        """Write a schedule and raise its version."""
        values = _values(schedule)
        tx.execute(CHANGE_SCHEDULE, {key: values[key] for key in values if key not in ("created_at", "created_by")})

    def put_off(self, tx: Transaction, schedule: ReportSchedule, *, next_at: int, now_at: int) -> bool:
        """Move a schedule on to its next time; tell whether it was due and nobody else had moved it."""
        values = {"id": schedule.id, "due_at": schedule.next_at, "next_at": next_at, "now_at": now_at}
        return tx.execute(PUT_OFF, values) == 1

    def remove_schedule(self, tx: Transaction, schedule_id: str) -> None:
        """Delete a schedule."""
        tx.execute(REMOVE_SCHEDULE, {"id": schedule_id})


def _values(schedule: ReportSchedule) -> dict[str, object]:
    return {
        "id": schedule.id,
        "report_type": schedule.type.value,
        "report_format": schedule.format.value,
        "every": schedule.every,
        "enabled": int(schedule.enabled),
        "next_at": schedule.next_at,
        "created_at": schedule.created_at,
        "created_by": schedule.created_by,
    }


def _report(row: Row) -> Report:
    return Report(
        id=row["id"],
        type=ReportType(row["report_type"]),
        format=ReportFormat(row["report_format"]),
        since_at=row["since_at"],
        until_at=row["until_at"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        schedule=row["schedule"],
        document_bytes=row["document_bytes"],
        document_sha256=row["document_sha256"],
    )


def _schedule(row: Row) -> ReportSchedule:
    return ReportSchedule(
        id=row["id"],
        type=ReportType(row["report_type"]),
        format=ReportFormat(row["report_format"]),
        every=row["every"],
        enabled=bool(row["enabled"]),
        next_at=row["next_at"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        version=row["version"],
    )
