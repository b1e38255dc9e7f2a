"""Try a draft of a rule or a policy before it is stored: on texts that were typed, and on those of the last week.

A replay compares two verdicts on each text, without the draft and with it. The texts are those that policies keep,
newest first, and the cases of the validation suite. Nothing is recorded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import anyio.from_thread
import anyio.to_thread

from gateway.domain.local_rules import ReplayText
from gateway.domain.policies import Capture, ShieldPolicy
from gateway.domain.principals import Permission, Principal
from gateway.errors import Conflict, NotFound
from gateway.offload import ThreadOffload
from gateway.records import project
from gateway.schema import Bounds, check
from gateway.services.core import Service
from gateway.services.local_rules import Fields, checked_trial, drafted
from gateway.services.policies import Policies, WantedPolicy
from gateway.services.rules import HITS_MS, Rules
from gateway.shield import Shield
from gateway.shield.detections import Direction, Verdict
from gateway.shield.scoring import Policy, judge
from gateway.shield.suite import load_suite

MOST_SECONDS = 30.0
_MOST_EXAMPLES = 50
_Flip = tuple[Verdict, Verdict]
_Judge = Callable[[str, Direction, str], _Flip]
"""Returns the verdicts on a text before and after. The last argument is the policy of its key, or an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRule:
    """A draft of a rule, and texts to try it on. direction: by default inbound, if the rule is for that."""

    rule: Fields
    texts: Annotated[tuple[Annotated[str, Bounds(0, 20_000)], ...], Bounds(0, 50)] = ()
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class TriedText:
    """What a draft does to a text. spans: of its matches, in code points. before: the verdict of the rules in use.

    verdict, score: with the draft among them; what the attack model adds is that of before.
    """

    matches: bool
    spans: tuple[tuple[int, ...], ...]
    before: Verdict
    verdict: Verdict
    score: int


