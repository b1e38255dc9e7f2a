"""The rows of reports and their schedules on the internal API. Rules are kept in `services.reports`."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.domain.reports import Report, ReportSchedule
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, limit
from gateway.services.reports import ChangedSchedule, NewReport, NewSchedule
from gateway.store.reports import MAX_REPORTS

DEFAULT_REPORTS = 20


@dataclass(frozen=True, slots=True)
class ReportsWanted:
    """Which page of reports."""

    limit: int = DEFAULT_REPORTS
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSchedule(ChangedSchedule):
    """What is to change of the schedule `id`."""

    id: str


async def list_reports(
    gateway: Gateway, who: Principal, wanted: ReportsWanted, context: RequestContext
) -> Page[Report]:
    """Return a page of reports."""
    return await gateway.reports.page(wanted.limit, wanted.cursor)


async def make_report(gateway: Gateway, who: Principal, command: NewReport, context: RequestContext) -> Report:
    """Make a report."""
    return (await gateway.reports.make(who, command, context)).report


async def list_schedules(
    gateway: Gateway, who: Principal, command: None, context: RequestContext
) -> Page[ReportSchedule]:
    """Return all schedules as one page."""
    schedules = await gateway.reports.schedules()
    return Page(schedules, len(schedules), None)


async def create_schedule(
    gateway: Gateway, who: Principal, command: NewSchedule, context: RequestContext
) -> ReportSchedule:
    """Make a schedule."""
    return await gateway.reports.create_schedule(who, command, context)


async def change_schedule(
    gateway: Gateway, who: Principal, command: PatchSchedule, context: RequestContext
) -> ReportSchedule:
    """Change a schedule."""
    return await gateway.reports.change_schedule(who, command.id, command, context)


async def remove_schedule(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> ReportSchedule:
    """Remove a schedule and show it a last time."""
    return await gateway.reports.remove_schedule(who, command.id, context)


REPORT_OPERATIONS = (
    Operation(
        name="reports.list",
        route=("GET", "/api/reports"),
        door=Door.SESSION,
        needs=Permission.REPORTS_READ,
        answer=Answer.PAGE,
        takes=ReportsWanted,
        gives=Report,
        call=list_reports,
        query=(limit(MAX_REPORTS, DEFAULT_REPORTS), cursor()),
        summary="List the reports that are kept, newest first.",
    ),
    Operation(
        name="reports.make",
        route=("POST", "/api/reports"),
        door=Door.SESSION,
        needs=Permission.REPORTS_MANAGE,
        takes=NewReport,
        gives=Report,
        call=make_report,
        status=201,
        fails=("audit_unavailable",),
        summary="Make a report: `type`, `format`?, `since`?, `until`? (the last seven days).",
    ),
    Operation(
        name="reports.document",
        route=("GET", "/api/reports/{id}"),
        door=Door.SESSION,
        needs=Permission.REPORTS_READ,
        takes=ById,
        answer=Answer.BARE,
        summary="Download the document of one report, whole by itself.",
    ),
    Operation(
        name="report_schedules.list",
        route=("GET", "/api/report-schedules"),
        door=Door.SESSION,
        needs=Permission.REPORTS_READ,
        answer=Answer.PAGE,
        gives=ReportSchedule,
        call=list_schedules,
        summary="List the schedules of reports, oldest first.",
    ),
    Operation(
        name="report_schedules.create",
        route=("POST", "/api/report-schedules"),
        door=Door.SESSION,
        needs=Permission.REPORTS_MANAGE,
        takes=NewSchedule,
        gives=ReportSchedule,
        call=create_schedule,
        status=201,
        summary="Make a schedule: `type`, `every` (`day`, `week` or `month`), `format`?. Each is about its span.",
    ),
    Operation(
        name="report_schedules.change",
        route=("PATCH", "/api/report-schedules/{id}"),
        door=Door.SESSION,
        needs=Permission.REPORTS_MANAGE,
        takes=PatchSchedule,
        gives=ReportSchedule,
        call=change_schedule,
        summary="Change a schedule. `version` or `If-Match` guards.",
    ),
    Operation(
        name="report_schedules.remove",
        route=("DELETE", "/api/report-schedules/{id}"),
        door=Door.SESSION,
        needs=Permission.REPORTS_MANAGE,
        takes=ById,
        gives=ReportSchedule,
        call=remove_schedule,
        summary="Remove a schedule; its reports stay.",
    ),
)
