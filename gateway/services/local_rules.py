"""An operator's own rules in the database: checked, then stored as a new version. No version is ever changed.

A rule that cannot be built, or whose own examples fail, is refused before it is stored.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import anyio.to_thread

from gateway.domain.local_rules import LocalRule
from gateway.domain.policies import MAX_REASON_CHARS
from gateway.domain.principals import Caller
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import line
from gateway.schema import check
from gateway.services.resource import Resource
from gateway.services.rules import Rules
from gateway.shield import Shield
from gateway.shield.engine import trial
from gateway.shield.rules import LOCAL, RuleError
from gateway.shield.suite import run_examples
from gateway.store.authority import AuthorityTransaction

MAX_RULE_CHARS = 65_536
Fields = Annotated[Mapping[str, object], "The rule, with the fields of a rule file."]
Reason = Annotated[str, line(MAX_REASON_CHARS), "Why, for readers of the audit log."]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRule:
    """A rule to store."""

    rule: Fields
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRule:
    """A new version of a stored rule: `rule`, or the rule of the older version `to`. version: the present one."""

    rule: Fields | None = None
    to: int | None = None
    reason: Reason
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRule:
    """A stored rule to remove. Its versions stay."""

    id: str
    reason: Annotated[str, line(MAX_REASON_CHARS, 0)] = ""


class LocalRules(Resource[LocalRule]):
    """The stored rules. rules: those in use; None for a command that repairs what they cannot load."""

    noun, nouns = "stored rule", "stored rules"
    resource_type = "local_rule"
    repository = "local_rules"
    most = 500
    audited = ("rule", "reason")

    rules: Rules | None

    async def history(self, rule_id: str) -> tuple[LocalRule, ...]:
        """Return the versions of a rule, newest first. Raises NotFound."""
        versions = await self.store.db.read(lambda tx: self.store.local_rules.versions(tx, rule_id))
        if not versions:
            raise NotFound("There is no such stored rule.")
        return versions

    async def create(self, caller: Caller, new: NewRule) -> LocalRule:
        """Store a rule. This process uses it before it answers, and the others soon.

        Raises:
            InvalidRequest: a field; `param` names it. Conflict: the id is taken, or there are too many rules.
            AuditUnavailable: nothing was stored.
        """
        check(new)
        await self._check_draft(new.rule)
        made: LocalRule = await super().create(caller, new)
        await self._follow()
        return made

    async def change(self, caller: Caller, name: str, changes: ChangedRule) -> LocalRule:
        """Store a new version of a rule. Raises as `create`; NotFound, and Conflict also for another version."""
        check(changes)
        rule, history = changes.rule, await self.history(name)
        if (rule is None) is (changes.to is None):
            raise Conflict("Send either rule or to.", param="rule")
        if rule is None:
            rule = next((one.rule for one in history if one.version == changes.to), None)
            if rule is None:
                raise Conflict("to must be a version that has a rule.", param="to")
        if rule.get("id") != name:
            raise InvalidRequest("rule.id cannot be changed.", param="rule.id")
        await self._check_draft(rule)
        changed: LocalRule = await super().change(caller, name, replace(changes, rule=rule))
        await self._follow()
        return changed

    async def remove(self, caller: Caller, wanted: RemoveRule) -> LocalRule:  # type: ignore[override]
        """Store a version that removes a rule, and return it. Raises InvalidRequest without a reason, and NotFound."""
        check(wanted)
        if not wanted.reason.strip():
            raise InvalidRequest("Say why the rule is removed: reason.", param="reason")

        def work(tx: AuthorityTransaction) -> LocalRule:
            before = self.find(tx, wanted.id)
            after = self._next(before, caller, None, wanted.reason)
            self.store.local_rules.insert(tx, after)
            shown = {"before": self._shown(before), "after": self._shown(after)}
            self._append(tx, "removed", wanted.id, **shown)
            return after

        removed = await self.audit.commit_authority(caller, work)
        await self._follow()
        return removed

    async def _follow(self) -> None:
        if self.rules is not None:
            await self.rules.follow()

    async def _check_draft(self, rule: Mapping[str, object]) -> None:
        """Raise InvalidRequest, or Conflict, unless the rules in use can be built with a draft whose examples hold."""
        assert self.rules is not None, "what has no rules only removes"
        rules, stored = self.rules, await self.list()

        def work() -> None:
            _check_examples(checked_trial(rules.base, rule))
            drafted(rules, stored, rule)

        await anyio.to_thread.run_sync(work)

    def _made(self, tx: AuthorityTransaction, new: NewRule) -> LocalRule:
        versions = self.store.local_rules.versions(tx, str(new.rule["id"]))
        if versions and versions[0].rule is not None:
            raise Conflict("There is already a stored rule of this id.", param="rule.id")
        before = versions[0] if versions else LocalRule(str(new.rule["id"]), 0, None, "", 0, "")
        return self._next(before, tx.caller, new.rule, new.reason)

    def _changed(self, tx: AuthorityTransaction, before: LocalRule, changes: ChangedRule) -> LocalRule:
        return before if changes.rule == before.rule else self._next(before, tx.caller, changes.rule, changes.reason)

    def _next(self, before: LocalRule, caller: Caller, rule: Mapping[str, object] | None, reason: str) -> LocalRule:
        by = caller.principal.name
        return LocalRule(before.id, before.version + 1, rule, reason.strip(), self.clock.now_at(), by)


def checked_trial(base: Shield, rule: Mapping[str, object]) -> Shield:
    """Return a shield of one draft. Takes milliseconds, so call it in a thread. base: the rules of the files.

    Raises:
        InvalidRequest: a field of the rule; `param` is its path, such as ``rule.pattern``.
        Conflict: a file has a rule of this id.
    """
    rule_id = rule.get("id")
    if not isinstance(rule_id, str) or not rule_id.startswith(LOCAL):
        raise InvalidRequest(f"rule.id must begin with {LOCAL}, such as {LOCAL}code-names.", param="rule.id")
    if len(json.dumps(rule)) > MAX_RULE_CHARS:
        raise InvalidRequest(f"rule must be at most {MAX_RULE_CHARS} characters of JSON.", param="rule")
    if any(one.id == rule_id for one in base.rules):
        raise Conflict("A rule file has a rule of this id; choose another.", param="rule.id")
    try:
        return trial(base, rule)
    except RuleError as error:
        path = f"rule.{error.field}" if error.field else "rule"
        raise InvalidRequest(f"{path} {error.reason}.", param=path) from error


def drafted(rules: Rules, stored: Sequence[LocalRule], draft: Mapping[str, object] | None) -> Shield:
    """Return a shield with the stored rules and a draft, which replaces the one of its id. Call it in a thread.

    Raises:
        InvalidRequest: they cannot be built together.
    """
    by_id = {one.id: one.rule for one in stored if one.rule is not None}
    if draft is not None:
        by_id[str(draft["id"])] = draft
    try:
        return rules.built([by_id[rule_id] for rule_id in sorted(by_id)])
    except RuleError as error:
        raise InvalidRequest(f"rule: {error}", param="rule") from error


def _check_examples(trial: Shield) -> None:
    for failure in run_examples(trial).failures:
        (rule,) = trial.rules
        name, examples = ("match", rule.match) if failure.must_match else ("pass", rule.passes)
        path = f"rule.{name}[{examples.index(failure.example)}]"
        wanted = "must match the rule and does not" if failure.must_match else "must not match the rule and does"
        raise InvalidRequest(f"{path} {wanted}.", param=path)
