"""Reports: made from what is stored, kept as whole documents, and made again by schedules."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated

import anyio
import anyio.to_thread

from gateway.clock import Clock, Ids
from gateway.domain.paging import Page, PageQuery
from gateway.domain.posture import PosturePoint
from gateway.domain.principals import Principal, RequestContext, local
from gateway.domain.report_text import write_report
from gateway.domain.reports import (
    DEFAULT_PERIOD_MS,
    EVERY_MS,
    MAX_PERIOD_MS,
    REPORT_NEEDS,
    Every,
    Report,
    ReportBody,
    ReportFormat,
    ReportSchedule,
    ReportType,
    Section,
    bucket_ms,
)
from gateway.errors import Conflict, NotFound, PermissionDenied
from gateway.schema import Bounds, ByTime
from gateway.services.audit import Audit
from gateway.services.report_sections import SECTIONS, Make, Source
from gateway.services.resource import AuditTrail, check_version, patched
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import TIME_PATTERN, read_time

MAX_SCHEDULES = 50
Progress = Callable[[int, int], Awaitable[None]]
"""Awaited after each section: how many are done, and how many there are."""
_Time = Annotated[
    int, Bounds(1, 40, promise=TIME_PATTERN), "An RFC 3339 time, a date, or an age such as 7d.", ByTime(read_time)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReport:
    """What is said of a report. since, until: Unix milliseconds; the last seven days if not said."""

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
class ChangedSchedule:
    """What is to change of a schedule; None leaves a field as it is."""

    type: ReportType | None = None
    format: ReportFormat | None = None
    every: Every | None = None
    enabled: bool | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class MadeReport:
    """A report and its document."""

    report: Report
    document: str


class Reports:
    """The reports of this database. The edges check who may come in; what a type shows beyond that is checked here."""

    def __init__(
        self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, scores: Callable[[Transaction], PosturePoint]
    ) -> None:
        self._store = store
        self._scores = scores
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._trail = AuditTrail(audit, "report_schedule")
        self._limiter = anyio.CapacityLimiter(1)  # one drawing at a time: it keeps a processor busy

    async def make(
        self,
        principal: Principal,
        wanted: NewReport,
        context: RequestContext,
        *,
        progress: Progress | None = None,
        schedule: str | None = None,
    ) -> MadeReport:
        """Make a report, keep it, and return it with its document.

        Raises:
            PermissionDenied: it shows what the caller may not see. AuditUnavailable: it was not kept.
            Conflict: the period ends before it begins, or is too long.
        """
        _check_may_see(principal, wanted.type)
        body = await self._body(principal.name, wanted, progress)
        document = await anyio.to_thread.run_sync(write_report, body, wanted.format, limiter=self._limiter)
        raw = document.encode()
        report = Report(
            id=self._ids.new("rep"),
            type=wanted.type,
            format=wanted.format,
            since_at=body.since_at,
            until_at=body.until_at,
            created_at=body.made_at,
            created_by=principal.name,
            schedule=schedule,
            document_bytes=len(raw),
            document_sha256=hashlib.sha256(raw).hexdigest(),
        )

        def work(tx: Transaction) -> MadeReport:
            self._store.reports.insert(tx, report, document=document)
            details = {"type": report.type, "format": report.format, "sha256": report.document_sha256}
            AuditTrail(self._audit, "report").note(
                tx, "report_created", principal, context, id=report.id, details=details
            )
            return MadeReport(report, document)

        return await self._audit.commit(work)

    async def page(self, wanted: PageQuery) -> Page[Report]:
        """List kept reports, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        return await self._store.db.read(lambda tx: self._store.reports.read_page(tx, wanted))

    async def show(self, principal: Principal, report_id: str) -> MadeReport:
        """Return a kept report with its document.

        Raises:
            NotFound: there is none. PermissionDenied: it shows what the caller may not see.
        """
        found = await self._store.db.read(lambda tx: self._store.reports.document(tx, report_id))
        if found is None:
            raise NotFound("There is no such report; the oldest are removed when there are many.")
        made = MadeReport(*found)
        _check_may_see(principal, made.report.type)
        return made

    async def schedules(self) -> tuple[ReportSchedule, ...]:
        """Return all schedules, oldest first."""
        return await self._store.db.read(self._store.report_schedules.all)

    async def create_schedule(self, principal: Principal, new: NewSchedule, context: RequestContext) -> ReportSchedule:
        """Make a schedule. Its first report comes one span from now.

        Raises:
            Conflict: there are too many. AuditUnavailable: not made.
            PermissionDenied: its reports show what the caller may not see.
        """
        _check_may_see(principal, new.type)
        now_at = self._clock.now_at()
        schedule = ReportSchedule(
            id=self._ids.new("rsc"),
            type=new.type,
            format=new.format,
            every=new.every,
            enabled=new.enabled,
            next_at=now_at + EVERY_MS[new.every],
            created_at=now_at,
            created_by=principal.name,
        )

        def work(tx: Transaction) -> ReportSchedule:
            if len(self._store.report_schedules.all(tx)) >= MAX_SCHEDULES:
                raise Conflict(f"There are {MAX_SCHEDULES} schedules; remove some first.")
            self._store.report_schedules.insert(tx, schedule)
            self._trail.note(tx, "report_schedule_created", principal, context, id=schedule.id, after=_shown(schedule))
            return schedule

        return await self._audit.commit(work)

    async def change_schedule(
        self, principal: Principal, schedule_id: str, wanted: ChangedSchedule, context: RequestContext
    ) -> ReportSchedule:
        """Change a schedule.

        Raises:
            NotFound: there is none. Conflict: another version. AuditUnavailable: it was not changed.
            PermissionDenied: its reports show, or would show, what the caller may not see.
        """
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> ReportSchedule:
            before = self._find(tx, schedule_id)
            check_version(wanted.version, before.version, "schedule")
            _check_may_see(principal, before.type)
            _check_may_see(principal, wanted.type or before.type)
            after = patched(before, wanted)
            if after.every != before.every:
                after = replace(after, next_at=now_at + EVERY_MS[after.every])
            if after == before:
                return before
            self._store.report_schedules.change(tx, after)
            shown = {"before": _shown(before), "after": _shown(after)}
            self._trail.note(tx, "report_schedule_changed", principal, context, id=before.id, **shown)
            return self._find(tx, before.id)

        return await self._audit.commit(work)

    async def remove_schedule(self, principal: Principal, schedule_id: str, context: RequestContext) -> ReportSchedule:
        """Remove a schedule and return what it was. Its reports stay.

        Raises:
            NotFound: there is none. AuditUnavailable: it is still there.
        """

        def work(tx: Transaction) -> ReportSchedule:
            before = self._find(tx, schedule_id)
            self._store.report_schedules.remove(tx, before.id)
            self._trail.note(tx, "report_schedule_removed", principal, context, id=before.id, before=_shown(before))
            return before

        return await self._audit.commit(work)

    async def make_due(self) -> None:
        """Make the reports that are due, each once over all processes."""
        now_at = self._clock.now_at()
        for schedule in await self.schedules():
            if not schedule.enabled or schedule.next_at > now_at:
                continue
            span = EVERY_MS[schedule.every]
            next_at = schedule.next_at + span * (1 + (now_at - schedule.next_at) // span)

            def claim(tx: Transaction, one: ReportSchedule = schedule, at: int = next_at) -> bool:
                return self._store.report_schedules.put_off(tx, one, next_at=at, now_at=now_at)

            if await self._store.db.write(claim):
                until = next_at - span
                wanted = NewReport(type=schedule.type, format=schedule.format, since=until - span, until=until)
                context = RequestContext(request_id=self._ids.new("req"))
                await self.make(local("gateway"), wanted, context, schedule=schedule.id)

    async def _body(self, made_by: str, wanted: NewReport, progress: Progress | None) -> ReportBody:
        now_at = self._clock.now_at()
        until_at = now_at if wanted.until is None else wanted.until
        since_at = until_at - DEFAULT_PERIOD_MS if wanted.since is None else wanted.since
        if since_at >= until_at:
            raise Conflict("since must be before until.", param="since")
        if until_at - since_at > MAX_PERIOD_MS or since_at < 0:
            raise Conflict("A report is about ten years at the most.", param="since")
        makers = SECTIONS[wanted.type]
        sections = []
        for number, make in enumerate(makers, 1):
            sections.append(await self._store.db.read(self._making(make, since_at, until_at, now_at)))
            if progress is not None:
                await progress(number, len(makers))
        return ReportBody(
            type=wanted.type,
            since_at=since_at,
            until_at=until_at,
            made_at=now_at,
            made_by=made_by,
            instance_id=self._store.instance_id,
            origin=self._store.traffic.origin,
            sections=tuple(sections),
        )

    def _making(self, make: Make, since_at: int, until_at: int, now_at: int) -> Callable[[Transaction], Section]:
        step = bucket_ms(since_at, until_at)
        return lambda tx: make(Source(self._store, tx, since_at, until_at, step, now_at, self._scores))

    def _find(self, tx: Transaction, schedule_id: str) -> ReportSchedule:
        for schedule in self._store.report_schedules.all(tx):
            if schedule.id == schedule_id:
                return schedule
        raise NotFound("There is no such schedule.")


def _check_may_see(principal: Principal, kind: ReportType) -> None:
    """Check that a report of this type shows the caller nothing new.

    Raises:
        PermissionDenied: it does.
    """
    missing = sorted(REPORT_NEEDS.get(kind, frozenset()) - principal.permissions)
    if missing:
        raise PermissionDenied(f"A report of the type {kind.value} needs {', '.join(missing)} as well.", param="type")


def _shown(schedule: ReportSchedule) -> dict[str, object]:
    return {"type": schedule.type, "format": schedule.format, "every": schedule.every, "enabled": schedule.enabled}
