"""Run and store trust audits, and show the posture and threat scores with their parts and history."""

from dataclasses import dataclass, fields, replace

from gateway.clock import Clock, Ids
from gateway.domain.posture import DAY_MS, PosturePoint, TrustAudit, trust_audit
from gateway.domain.principals import Principal, RequestContext, local
from gateway.services.audit import Audit
from gateway.services.posture import Posture, PostureReport
from gateway.services.resource import Resource
from gateway.services.running import THIS_SHELL
from gateway.store.database import Transaction
from gateway.store.store import Store

POINT_MS = 5 * 60_000
POINTS_KEPT_MS = 90 * DAY_MS
DEFAULT_HISTORY_MS = DAY_MS
MAX_POINTS = 500


@dataclass(frozen=True, slots=True)
class PostureView(PostureReport):
    """Both scores with their parts and history.

    history: points five minutes apart, oldest first; the last point holds the present scores.
    """

    history: tuple[PosturePoint, ...]


class TrustAudits(Resource[TrustAudit]):
    """The trust audits of this database. The edges check who may run one."""

    noun = "trust audit"
    resource_type = "trust_audit"
    repository = "trust_audits"

    def __init__(self, *, posture: Posture, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        super().__init__(store=store, clock=clock, ids=ids, audit=audit)
        self._posture = posture

    async def run(self, principal: Principal, context: RequestContext) -> TrustAudit:
        """Run every check and store the result. A run over the settings of a shell is not stored.

        Raises:
            AuditUnavailable: the run was not stored.
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

        def work(tx: Transaction) -> TrustAudit:
            self._store.trust_audits.insert(tx, run)
            details = {"score": run.score, "passed": run.passed, "warned": run.warned, "failed": run.failed}
            self._append(tx, "run", principal, context, id=run.id, details=details)
            return run

        return await self._audit.commit(work)

    async def view(self, since: int | None = None) -> PostureView:
        """Return both scores with their parts and their history. since: by default a day ago."""
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> PostureView:
            points = self._store.trust_audits.points(tx, since=now_at - DEFAULT_HISTORY_MS if since is None else since)
            report = self._posture.report(tx)
            history = thinned((*points, PosturePoint(now_at, report.threat_score, report.posture_score)))
            return PostureView(**{one.name: getattr(report, one.name) for one in fields(report)}, history=history)

        return await self._store.db.read(work)

    async def record_scores(self) -> None:
        """Store both scores as one point of their history, and run the checks when the last run is a day old."""
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> bool:
            latest = self._store.trust_audits.latest(tx)
            point = replace(self._posture.point(tx), occurred_at=now_at - now_at % POINT_MS)
            self._store.trust_audits.prune_points(tx, before=now_at - POINTS_KEPT_MS)
            is_first = self._store.trust_audits.insert_point(tx, point)
            return is_first and latest is not None and now_at - latest.occurred_at >= DAY_MS

        # Only the worker whose point is the first of its five minutes runs the checks.
        if await self._store.db.write(work):
            await self.run(local("gateway"), RequestContext(request_id=self._ids.new("req")))


def thinned(points: tuple[PosturePoint, ...]) -> tuple[PosturePoint, ...]:
    """Return at most `MAX_POINTS` evenly spaced points, the newest included."""
    step = -(-len(points) // MAX_POINTS) if points else 1
    return tuple(reversed(points[::-1][::step]))
