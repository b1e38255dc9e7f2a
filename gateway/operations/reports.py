"""The rows of reports and their schedules on the internal API. The rules are in `services.reports`."""

from gateway.domain.principals import Permission
from gateway.domain.reports import MAX_REPORTS, Report, ReportSchedule
from gateway.operations.operation import ById
from gateway.operations.rows import Noun, PageOf20, paging, row
from gateway.services.reports import ChangedSchedule, NewReport, NewSchedule
from gateway.store.tables import REPORT_SORTS

_REPORTS = Noun("reports", Report, Permission.REPORTS_READ, Permission.REPORTS_MANAGE)
_SCHEDULES = Noun("report_schedules", ReportSchedule, Permission.REPORTS_READ, Permission.REPORTS_MANAGE)

_PAGE = paging(MAX_REPORTS, 20, REPORT_SORTS)

OPERATIONS = (
    _REPORTS.list("List the stored reports, newest first.", takes=PageOf20, query=_PAGE),
    _REPORTS.create(
        NewReport,
        "Make a report: `type`, `format`?, `since`?, `until`? (the last seven days).",
        verb="make",
        method="make",
        view=lambda gateway, made: made.report,
        fails=("audit_unavailable",),
    ),
    row(
        "reports.document",
        "GET /api/reports/{id}",
        Permission.REPORTS_READ,
        "Download one report as a self-contained document.",
        takes=ById,
    ),
    _SCHEDULES.list("List the schedules of reports, oldest first."),
    _SCHEDULES.create(
        NewSchedule, "Make a schedule: `type`, `every` (`day`, `week` or `month`), `format`?. Each is about its span."
    ),
    _SCHEDULES.change(ChangedSchedule, "Change a schedule. `version` or `If-Match` guards."),
    _SCHEDULES.remove("Remove a schedule; its reports stay."),
)
