"""Trust audits: run, kept, listed; and the two scores with what they are made of and how they went."""

from dataclasses import dataclass, replace

from gateway.clock import Clock, Ids
from gateway.domain.paging import Page, PageQuery
from gateway.domain.posture import (
    DAY_MS,
    PosturePoint,
    TrustAudit,
    trust_audit,
)
from gateway.domain.principals import Principal, RequestContext, local
from gateway.errors import NotFound
from gateway.services.audit import Audit, source_of
from gateway.services.posture import Posture, PostureReport
from gateway.services.running import THIS_SHELL
from gateway.store.database import Transaction
from gateway.store.store import Store

POINT_MS = 5 * 60_000
POINTS_KEPT_MS = 90 * DAY_MS
DEFAULT_HISTORY_MS = DAY_MS
MAX_POINTS = 500


@dataclass(frozen=True, slots=True)
class PostureView(PostureReport):
    """Both scores with their parts, and how they went.

    history: points five minutes apart, oldest first, and the scores as they are now as the last point.
    """

    history: tuple[PosturePoint, ...]


class TrustAudits:
    """The trust audits of this database. Who may run one is checked by the edges."""

    def __init__(self, *, posture: Posture, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        self._posture = posture
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit

    async def run(self, principal: Principal, context: RequestContext) -> TrustAudit:
        """Run every check and keep what it found. Changes nothing else.

        A run over the settings of a shell is not kept: it says nothing about the gateway.

        Raises:
            AuditUnavailable: the run was not kept.
        """
        settings_of, checks = await self._posture.check()
        run = trust_audit(
            self._ids.new("run"),
            checks,
            occurred_at=self._clock.now_at(),
            started_by=principal.name,
            settings_of=settings_of,
        )
        if settings_of == THIS_SHELL:
            return run
        event = self._audit.event(
            "trust_audit_run",
            source=source_of(principal),
            principal=principal,
            request=context,
            resource_type="trust_audit",
            resource_id=run.id,
            details={"score": run.score, "passed": run.passed, "warned": run.warned, "failed": run.failed},
        )

        def work(tx: Transaction) -> TrustAudit:
            self._store.trust_audits.insert(tx, run)
            self._audit.append(tx, event)
            return run

        return await self._audit.commit(work)

    async def page(self, wanted: PageQuery) -> Page[TrustAudit]:
        """List runs, newest first.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        return await self._store.db.read(lambda tx: self._store.trust_audits.read_page(tx, wanted))

    async def show(self, run_id: str) -> TrustAudit:
        """Return one run.

        Raises:
            NotFound: there is none.
        """
        run = await self._store.db.read(lambda tx: self._store.trust_audits.by_id(tx, run_id))
        if run is None:
            raise NotFound("There is no such trust audit.")
        return run

    async def view(self, since: int | None = None) -> PostureView:
        """Return both scores, what they are made of, and their points since a time (a day ago)."""
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> PostureView:
            points = self._store.trust_audits.points(tx, since=now_at - DEFAULT_HISTORY_MS if since is None else since)
            report = self._posture.report(tx)
            return PostureView(
                posture_score=report.posture_score,
                threat_score=report.threat_score,
                threat=report.threat,
                services=report.services,
                trust_audit=report.trust_audit,
                history=thinned((*points, PosturePoint(now_at, report.threat_score, report.posture_score))),
            )

        return await self._store.db.read(work)

    async def note(self) -> None:
        """Keep both scores as one point of their course, and run the checks when the last run is a day old."""
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> bool:
            latest = self._store.trust_audits.latest(tx)
            point = replace(self._posture.point(tx), occurred_at=now_at - now_at % POINT_MS)
            self._store.trust_audits.prune_points(tx, before=now_at - POINTS_KEPT_MS)
            is_first = self._store.trust_audits.note(tx, point)
            return is_first and latest is not None and now_at - latest.occurred_at >= DAY_MS

        # Of all workers one is the first to note a point, and only that one runs what is due.
        if await self._store.db.write(work):
            await self.run(local("gateway"), RequestContext(request_id=self._ids.new("req")))


def thinned(points: tuple[PosturePoint, ...]) -> tuple[PosturePoint, ...]:
    """Return at most `MAX_POINTS` of the points, evenly taken, the newest always."""
    step = -(-len(points) // MAX_POINTS) if points else 1
    return tuple(reversed(points[::-1][::step]))
