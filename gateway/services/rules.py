"""The rules in use: those of files, the stored ones on top, and overrides by operators.

Every process applies an override to its next scan. When the stored rules change, it builds another shield in a thread
and uses the old one meanwhile.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Annotated

import anyio
import anyio.to_thread

from gateway.domain.local_rules import LocalRule
from gateway.domain.policies import MAX_REASON_CHARS, UNSCANNABLE_RULE, RuleOverride
from gateway.domain.principals import Caller
from gateway.domain.traffic_sums import HOUR_MS
from gateway.errors import Conflict, InvalidRequest, NotFound, SetupError
from gateway.field_types import line
from gateway.schema import Bounds, check
from gateway.services.core import Service
from gateway.services.resource import check_version
from gateway.shield import Shield
from gateway.shield.detections import Severity
from gateway.shield.engine import BUDGET_RULE, extended
from gateway.shield.rules import LOCAL, Rule, RuleError
from gateway.shield.scoring import MODEL_RULE
from gateway.spelling import hint
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.followed_authority import Authority

HITS_MS = 7 * 24 * HOUR_MS
_SeverityWord = Annotated[str, Bounds(words=(*(one.value for one in Severity), "default"))]
_NO_REASON = "Say why the rule is taken out: reason."
_Reason = Annotated[str, line(MAX_REASON_CHARS, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOverride:
    """An override of a rule. None leaves a field as it is.

    severity: ``default`` for that of the rule file. reason: for readers of the audit log; required for a rule that is,
    or stays, disabled.
    """

    rule: str
    enabled: bool | None = None
    severity: _SeverityWord | None = None
    reason: _Reason | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class RuleInUse:
    """A rule, its override, and its matches in the last seven days.

    is_stored: an operator's own rule in the database, not in a file.
    """

    rule: Rule
    override: RuleOverride | None
    hits: int = 0
    is_stored: bool = False

    @property
    def enabled(self) -> bool:
        """Whether it takes part in scans."""
        return self.override is None or self.override.enabled

    @property
    def severity(self) -> Severity:
        """What its matches count as."""
        return (self.override.severity if self.override else None) or self.rule.severity

    def shown(self) -> dict[str, object]:
        return {"enabled": self.enabled, "severity": self.severity.value}


class Rules(Service):
    """The rules of one shield. The edges check who may change them.

    base: the rules of the files. shield: the one that scans, which gets the stored rules and the overrides.
    """

    base: Shield
    shield: Shield
    _applied: Authority | None = field(default=None, init=False)
    _followed: Authority | None = field(default=None, init=False)
    _stored: tuple[LocalRule, ...] = field(default=(), init=False)
    _adopted: int = field(default=0, init=False)
    _last_built: tuple[Sequence[Mapping[str, object]], Shield] | None = field(default=None, init=False)
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)

    def apply(self) -> str:
        """Apply the overrides to the shield, and return a text that changes with the rules in use.

        Raises:
            StoreUnavailable: nothing was read from the database yet.
        """
        authority = self.store.authority.now
        if authority is not self._applied:
            self.override(self.shield)
            self._applied = authority
        return f"{authority.generation}.{self._adopted}"

    def override(self, shield: Shield, without: str | None = None) -> None:
        """Apply the overrides to a shield, and leave out the rule `without`."""
        overrides = self.store.authority.now.overrides
        shield.override(
            disabled=[without or "", *(one.rule for one in overrides if not one.enabled)],
            severities={one.rule: one.severity for one in overrides if one.severity},
        )

    def built(self, rules: Sequence[Mapping[str, object]]) -> Shield:
        """Return a shield with the rules of the files and these. Takes about a second, so call it in a thread.

        Raises:
            RuleError: a rule is wrong.
        """
        if not rules:
            return copy(self.base)
        if self._last_built is None or self._last_built[0] != rules:
            self._last_built = rules, extended(self.base, rules)
            self._last_built[1].ready()
        return copy(self._last_built[1])

    def load(self) -> None:
        """Use the stored rules, before the first scan. Blocks.

        Raises:
            SetupError: a stored rule cannot be used; names it. StoreUnavailable: they were not read yet.
        """
        self._use(stored := self.store.authority.now.local_rules, self._shield_of(stored))

    async def follow(self) -> None:
        """Follow authority, and use the stored rules as they are now. Raises StoreUnavailable."""
        await self.store.authority.follow()
        await self.keep_up()

    async def keep_up(self) -> None:
        """Use the stored rules as this process has loaded them. A rule that cannot be used is logged."""
        if self.store.authority.now is self._followed:
            return
        async with self._lock:
            authority = self.store.authority.now
            stored = authority.local_rules
            try:
                if stored != self._stored:
                    self._use(stored, await anyio.to_thread.run_sync(self._shield_of, stored))
            except SetupError as error:
                self.log.error("rules_refused", reason=error.message)
            self._followed = authority

    def _shield_of(self, stored: Sequence[LocalRule]) -> Shield:
        try:
            return self.built([one.rule for one in stored if one.rule is not None])
        except RuleError as error:
            remedy = (
                f"remove it with `rules remove {error.rule} --reason …`"
                if error.rule.startswith(LOCAL)
                else "remove some"
            )
            raise SetupError(f"The stored rules cannot be used: {error}. Correct the rule, or {remedy}.") from error

    def _use(self, stored: tuple[LocalRule, ...], shield: Shield) -> None:
        self.override(shield)
        self.shield.adopt(shield)
        self._stored = stored
        self._adopted += 1

    async def list(self) -> tuple[RuleInUse, ...]:
        """Return all rules, in the order of the files, and then the stored ones."""
        await self.follow()
        rules = await anyio.to_thread.run_sync(tuple, self.shield.rules)  # a large file, read when first asked for
        stored = {one.id for one in self._stored}
        origin, until = self.store.traffic.origin, (self.clock.now_at() // HOUR_MS + 1) * HOUR_MS

        def work(tx: Transaction) -> tuple[RuleInUse, ...]:
            overrides = {one.rule: one for one in self.store.rule_overrides.all(tx)}
            sums = self.store.traffic.by_value(tx, "rule", origin=origin, since=until - HITS_MS, until=until)
            hits = {rule: counters.requests for rule, counters in sums.items()}
            return tuple(
                RuleInUse(rule, overrides.get(rule.id), hits.get(rule.id, 0), rule.id in stored) for rule in rules
            )

        return await self.store.db.read(work)

    async def rule_ids(self) -> frozenset[str]:
        """Return the ids that a detection may have: those of the rules, and of detections without a rule."""
        await self.follow()
        rules = await anyio.to_thread.run_sync(tuple, self.shield.rules)
        detectors = (one.rule for one in self.store.authority.now.detectors)
        return frozenset({*(rule.id for rule in rules), *detectors, MODEL_RULE, BUDGET_RULE, UNSCANNABLE_RULE})

    async def show(self, rule_id: str) -> RuleInUse:
        """Return one rule. Raises NotFound."""
        found = next((one for one in await self.list() if one.rule.id == rule_id), None)
        if found is None:
            raise NotFound(f"There is no such rule.{hint(rule_id, await self.rule_ids())}", param="rule")
        return found

    async def change(self, caller: Caller, wanted: WantedOverride) -> RuleInUse:
        """Override a rule. Every process applies it to the next text.

        Raises:
            NotFound: there is no such rule. InvalidRequest: a field; `param` says which.
            Conflict: another version, or a rule stays disabled without a reason. AuditUnavailable: nothing changed.
        """
        check(wanted)
        rule = (await self.show(wanted.rule)).rule
        reason = (wanted.reason or "").strip()
        if wanted.enabled is False and not reason:
            raise InvalidRequest(_NO_REASON, param="reason")
        now_at = self.clock.now_at()

        def work(tx: AuthorityTransaction) -> None:
            before = self.store.rule_overrides.by_id(tx, rule.id)
            version = before.version if before else 0
            check_version(wanted.version, version, "rule")
            after = RuleOverride(
                rule=rule.id,
                enabled=wanted.enabled if wanted.enabled is not None else before is None or before.enabled,
                severity=_severity(rule, before, wanted.severity),
                reason=reason or None,
                changed_at=now_at,
                changed_by=caller.principal.name,
                version=version + 1,
            )
            if after.enabled is False and not reason:
                raise Conflict(_NO_REASON, param="reason")
            self.store.rule_overrides.put(tx, after)
            shown = {"before": RuleInUse(rule, before).shown(), "after": RuleInUse(rule, after).shown()}
            details = {"reason": reason} if reason else None
            self.audit.append_change(tx, "rule_changed", caller, "rule", rule.id, **shown, details=details)

        await self.audit.commit_authority(caller, work)
        return await self.show(rule.id)


def _severity(rule: Rule, before: RuleOverride | None, wanted: str | None) -> Severity | None:
    if wanted is None:
        return before.severity if before else None
    return None if wanted in ("default", rule.severity) else Severity(wanted)
