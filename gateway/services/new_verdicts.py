"""Compute the verdicts that stored requests would get now, from their findings. Needs no text and records nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence

from gateway.domain.alerts import AlertStatus
from gateway.domain.harmless import Exemption, LetThrough, Passed
from gateway.domain.policies import UNSCANNABLE_RULE, ShieldPolicy, redacted_categories
from gateway.domain.risk_acceptances import DAY_MS, NewVerdict, RiskAcceptance, RuleShare, Source, accept
from gateway.domain.traffic import TrafficFilter, TrafficRow
from gateway.errors import PermissionDenied
from gateway.services.alerts import alerts_of
from gateway.services.core import Service
from gateway.services.findings import MOST_FINDINGS, kept_detection
from gateway.services.policies import Policies
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import judge
from gateway.store.database import Transaction

REPLAY_DAYS = 30
MOST_ROWS = 2_000
"""The most requests of each verdict that are judged again, the newest first."""
MOST_EXAMPLES = 5
CONFIRMED = (AlertStatus.ACKNOWLEDGED, AlertStatus.INVESTIGATING, AlertStatus.RESOLVED)
"""The states of an alert that a person took for an attack."""
_RANK = {Verdict.ALLOW: 0, Verdict.REVIEW: 1, Verdict.BLOCK: 2}
Exceptions = Mapping[Exemption, Sequence[RiskAcceptance]]
_NOT_COVERED = "This acceptance covers none of this request's findings."
_BY_ANOTHER = "An earlier acceptance already covers what this one could."


class NewVerdicts(Service):
    """Computes new verdicts. policy: of keys that have none of their own."""

    policies: Policies
    policy: ShieldPolicy

    async def after(self, made: RiskAcceptance, *, request: str | None, alert: str | None) -> NewVerdict:
        """Return the verdict after an acceptance, of `request` or else of the newest request of `alert`.

        request: its id, or the id of its traffic row.
        """

        def work(tx: Transaction) -> NewVerdict:
            found = self.store.alerts.by_id(tx, alert) if alert and not request else None
            wanted = request or (found.request_id if found else None)
            row = self.store.traffic.find(tx, wanted) if wanted else None
            if row is None:
                known = "That request is not in the traffic" if request or alert else "No request was named"
                return NewVerdict(None, None, None, (), f"{known}, so its new verdict is not known.")
            active = self.store.risk_acceptances.active(tx, now_at=self.clock.now_at())
            return self.verdict(tx, row, active, (made,))

        return await self.store.db.read(work)

    def verdict(
        self, tx: Transaction, row: TrafficRow, active: Sequence[RiskAcceptance], made: Sequence[RiskAcceptance]
    ) -> NewVerdict:
        """Return the verdict of a request under `active`; `made` are those of them that it is asked for."""
        caller = self.caller(tx, row)
        if caller is None:
            return _unknown(row, "its key or the policy of its key is gone")
        results = self.results(row, active, *caller)
        if isinstance(results, str):
            return _unknown(row, results)
        alone = self.results(row, made, *caller)
        covered = "" if _has(results, made) else _BY_ANOTHER if _has(alone, made) else _NOT_COVERED
        return _known(row, max(results, key=lambda result: result.score), covered)

    def caller(self, tx: Transaction, row: TrafficRow) -> tuple[Source, ShieldPolicy] | None:
        """Return the source of a request and the policy for it, or None if its key or policy no longer exists."""
        if not row.key_prefix:
            return Source(row.agent or "", None), self.policy
        key = self.store.keys.by_id(tx, row.principal_id)
        if key is None:
            return None
        principal = key.principal()
        try:
            policy = self.policies.of(principal, self.policy)
        except PermissionDenied:
            return None
        return Source(row.agent or principal.name, principal.lineage, principal.policy), policy

    def results(
        self, row: TrafficRow, acceptances: Sequence[RiskAcceptance], source: Source, policy: ShieldPolicy
    ) -> list[ScanResult] | str:
        """Return the results of prompt and reply under acceptances, or why they are not known."""
        stored = {one: [found for found in row.detections if _direction(found) == one] for one in Direction}
        if sum(map(len, stored.values())) < len(row.detections):
            return "its findings were kept by an earlier version"
        if any(len(found) >= MOST_FINDINGS for found in stored.values()):
            return f"it has {MOST_FINDINGS} findings or more, and no more are kept"
        scoring, now_at = policy.scoring, self.clock.now_at()
        scanned = [judge(map(kept_detection, found), scoring) for found in stored.values()]
        results = [accept(one, acceptances, scoring, source=source, now_at=now_at) for one in scanned]
        left = [one for result in results for one in result.detections if one.accepted is None]
        if any(one.rule == UNSCANNABLE_RULE for one in left):
            return "it has a part that the shield cannot read"
        if any(one.category in redacted_categories(policy) for one in left):
            return "the policy masks what was found, and only the text shows whether it can"
        return results

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
                caller = callers[who] = callers[who] if who in callers else self.caller(tx, row)
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
        results = self.results(row, acceptances, *caller)
        return None if isinstance(results, str) else max((one.verdict for one in results), key=_RANK.__getitem__)


def _direction(found: Mapping[str, object]) -> object:
    """Return the direction of a stored finding, or None if an earlier version stored it."""
    return found.get("direction") if "sha256" in found or found.get("rule") == UNSCANNABLE_RULE else None


def _has(results: Sequence[ScanResult] | str, made: Sequence[RiskAcceptance]) -> bool:
    ids = {one.id for one in made}
    return any(one.accepted in ids for result in results if isinstance(result, ScanResult) for one in result.detections)


def _unknown(row: TrafficRow, why: str) -> NewVerdict:
    return NewVerdict(row.request_id, None, None, (), f"The new verdict of this request is not known: {why}.")


def _known(row: TrafficRow, result: ScanResult, covered: str) -> NewVerdict:
    shares = tuple(RuleShare(one.rule, one.score) for one in result.detections if one.score)
    still = "still" if result.verdict == row.verdict else "now"
    rules = ": " + ", ".join(f"{one.rule} {one.score}" for one in shares) if shares else ""
    says = f"This request would {still} be {result.verdict} (score {result.score}{rules})."
    if covered:
        says = f"{covered} {says}"
    if row.action == "blocked" and result.verdict is not Verdict.BLOCK and row.status != 200:
        says += " Its reply has not been seen, and is judged by itself."
    return NewVerdict(row.request_id, result.verdict, result.score, shares, says)
