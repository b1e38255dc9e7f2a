"""The rows of reports and their schedules on the internal API. Rules are kept in `services.reports`."""

from dataclasses import dataclass
from typing import Annotated

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.domain.reports import Every, Report, ReportFormat, ReportSchedule, ReportType
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, limit
from gateway.schema import Bounds
from gateway.services.reports import NewReport, WantedSchedule
from gateway.store.reports import MAX_REPORTS
from gateway.wire import TIME_PATTERN, read_time

DEFAULT_REPORTS = 20
_Time = Annotated[str, Bounds(1, 40, promise=TIME_PATTERN), "An RFC 3339 time, a date, or an age such as 7d."]


@dataclass(frozen=True, slots=True)
class ReportsWanted:
    """Which page of reports."""

    limit: int = DEFAULT_REPORTS
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeReport:
    """A report to be made; of the last seven days if nothing is said."""

    type: ReportType
    format: ReportFormat = ReportFormat.HTML
    since: _Time | None = None
    until: _Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A report that is to make itself."""

    type: ReportType
    every: Every
    format: ReportFormat = ReportFormat.HTML
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSchedule:
    """What is to change of the schedule `id`."""

    id: str
    type: ReportType | None = None
    format: ReportFormat | None = None
    every: Every | None = None
    enabled: bool | None = None
    version: int | None = None


async def list_reports(
    gateway: Gateway, who: Principal, wanted: ReportsWanted, context: RequestContext
) -> Page[Report]:
    """Return a page of reports."""
    return await gateway.reports.page(wanted.limit, wanted.cursor)


async def make_report(gateway: Gateway, who: Principal, command: MakeReport, context: RequestContext) -> Report:
    """Make a report."""
    now_at = gateway.clock.now_at()
    wanted = NewReport(
        type=command.type,
        format=command.format,
        since=None if command.since is None else read_time(command.since, param="since", now_at=now_at),
        until=None if command.until is None else read_time(command.until, param="until", now_at=now_at),
    )
    return (await gateway.reports.make(who, wanted, context)).report


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
    wanted = WantedSchedule(type=command.type, format=command.format, every=command.every, enabled=command.enabled)
    return await gateway.reports.create_schedule(who, wanted, context)


async def change_schedule(
    gateway: Gateway, who: Principal, command: PatchSchedule, context: RequestContext
) -> ReportSchedule:
    """Change a schedule."""
    wanted = WantedSchedule(
        type=command.type,
        format=command.format,
        every=command.every,
        enabled=command.enabled,
        version=command.version,
    )
    return await gateway.reports.change_schedule(who, command.id, wanted, context)


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
        takes=MakeReport,
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
