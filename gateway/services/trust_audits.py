"""Run and store trust audits, and compute the posture and threat scores with their parts and history.

`trust_facts` reads the facts of the database and the host. The checks and formulas are pure functions in `domain/`.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import anyio
from anyio import to_thread

from gateway.domain.alerts import MAX_ALERT_LIMIT, AlertFilter, AlertSource
from gateway.domain.audit import MAX_AUDIT_LIMIT, ChainReport
from gateway.domain.fleet import STALE_MS
from gateway.domain.policies import ShieldMode
from gateway.domain.posture import (
    DAY_MS,
    Activity,
    Check,
    CheckStatus,
    PosturePoint,
    ThreatPart,
    TrustAudit,
    posture_score,
    threat_parts,
    threat_score,
)
from gateway.domain.principals import Caller, RequestContext, local
from gateway.domain.trust_audit_facts import Facts, RunningGateway
from gateway.domain.trust_audits import run as run_checks
from gateway.errors import GatewayError
from gateway.records import project
from gateway.services.archive_check import archive_problem
from gateway.services.resource import Resource
from gateway.services.running import THIS_SHELL, Running
from gateway.services.trust_facts import file_facts, keys_observed, stored_facts
from gateway.shield import data_files
from gateway.shield.data_files import RULES_FILE
from gateway.shield.suite import run_examples
from gateway.store.database import Transaction

AUTH_FAILURES = ("api_key_refused", "sign_in_failed", "sign_in_throttled", "session_refused")
POINT_MS = 5 * 60_000
POINTS_KEPT_MS = 90 * DAY_MS
DEFAULT_HISTORY_MS = DAY_MS
MAX_POINTS = 500


@dataclass(frozen=True, slots=True)
class PostureReport:
    """The two scores, the parts of the threat score, and the state of each service.

    posture_score: the score of the newest trust audit, None before the first one.
    """

    posture_score: int | None
    threat_score: int
    threat: tuple[ThreatPart, ...]
    services: Mapping[str, str]
    trust_audit: TrustAudit | None


@dataclass(frozen=True, slots=True)
class PostureView(PostureReport):
    """Both scores with their parts and history.

    history: points five minutes apart, oldest first; the last point holds the present scores.
    """

    history: tuple[PosturePoint, ...]


class TrustAudits(Resource[TrustAudit]):
    """The trust audits of this database, and its scores: posture (the configuration) and threat (the events).

    The edges check who may run an audit.
    """

    noun, nouns = "trust audit", "trust audits"

    running: Running

    _lock: anyio.Lock = field(init=False, default_factory=anyio.Lock)

    async def run(self, caller: Caller) -> TrustAudit:
        """Run every check and store the result, unless it is over the settings of a shell. Raises AuditUnavailable."""
        settings_of, checks = await self.check()
        counts = Counter(check.status for check in checks)
        run = TrustAudit(
            id=self.ids.new("run"),
            occurred_at=self.clock.now_at(),
            started_by=caller.principal.name,
            settings_of=settings_of,
            score=posture_score(checks),
            passed=counts[CheckStatus.PASS],
            warned=counts[CheckStatus.WARN],
            failed=counts[CheckStatus.FAIL],
            skipped=counts[CheckStatus.NOT_APPLICABLE],
            checks=tuple(checks),
        )
        if settings_of == THIS_SHELL:
            return run

        def work(tx: Transaction) -> TrustAudit:
            self.store.trust_audits.insert(tx, run)
            details = {"score": run.score, "passed": run.passed, "warned": run.warned, "failed": run.failed}
            self.audit.append_change(tx, "trust_audit_run", caller, "trust_audit", run.id, details=details)
            return run

        return await self.audit.commit(work)

    async def view(self, since: int | None = None) -> PostureView:
        """Return both scores with their parts and their history. since: by default a day ago."""
        now_at = self.clock.now_at()

        def work(tx: Transaction) -> PostureView:
            points = self.store.trust_audits.points(tx, since=now_at - DEFAULT_HISTORY_MS if since is None else since)
            report = self.report(tx)
            points = (*points, PosturePoint(now_at, report.threat_score, report.posture_score))
            history = points[::-1][:: -(-len(points) // MAX_POINTS)][::-1]  # evenly spaced, the newest included
            return project(PostureView, report, history=history)

        return await self.store.db.read(work)

    async def record_scores(self) -> None:
        """Store both scores as one point of their history, and run the checks when the last run is a day old."""
        now_at = self.clock.now_at()

        def work(tx: Transaction) -> bool:
            latest = self.store.trust_audits.latest(tx)
            point = replace(self.point(tx), occurred_at=now_at - now_at % POINT_MS)
            self.store.trust_audits.prune_points(tx, before=now_at - POINTS_KEPT_MS)
            is_first = self.store.trust_audits.insert_point(tx, point)
            return is_first and latest is not None and now_at - latest.occurred_at >= DAY_MS

        # Only the worker whose point is the first of its five minutes runs the checks.
        if await self.store.db.write(work):
            await self.run(Caller(local("gateway"), RequestContext(request_id=self.ids.new("req"))))

    async def check(self) -> tuple[str, tuple[Check, ...]]:
        """Run every check once. Return the instance whose settings were checked, or THIS_SHELL, and the checks."""
        gateway = await self.store.db.read(self.running.checked)
        chain = None
        async with self._lock:  # one audit at a time verifies the whole chain and tries the rules
            with suppress(GatewayError):
                chain = await self.audit.verify()
            self_test = await to_thread.run_sync(self._self_test, gateway.rules_digest)
        return gateway.settings_of, run_checks(await self._facts(gateway, chain, self_test))

    def report(self, tx: Transaction) -> PostureReport:
        """Return both scores as they are now, without running a check."""
        gateway = self.running.checked(tx)
        activity, latest = self._activity(tx, gateway), self.store.trust_audits.latest(tx)
        return PostureReport(
            posture_score=latest.score if latest else None,
            threat_score=threat_score(activity),
            threat=threat_parts(activity),
            services=gateway.services,
            trust_audit=latest,
        )

    def point(self, tx: Transaction) -> PosturePoint:
        """Return both scores as they are now as one point of their history."""
        report = self.report(tx)
        return PosturePoint(self.clock.now_at(), report.threat_score, report.posture_score)

    def _self_test(self, rules_digest: str) -> dict[str, Any]:
        """Run the rules' own examples, unless the rules are the built-in ones or this process has other rules.

        The tests of a release run all examples of the built-in rules. Here they would compile every regex, which
        takes seconds of CPU and megabytes of memory.
        """
        if rules_digest == _builtin_digest():
            return {"are_rules_builtin": True, "weak_rules": ()}
        if rules_digest != self.running.shield.digest:
            return {"weak_rules": None}
        failures = run_examples(self.running.shield).failures
        return {"weak_rules": tuple(dict.fromkeys(failure.rule for failure in failures))}

    async def _facts(self, gateway: RunningGateway, chain: ChainReport | None, self_test: Mapping[str, Any]) -> Facts:
        now_at, folder = self.clock.now_at(), self.running.settings.data_dir
        return Facts(
            **asdict(gateway.facts),
            now_at=now_at,
            in_memory=folder == ":memory:",
            audit_events=chain.events if chain else None,
            chain_problem=None if chain is None else "" if chain.ok else chain.reason or "the chain is broken",
            archive_problem=await to_thread.run_sync(archive_problem, gateway.archive),
            **await to_thread.run_sync(file_facts, folder, gateway.tls_key),
            **await self.store.db.read(lambda tx: stored_facts(self.store, tx, gateway, now_at)),
            **self_test,
        )

    def _activity(self, tx: Transaction, gateway: RunningGateway) -> Activity:
        """Read the events of the last 24 hours, the newest 1,000 of each kind: more would change no score."""
        now_at = self.clock.now_at()
        since = now_at - DAY_MS

        def times_at(*actions: str) -> list[int]:
            audit = self.store.audit
            return [at for one in actions for at in audit.times_at(tx, one, since=since, limit=MAX_AUDIT_LIMIT)]

        alerts = self.store.alerts.page(tx, AlertFilter(scope="active", limit=MAX_ALERT_LIMIT)).items
        budget_alerts = AlertFilter(source=AlertSource.BUDGET, since=since, limit=MAX_ALERT_LIMIT)
        is_observing = gateway.facts.shield_mode != ShieldMode.BLOCK.value
        beats = self.store.instances.all(tx)
        return Activity(
            now_at=now_at,
            blocks_at=times_at("shield_scan_block", "chat_blocked"),
            alerts=alerts,
            auth_failures_at=times_at(*AUTH_FAILURES),
            is_bypassed=is_observing or bool(keys_observed(self.store, tx, now_at)),
            budget_breaches_at=[alert.last_seen_at for alert in self.store.alerts.page(tx, budget_alerts).items],
            offline_share=sum(now_at - one.last_seen_at > STALE_MS for one in beats) / len(beats) if beats else 0.0,
        )


@cache
def _builtin_digest() -> str:
    return hashlib.sha256(data_files.read(RULES_FILE)).hexdigest()
