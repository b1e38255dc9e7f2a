"""Run the validation suite of the shield, store the result and compare it with the last run.

The texts of the suite raise no alert and do not count as scans or traffic.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from gateway.domain.detectors import Detector
from gateway.domain.principals import Caller
from gateway.errors import GatewayError
from gateway.llm.base import Leaf, LeafKind
from gateway.schema import Bounds, check, decode, encode
from gateway.services.core import Service
from gateway.services.detector_calls import ERROR, DetectorCalls
from gateway.services.rules import Rules
from gateway.shield import Shield
from gateway.shield.detections import CATEGORIES, Verdict
from gateway.shield.scoring import judge
from gateway.shield.suite import Case, SuiteReport, chosen, percentile, run_suite
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import read_json, write_json

T = TypeVar("T")
TAG = "shield-test"
_LAST = "shield_tests"
_HISTORY = "shield_tests_history"
_MOST_HISTORY = 50
_REPORTED_EVERY = 25
_AUDITED = ("category", "include_known_gaps", "cases", "failures", "detection_rate", "false_positive_rate")
Progress = Callable[[int, int], Coroutine[None, None, None]]
"""Awaited every 25 cases: how many are done, and how many there are."""
_Category = Annotated[str, Bounds(words=CATEGORIES)]


@dataclass(frozen=True, slots=True)
class RunShieldTests:
    """Which cases of the validation suite to run."""

    category: Annotated[_Category | None, "Only cases of this category, such as injection or secret."] = None
    include_known_gaps: Annotated[bool, "Count the attacks that the rules are known to miss as well."] = False
    detectors: Annotated[bool, "Ask each enabled detector about every case, alone and beside the shield."] = False


@dataclass(frozen=True, slots=True)
class ShieldTestsChange:
    """This run compared with the last run of the same cases.

    detection_rate, false_positive_rate: differences, None where either run had no such case. newly_failing,
    newly_holding: ids of cases whose verdict was the expected one in only one of the two runs.
    """

    since_at: int
    rules_changed: bool
    detection_rate: float | None
    false_positive_rate: float | None
    p50_us: int
    p95_us: int
    newly_failing: tuple[str, ...]
    newly_holding: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DetectorComparison:
    """One detector over the cases of its directions. found: attacks with REVIEW or BLOCK, or that it objects to.

    flagged: the same of controls. *_alone: by the detector without the shield; *_shield: by the shield without it.
    decided: cases whose verdict it changed. errors: cases without a judgement. p50_us, p95_us: of one judgement.
    """

    name: str
    attacks: int
    found_alone: int
    found_shield: int
    found: int
    controls: int
    flagged_alone: int
    flagged_shield: int
    flagged: int
    decided: int
    errors: int
    p50_us: int
    p95_us: int


@dataclass(frozen=True, slots=True)
class ShieldTestsRun:
    """One run. rules_digest: SHA-256 of the rule file. change: None when there was no such run before."""

    tag: str
    ran_at: int
    ran_by: str
    category: str | None
    include_known_gaps: bool
    rules: int
    rules_digest: str
    report: SuiteReport
    change: ShieldTestsChange | None
    detectors: tuple[DetectorComparison, ...] = ()


@dataclass(frozen=True, slots=True)
class LastShieldTests:
    """The last run of any cases; None before the first."""

    last: ShieldTestsRun | None


@dataclass(frozen=True, slots=True)
class ShieldTestsUnderWay:
    """A run that this process has begun. done, total: cases."""

    began_at: int
    began_by: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ShieldTestsBrief:
    """The stored summary of an older run."""

    ran_at: int
    ran_by: str
    category: str | None
    include_known_gaps: bool
    cases: int
    failures: int
    detection_rate: float | None
    false_positive_rate: float | None
    p50_us: int
    p95_us: int
    rules_digest: str


@dataclass(frozen=True, slots=True)
class ShieldTestsState:
    """The last run, summaries of all runs (newest first), and the run that is under way."""

    last: ShieldTestsRun | None
    history: tuple[ShieldTestsBrief, ...]
    running: ShieldTestsUnderWay | None


class ShieldTests(Service):
    """The validation suite over the rules in use. The edges check who may run it."""

    shield: Shield
    rules: Rules | None = None
    detectors: DetectorCalls | None = None
    _running: ShieldTestsUnderWay | None = field(default=None, init=False)
    # A run keeps a processor busy.
    _limiter: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, 1), init=False)

    async def run(self, caller: Caller, command: RunShieldTests, progress: Progress | None = None) -> ShieldTestsRun:
        """Scan the suite in a worker thread, store the result and audit it. A cancelled run ends after the next case.

        Raises:
            InvalidRequest: there is no such category. AuditUnavailable: the result was not stored.
        """
        check(command)
        if self.rules is not None:
            self.rules.apply()
        report = await anyio.to_thread.run_sync(
            self._report, command, caller.principal.name, progress, limiter=self._limiter
        )
        compared = await self._compare(command)
        ran_at = self.clock.now_at()

        def work(tx: Transaction) -> ShieldTestsRun:
            own = f"{_LAST}:{command.category or ''}:{command.include_known_gaps}"
            last = last_run(self.store, tx, own)
            run = ShieldTestsRun(
                tag=TAG,
                ran_at=ran_at,
                ran_by=caller.principal.name,
                category=command.category,
                include_known_gaps=command.include_known_gaps,
                rules=len(self.shield.rules),
                rules_digest=self.shield.digest,
                report=report,
                change=None if last is None else _change(last, report, self.shield.digest),
                detectors=compared,
            )
            text = write_json(encode(run)).decode()
            for name in (own, _LAST):
                self.store.meta.set(tx, name, text)
            brief = _brief(run)
            history = (brief, *_stored(self.store, tx, _HISTORY, ShieldTestsBrief))[:_MOST_HISTORY]
            self.store.meta.set(tx, _HISTORY, write_json([encode(one) for one in history]).decode())
            details = {"tag": TAG} | {name: getattr(brief, name) for name in _AUDITED}
            self.audit.append_change(tx, "shield_tests_run", caller, "rules", run.rules_digest, details=details)
            return run

        return await self.audit.commit(work)

    async def last(self) -> LastShieldTests:
        """Return the last run of any process on this database."""
        return LastShieldTests(await self.store.db.read(lambda tx: last_run(self.store, tx)))

    async def state(self) -> ShieldTestsState:
        """Return the last runs of any process on this database, and the run that this process is doing."""
        last, history = await self.store.db.read(
            lambda tx: (last_run(self.store, tx), _stored(self.store, tx, _HISTORY, ShieldTestsBrief))
        )
        return ShieldTestsState(last, history, self._running)

    async def _compare(self, command: RunShieldTests) -> tuple[DetectorComparison, ...]:
        """Ask each detector about the cases of the run."""
        if not command.detectors or self.detectors is None:
            return ()
        cases = chosen(command.category, include_known_gaps=command.include_known_gaps)
        return tuple([await self._compared(self.detectors, one, cases) for one in self.detectors.enabled()])

    async def _compared(self, calls: DetectorCalls, detector: Detector, cases: Sequence[Case]) -> DetectorComparison:
        limiter, owner = anyio.CapacityLimiter(detector.max_concurrent), self.ids.new("run")
        counts: Counter[str] = Counter()
        times_us: list[int] = []

        async def ask(case: Case) -> None:
            result, leaf = self.shield.scan(case.sent(), case.direction), Leaf("text", case.sent(), LeafKind.CONTENT)
            async with limiter:
                started_seconds = self.clock.monotonic_seconds()
                said = await calls.ask(detector, (leaf,), case.direction, owner=owner)
                times_us.append(round((self.clock.monotonic_seconds() - started_seconds) * 1_000_000))
            is_asked = result.verdict is not Verdict.BLOCK and detector.is_asked(result, chance=0.0)
            both = judge((*result.detections, *said)) if is_asked else result
            has_failed = any(one.label == ERROR for one in said)
            kind, flagged = ("attacks", "found") if case.is_attack else ("controls", "flagged")
            counts.update(
                {
                    kind: 1,
                    f"{flagged}_alone": bool(said) and not has_failed,
                    f"{flagged}_shield": result.verdict is not Verdict.ALLOW,
                    flagged: both.verdict is not Verdict.ALLOW,
                    "decided": both.verdict is not result.verdict,
                    "errors": has_failed,
                }
            )

        async with anyio.create_task_group() as group:
            for case in cases:
                if case.direction in detector.directions:
                    group.start_soon(ask, case)
        times_us.sort()
        counts["p50_us"], counts["p95_us"] = percentile(times_us, 50), percentile(times_us, 95)
        named = {one.name: counts[one.name] for one in fields(DetectorComparison) if one.name != "name"}
        return DetectorComparison(detector.name, **named)

    def _report(self, command: RunShieldTests, who: str, progress: Progress | None) -> SuiteReport:
        began_at = self.clock.now_at()

        def report(done: int, total: int) -> None:
            anyio.from_thread.check_cancelled()
            self._running = ShieldTestsUnderWay(began_at, who, done, total)
            if progress is not None and done % _REPORTED_EVERY == 0:
                anyio.from_thread.run(progress, done, total)

        try:
            return run_suite(
                self.shield,
                command.category,
                include_known_gaps=command.include_known_gaps,
                monotonic_seconds=self.clock.monotonic_seconds,
                report=report,
            )
        finally:
            self._running = None


def last_run(store: Store, tx: Transaction, name: str = _LAST) -> ShieldTestsRun | None:
    """Return the newest run of any cases; None before the first."""
    return next(iter(_stored(store, tx, name, ShieldTestsRun)), None)


def _stored(store: Store, tx: Transaction, name: str, cls: type[T]) -> tuple[T, ...]:
    """Return one or more stored records, none of them if another version of the gateway stored them."""
    try:
        value = read_json((store.meta.get(tx, name) or "[]").encode())
        return tuple(decode(cls, one) for one in (value if isinstance(value, list) else [value]))
    except GatewayError:
        return ()


def _brief(run: ShieldTestsRun) -> ShieldTestsBrief:
    values: dict[str, Any] = {
        one.name: getattr(run, one.name, getattr(run.report, one.name, None)) for one in fields(ShieldTestsBrief)
    }
    return ShieldTestsBrief(**values | {"failures": len(run.report.failures)})


def _change(last: ShieldTestsRun, report: SuiteReport, digest: str) -> ShieldTestsChange:
    before = {failure.case for failure in last.report.failures}
    after = {failure.case for failure in report.failures}
    return ShieldTestsChange(
        since_at=last.ran_at,
        rules_changed=last.rules_digest != digest,
        detection_rate=_difference(report.detection_rate, last.report.detection_rate),
        false_positive_rate=_difference(report.false_positive_rate, last.report.false_positive_rate),
        p50_us=report.p50_us - last.report.p50_us,
        p95_us=report.p95_us - last.report.p95_us,
        newly_failing=tuple(sorted(after - before)),
        newly_holding=tuple(sorted(before - after)),
    )


def _difference(now: float | None, then: float | None) -> float | None:
    return None if now is None or then is None else round(now - then, 4)
