"""What an exception would let through: stored requests judged again, and the attacks of the validation suite."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from gateway.domain.alerts import AlertStatus
from gateway.domain.harmless import Exemption, LetThrough, Passed, SuiteLoss
from gateway.domain.policies import ShieldPolicy
from gateway.domain.risk_acceptances import DAY_MS, RiskAcceptance, Source
from gateway.domain.traffic import TrafficFilter, TrafficRow
from gateway.services.alerts import alerts_of
from gateway.services.core import Service
from gateway.services.findings import kept_detection
from gateway.services.new_verdicts import NewVerdicts
from gateway.services.rules import Rules
from gateway.shield.detections import Detection, Verdict
from gateway.shield.scoring import Policy, judge
from gateway.shield.suite import load_suite
from gateway.store.database import Transaction

REPLAY_DAYS = 30
MOST_ROWS = 2_000
"""The most requests of each verdict that are judged again, the newest first."""
MOST_EXAMPLES = 5
CONFIRMED = (AlertStatus.ACKNOWLEDGED, AlertStatus.INVESTIGATING, AlertStatus.RESOLVED)
"""The states of an alert that a person took for an attack."""
_RANK = {Verdict.ALLOW: 0, Verdict.REVIEW: 1, Verdict.BLOCK: 2}
Exceptions = Mapping[Exemption, Sequence[RiskAcceptance]]


class Replay(Service):
    """Judges anew what was found before."""

    new_verdicts: NewVerdicts
    rules: Rules
    _suite: tuple[str, list[tuple[Detection, ...]]] | None = field(default=None, init=False)

    def let_through(
        self, tx: Transaction, made: Exceptions, accepted: Sequence[RiskAcceptance], *, but: str
    ) -> dict[Exemption, LetThrough]:
        """Judge the flagged requests of the last days again, except the request `but`, under each exception.

        accepted: the acceptances in force.
        """
        now_at = self.clock.now_at()
        since_at = now_at - REPLAY_DAYS * DAY_MS
        unknown: Counter[Exemption] = Counter()
        passed: dict[Exemption, list[Passed]] = {one: [] for one in made}
        judged, is_partial = 0, False
        callers: dict[tuple[str, str | None], tuple[Source, ShieldPolicy] | None] = {}
        for verdict in (Verdict.BLOCK, Verdict.REVIEW):
            rows = self.store.traffic.newest(tx, TrafficFilter(verdict=verdict, since=since_at), limit=MOST_ROWS + 1)
            is_partial |= len(rows) > MOST_ROWS
            judged += len(rows[:MOST_ROWS])
            for row in rows[:MOST_ROWS]:
                who = row.principal_id, row.agent
                caller = callers[who] = callers[who] if who in callers else self.new_verdicts.caller(tx, row)
                if row.request_id == but or caller is None:
                    continue
                kept = [kept_detection(found) for found in row.detections]
                for exception, acceptances in made.items():
                    if not any(
                        one.covers(each, source=caller[0], now_at=now_at) for one in acceptances for each in kept
                    ):
                        continue
                    now, then = (self._worst(row, some, caller) for some in (accepted, (*accepted, *acceptances)))
                    if now is None or then is None:
                        unknown[exception] += 1
                    elif _RANK[then] < _RANK[now]:
                        who_and_when = (row.request_id, row.occurred_at, row.agent, row.key_prefix)
                        passed[exception].append(Passed(*who_and_when, now.value, then))
        return {one: self._let_through(tx, judged, is_partial, unknown[one], found) for one, found in passed.items()}

    def _let_through(
        self, tx: Transaction, judged: int, is_partial: bool, unknown: int, found: list[Passed]
    ) -> LetThrough:
        found.sort(key=lambda one: -one.occurred_at)
        alerts = (alerts_of(self.store, tx, one.request_id) for one in found)
        confirmed = sum(any(alert.status in CONFIRMED for alert in some) for some in alerts)
        unblocked = sum(one.verdict == Verdict.BLOCK for one in found)
        examples = tuple(found[:MOST_EXAMPLES])
        return LetThrough(REPLAY_DAYS, judged, is_partial, unknown, len(found), unblocked, confirmed, examples)

    def _worst(
        self, row: TrafficRow, acceptances: Sequence[RiskAcceptance], caller: tuple[Source, ShieldPolicy]
    ) -> Verdict | None:
        results = self.new_verdicts.results(row, acceptances, *caller)
        return None if isinstance(results, str) else max((one.verdict for one in results), key=_RANK.__getitem__)

    def attacks(self) -> list[tuple[Detection, ...]]:
        """Return what the shield finds in each attack of the suite. Scans it anew after a change of the rules."""
        rules = self.rules.apply()
        if self._suite is None or self._suite[0] != rules:
            cases = [case for case in load_suite() if case.is_attack]
            scanned = [self.rules.shield.scan(case.sent(), case.direction) for case in cases]
            self._suite = rules, [result.detections for result in scanned]
        return self._suite[1]


def suite_loss(attacks: Sequence[tuple[Detection, ...]], rules: frozenset[str], policy: Policy) -> SuiteLoss:
    """Return how many attacks of the suite are found, and how many of them no longer are without `rules`."""
    found = lost = 0
    for detections in attacks:
        if judge(detections, policy).verdict is Verdict.ALLOW:
            continue
        found += 1
        left = [one for one in detections if one.rule not in rules]
        lost += len(left) < len(detections) and judge(left, policy).verdict is Verdict.ALLOW
    return SuiteLoss(found, lost)
