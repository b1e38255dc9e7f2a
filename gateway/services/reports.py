"""Reports: make them from stored data, keep them as whole documents, and repeat them on a schedule."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Annotated

import anyio
import anyio.to_thread

from gateway.domain.posture import PosturePoint
from gateway.domain.principals import Caller, Principal, RequestContext, local
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
    bucket_ms,
)
from gateway.errors import Conflict, NotFound, PermissionDenied
from gateway.schema import Bounds, ByTime
from gateway.services.report_sections import SECTIONS, Source
from gateway.services.resource import Resource, patched
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.strict_json import TIME_PATTERN, read_time

Progress = Callable[[int, int], Awaitable[None]]
"""Awaited after each section: how many are done, and how many there are."""
_Time = Annotated[
    int, Bounds(1, 40, promise=TIME_PATTERN), "An RFC 3339 time, a date, or an age such as 7d.", ByTime(read_time)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReport:
    """A report to make. since, until: Unix milliseconds; the last seven days by default."""

    type: ReportType
    format: ReportFormat = ReportFormat.HTML
    since: _Time | None = None
    until: _Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule to create."""

    type: ReportType
    every: Every
    format: ReportFormat = ReportFormat.HTML
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSchedule:
    """Changes of a schedule; None leaves a field as it is."""

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


class Reports(Resource[Report]):
    """The reports of this database. The edges check who may read reports, this class who may read each type."""

    noun, nouns = "report", "reports"

    scores: Callable[[Transaction], PosturePoint]
    # Writing a document keeps a processor busy.
    _limiter: anyio.CapacityLimiter = field(init=False, default_factory=partial(anyio.CapacityLimiter, 1))

    async def make(
        self, caller: Caller, wanted: NewReport, *, progress: Progress | None = None, schedule: str | None = None
    ) -> MadeReport:
        """Make a report, store it, and return it with its document.

        Raises:
            PermissionDenied: it shows data that the caller may not see. AuditUnavailable: it was not stored.
            Conflict: the period ends before it begins, or is too long.
        """
        _check_may_see(caller.principal, wanted.type)
        body = await self._body(caller.principal.name, wanted, progress)
        document = await anyio.to_thread.run_sync(write_report, body, wanted.format, limiter=self._limiter)
        raw = document.encode()
        report = Report(
            id=self.ids.new("rep"),
            type=wanted.type,
            format=wanted.format,
            since_at=body.since_at,
            until_at=body.until_at,
            created_at=body.made_at,
            created_by=caller.principal.name,
            schedule=schedule,
            document_bytes=len(raw),
            document_sha256=hashlib.sha256(raw).hexdigest(),
        )

        def work(tx: Transaction) -> MadeReport:
            self.store.reports.insert(tx, report, document=document)
            details = {"type": report.type, "format": report.format, "sha256": report.document_sha256}
            self.audit.append_change(tx, "report_created", caller, "report", report.id, details=details)
            return MadeReport(report, document)

        return await self.audit.commit(work)

    async def document(self, principal: Principal, report_id: str) -> MadeReport:
        """Return a stored report with its document.

        Raises:
            NotFound: there is none. PermissionDenied: it shows data that the caller may not see.
        """
        found = await self.store.db.read(lambda tx: self.store.reports.document(tx, report_id))
        if found is None:
            raise NotFound("There is no such report; the oldest are removed when there are many.")
        made = MadeReport(*found)
        _check_may_see(principal, made.report.type)
        return made

    async def make_due(self) -> None:
        """Make the reports that are due, each once over all processes."""
        now_at = self.clock.now_at()
        for schedule in await self.store.db.read(self.store.report_schedules.all):
            if not schedule.enabled or schedule.next_at > now_at:
                continue
            span = EVERY_MS[schedule.every]
            next_at = schedule.next_at + span * (1 + (now_at - schedule.next_at) // span)
            claim = partial(self.store.report_schedules.advance, schedule=schedule, next_at=next_at, now_at=now_at)
            if await self.store.db.write(claim):
                until = next_at - span
                wanted = NewReport(type=schedule.type, format=schedule.format, since=until - span, until=until)
                context = RequestContext(request_id=self.ids.new("req"))
                await self.make(Caller(local("gateway"), context), wanted, schedule=schedule.id)

    async def _body(self, made_by: str, wanted: NewReport, progress: Progress | None) -> ReportBody:
        now_at = self.clock.now_at()
        until_at = now_at if wanted.until is None else wanted.until
        since_at = until_at - DEFAULT_PERIOD_MS if wanted.since is None else wanted.since
        if since_at >= until_at:
            raise Conflict("since must be before until.", param="since")
        if until_at - since_at > MAX_PERIOD_MS or since_at < 0:
            raise Conflict("A report is about ten years at the most.", param="since")
        source = Source(self.store, since_at, until_at, bucket_ms(since_at, until_at), now_at, self.scores)
        makers = SECTIONS[wanted.type]
        sections = []
        for number, make in enumerate(makers, 1):
            sections.append(await self.store.db.read(partial(make, source)))
            if progress is not None:
                await progress(number, len(makers))
        return ReportBody(
            heading=wanted.type.heading,
            type=wanted.type.value,
            since_at=since_at,
            until_at=until_at,
            made_at=now_at,
            made_by=made_by,
            instance_id=self.store.instance_id,
            origin=self.store.traffic.origin,
            sections=tuple(sections),
        )


class ReportSchedules(Resource[ReportSchedule]):
    """The schedules of reports."""

    noun, nouns = "schedule", "schedules"
    resource_type = "report_schedule"
    repository = "report_schedules"
    most = 50
    audited = ("type", "format", "every", "enabled")

    def _made(self, tx: AuthorityTransaction, new: NewSchedule) -> ReportSchedule:
        _check_may_see(tx.caller.principal, new.type)
        born = self._born("rsc", tx.caller.principal)
        return ReportSchedule(**asdict(new), **born, next_at=born["created_at"] + EVERY_MS[new.every])

    def _changed(self, tx: AuthorityTransaction, before: ReportSchedule, changes: ChangedSchedule) -> ReportSchedule:
        after = patched(before, changes)
        _check_may_see(tx.caller.principal, before.type)
        _check_may_see(tx.caller.principal, after.type)
        if after.every != before.every:
            after = replace(after, next_at=self.clock.now_at() + EVERY_MS[after.every])
        return after


def _check_may_see(principal: Principal, kind: ReportType) -> None:
    missing = sorted(REPORT_NEEDS.get(kind, frozenset()) - principal.permissions)
    if missing:
        raise PermissionDenied(f"A report of the type {kind.value} needs {', '.join(missing)} as well.", param="type")