@dataclass(frozen=True, slots=True)
class TriedRule:
    """What a draft does to each text, in their order, scanned in one direction."""

    direction: Direction
    texts: tuple[TriedText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRule:
    """The draft `rule`, new or in place of the stored one of its id; or the id of a rule to leave out, `without`."""

    rule: Fields | None = None
    without: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPolicy(WantedPolicy):
    """A draft of a policy. policy: the one that it changes, if any; only texts of its keys are then replayed."""

    policy: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayExample:
    """A text whose verdict changes: of a request, or a case of the validation suite."""

    request_id: str | None
    case: str | None
    direction: Direction
    before: Verdict
    after: Verdict


@dataclass(slots=True)
class Replay:
    """What a draft would change. texts: captured ones that were scanned. masked: those of them stored masked.

    is_stopped: time ran out before all texts were scanned. flips, suite_flips: how many texts change from one verdict
    to another, such as ``ALLOW>BLOCK``. Attacks found and benign texts flagged get REVIEW or BLOCK; the others ALLOW.
    """

    texts: int = 0
    masked: int = 0
    cases: int = 0
    is_stopped: bool = False
    flips: dict[str, int] = field(default_factory=dict)
    suite_flips: dict[str, int] = field(default_factory=dict)
    attacks_newly_found: int = 0
    attacks_newly_missed: int = 0
    benign_newly_flagged: int = 0
    benign_newly_passed: int = 0
    examples: list[ReplayExample] = field(default_factory=list)


class RuleTrials(Service):
    """Tries drafts. The edges check who may do so. policy: of keys that have none of their own."""

    rules: Rules
    policies: Policies
    policy: ShieldPolicy
    _tries: ThreadOffload = field(default_factory=partial(ThreadOffload, wait_seconds=5.0, most_waiting=8), init=False)
    _is_replaying: bool = field(default=False, init=False)

    async def try_rule(self, wanted: TryRule) -> TriedRule:
        """Return what a draft does to some texts.

        Raises:
            InvalidRequest: a field; `param` names it. Conflict: a file has a rule of this id. Shed: too many tries.
        """
        check(wanted)
        self.rules.apply()
        return await self._tries.run(self._tried, wanted)

    def _tried(self, wanted: TryRule) -> TriedRule:
        trial, policy, texts = checked_trial(self.rules.base, wanted.rule), self.policy.scoring, []
        (rule,) = trial.rules
        direction = wanted.direction or max(rule.direction, key=lambda one: one is Direction.INBOUND)
        for text in wanted.texts:
            mine = [one for one in trial.scan(text, direction, policy).detections if one.rule == rule.id]
            before = self.rules.shield.scan(text, direction, policy)
            after = judge([*(one for one in before.detections if one.rule != rule.id), *mine], policy)
            spans = tuple(span for one in mine for span in one.spans or ((one.start, one.end),))
            texts.append(TriedText(bool(mine), spans, before.verdict, after.verdict, after.score))
        return TriedRule(direction, tuple(texts))

    async def replay_rule(self, principal: Principal, wanted: ReplayRule) -> Replay:
        """Return what a draft of a rule would change.

        Raises:
            InvalidRequest: a field; `param` names it. NotFound: there is no rule to leave out.
            Conflict: another replay is running, or a file has a rule of the id.
        """
        check(wanted)
        if (wanted.rule is None) is (wanted.without is None):
            raise Conflict("Send either rule or without.", param="rule")
        if wanted.without is not None and wanted.without not in await self.rules.rule_ids():
            raise NotFound("There is no such rule.", param="without")

        def make(now: Shield, policies: Mapping[str, Policy]) -> _Judge:
            if wanted.rule is not None:
                checked_trial(self.rules.base, wanted.rule)
            after = drafted(self.rules, self.store.authority.now.local_rules, wanted.rule)
            self.rules.override(after, without=wanted.without)

            def verdicts(text: str, direction: Direction, policy_id: str) -> _Flip:
                policy = policies.get(policy_id, self.policy.scoring)
                return now.scan(text, direction, policy).verdict, after.scan(text, direction, policy).verdict

            return verdicts

        return await self._replay(principal, make)

    async def replay_policy(self, principal: Principal, wanted: ReplayPolicy) -> Replay:
        """Return what a draft of a policy would change. Raises as `replay_rule`."""
        changes = project(WantedPolicy, wanted)
        changed = None if wanted.policy is None else await self.policies.show(wanted.policy)
        draft, only = self.policies.draft(changes, changed).scoring, changed.id if changed else None

        def make(now: Shield, policies: Mapping[str, Policy]) -> _Judge:
            def verdicts(text: str, direction: Direction, policy_id: str) -> _Flip:
                before = now.scan(text, direction, policies.get(only or policy_id, self.policy.scoring))
                return before.verdict, judge(before.detections, draft).verdict

            return verdicts

        return await self._replay(principal, make, only)

    async def _replay(
        self, principal: Principal, make: Callable[[Shield, Mapping[str, Policy]], _Judge], only: str | None = None
    ) -> Replay:
        """Replay in a thread what the principal may read. only: the policy whose texts are wanted."""
        if self._is_replaying:
            raise Conflict("Another replay is running; try again when it has ended.")
        self._is_replaying = True
        try:
            await self.rules.follow()
            self.rules.apply()
            records = await self.store.db.read(self.store.policies.all)
            policies = {one.id: one.shield_policy().scoring for one in records}
            now = copy(self.rules.shield)
            return await anyio.to_thread.run_sync(lambda: self._replayed(principal, make(now, policies), only))
        finally:
            self._is_replaying = False

    def _replayed(self, principal: Principal, verdicts: _Judge, only: str | None) -> Replay:
        found, ends_seconds = Replay(), self.clock.monotonic_seconds() + MOST_SECONDS

        def judged(text: str, direction: Direction, policy_id: str = "") -> _Flip | None:
            anyio.from_thread.check_cancelled()
            found.is_stopped |= self.clock.monotonic_seconds() >= ends_seconds
            return None if found.is_stopped else verdicts(text, direction, policy_id)

        for one in self._captured(principal, only):
            if (flip := judged(one.text, one.direction, one.policy or "")) is None:
                break
            found.texts += 1
            found.masked += one.mode is Capture.REDACTED
            _note(found, found.flips, ReplayExample(one.request_id, None, one.direction, *flip))
        for case in load_suite():
            if (flip := judged(case.sent(), case.direction)) is None:
                break
            found.cases += 1
            _note(found, found.suite_flips, ReplayExample(None, case.id, case.direction, *flip))
            was, now = (verdict is not Verdict.ALLOW for verdict in flip)
            found.attacks_newly_found += case.is_attack and now > was
            found.attacks_newly_missed += case.is_attack and now < was
            found.benign_newly_flagged += not case.is_attack and now > was
            found.benign_newly_passed += not case.is_attack and now < was
        return found

    def _captured(self, principal: Principal, only: str | None) -> Iterator[ReplayText]:
        """Yield the captured texts of seven days that the principal may read, newest first."""
        if Permission.TRAFFIC_READ not in principal.permissions:
            return
        with_full, now_at = Permission.POLICIES_MANAGE in principal.permissions, self.clock.now_at()
        window = {"origin": self.store.traffic.origin, "since": now_at - HITS_MS, "now_at": now_at}
        texts: Sequence[ReplayText] = ()
        captures, read = self.store.captures, self.store.db.read
        while texts := anyio.from_thread.run(read, partial(captures.replay, texts[-1:], window)):
            for one in texts:
                if only in (None, one.policy) and (with_full or one.mode is Capture.REDACTED):
                    yield one


def _note(found: Replay, flips: dict[str, int], example: ReplayExample) -> None:
    if example.before is not example.after:
        flip = f"{example.before}>{example.after}"
        flips[flip] = flips.get(flip, 0) + 1
        if len(found.examples) < _MOST_EXAMPLES:
            found.examples.append(example)
