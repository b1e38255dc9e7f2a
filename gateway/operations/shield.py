"""The rows of the shield, internal and public: scan a text, try a policy, the rules, the validation suite."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar

from gateway.app import Gateway
from gateway.domain.local_rules import LocalRule
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Permission, Scope
from gateway.errors import Conflict
from gateway.field_types import LINE_PATTERN
from gateway.operations.operation import ById, Door, kind, text
from gateway.operations.rows import Noun, row, whole, with_id
from gateway.records import project
from gateway.services.local_rules import ChangedRule, NewRule, RemoveRule
from gateway.services.policies import Actions, Score, WantedPolicy
from gateway.services.rule_trials import Replay, ReplayRule, TriedRule, TryRule
from gateway.services.rules import RuleInUse, WantedOverride
from gateway.services.scans import ScanAnswer, ScanText, scan_schema
from gateway.services.shield_tests import LastShieldTests, RunShieldTests, ShieldTestsRun, ShieldTestsState
from gateway.services.trials import TriedAs
from gateway.shield.detections import Direction, Severity
from gateway.shield.rules import LOCAL

View = TypeVar("View")


@dataclass(frozen=True, slots=True, kw_only=True)
class TryText(ScanText):
    """A text that an operator scans. record: whether traffic, alerts, threats and audit events are recorded."""

    record: bool = True
    policy: Annotated[str | None, "Id or name of the policy to try."] = None
    key: Annotated[str | None, "Id of the API key to try."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TryPolicy(ScanText):
    """A text, and the thresholds and weights to try; each has its default if left out."""

    block_score: Score | None = None
    review_score: Score | None = None
    category_actions: Actions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSummary:
    """One rule of the shield, without its literals, pattern and examples."""

    id: str
    name: str
    category: str
    severity: Severity
    confidence: float
    description: str
    direction: frozenset[Direction]
    view: str
    standards: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView(RuleSummary):
    """A rule and its override. file_severity: what the rule file says. hits: in the last seven days.

    source: the setting that names its file, or ``stored`` for a rule in the database.
    """

    file_severity: Severity
    source: Literal["rules", "rules_extra", "stored"]
    enabled: bool
    hits: int
    reason: str | None
    changed_at: int | None
    changed_by: str | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDetail(RuleView):
    """A rule with its patterns, and the texts that it must and must not match."""

    literals: tuple[str, ...]
    pattern: str | None
    patterns: Mapping[str, str]
    validator: str | None
    match: tuple[str, ...]
    passes: tuple[str, ...] = field(metadata={"json_name": "pass"})


def _view(cls: type[View], found: RuleInUse) -> View:
    rule, override = found.rule, found.override
    return project(
        cls,
        rule,
        severity=found.severity,
        file_severity=rule.severity,
        source="stored" if found.is_stored else "rules_extra" if rule.id.startswith(LOCAL) else "rules",
        enabled=found.enabled,
        hits=found.hits,
        reason=override.reason if override else None,
        changed_at=override.changed_at if override else None,
        changed_by=override.changed_by if override else None,
        version=override.version if override else 0,
    )


async def _list_rules(gateway: Gateway, caller: Caller, command: None) -> Page[RuleSummary]:
    return whole(tuple(project(RuleSummary, rule) for rule in gateway.shield.rules))


async def _scan(gateway: Gateway, caller: Caller, command: ScanText) -> ScanAnswer:
    answer = await gateway.scans.scan(caller, command)
    gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    gateway.metrics.observe("gateway_overhead_seconds", answer.elapsed_ms / 1000, operation="shield.scan")
    return answer


async def _try_text(gateway: Gateway, caller: Caller, command: TryText) -> ScanAnswer:
    if command.record and (command.policy or command.key):
        raise Conflict("A scan under another policy or key is not recorded; send record: false.", param="record")
    as_whom = TriedAs(policy=command.policy, key=command.key)
    tried = await gateway.trials.principal(caller.principal, as_whom, Scope.SHIELD_SCAN)
    answer = await gateway.scans.scan(Caller(tried, caller.context), command, is_recorded=command.record)
    if command.record:
        gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    return answer


async def _try_policy(gateway: Gateway, caller: Caller, command: TryPolicy) -> ScanAnswer:
    wanted = WantedPolicy(
        block_score=command.block_score, review_score=command.review_score, category_actions=command.category_actions
    )
    return await gateway.scans.rehearse(ScanText(command.text, command.direction), gateway.policies.draft(wanted))


_TRY = row(
    "shield.try",
    "POST /api/shield/scan",
    Permission.SHIELD_READ,
    "Scan a text, under a `policy` or as a `key` if named. Recorded unless `record` is false.",
    takes=TryText,
    gives=ScanAnswer,
    write=ScanAnswer.data,
    schema=scan_schema,
    call=_try_text,
    body_setting="max_scan_body_bytes",
    max_chars={"text": "max_text_chars"},
)
_RULES = Noun(
    "shield.rules",
    RuleDetail,
    Permission.SHIELD_READ,
    Permission.SHIELD_MANAGE,
    view=lambda gateway, found: _view(RuleDetail, found),
    service="rules",
)

_STORED = Noun("shield.rules", LocalRule, Permission.SHIELD_READ, Permission.SHIELD_MANAGE, service="local_rules")
_TESTS = Noun("shield.tests", ShieldTestsRun, Permission.SHIELD_READ, Permission.SHIELD_MANAGE, service="shield_tests")


async def _rule_history(gateway: Gateway, caller: Caller, command: ById) -> object:
    return whole(await gateway.local_rules.history(command.id))


OPERATIONS = (
    _TRY,
    replace(
        _TRY,
        name="shield.rehearse",
        route=("POST", "/api/shield/dry-run"),
        summary="Score a text by `block_score`?, `review_score`? and `category_actions`?. Nothing is recorded.",
        takes=TryPolicy,
        call=_try_policy,
    ),
    row(
        "shield.chat",
        "POST /api/shield/chat",
        Permission.API_KEYS_MANAGE,  # who may make a key may chat, as with the scopes of keys
        "Try a chat, OpenAI-compatible, under a `policy` or as a `key`. No traffic, alert or text is recorded.",
        takes=TriedAs,
        query=(text("policy", "Id or name of the policy to try."), text("key", "Id of the API key to try.")),
        body_setting="max_chat_body_bytes",
        has_secret=True,  # may be a stream, which is never compressed
        fails=("content_policy_violation", "upstream_unavailable", "shield_unavailable", "budget_exceeded"),
    ),
    row(
        "shield.models",
        "GET /api/shield/models",
        Permission.SHIELD_READ,
        "List the models that a trial chat may name, OpenAI-compatible.",
        fails=("upstream_unavailable",),
    ),
    _RULES.list(
        "List the rules in use with their overrides, and how often each matched in seven days.",
        verb="in_use",
        gives=RuleView,
        view=lambda gateway, found: _view(RuleView, found),
    ),
    _RULES.show("Show one rule with its pattern and its examples."),
    _RULES.row(
        "change",
        "PATCH",
        "Override `rule`: `enabled`?, `severity`? (or `default`), `reason`?. At once, in every worker.",
        takes=WantedOverride,
        kinds=(
            kind(enabled={"enum": [True, None]}),
            kind(("enabled", "reason"), enabled={"const": False}, reason={"type": "string", "pattern": LINE_PATTERN}),
        ),
    ),
    _STORED.create(
        NewRule,
        "Store a rule of your own: `rule` with the fields of a rule file, an id `local:…`, and a `reason`.",
    ),
    _STORED.row(
        "edit",
        "PATCH /{id}",
        "Store a new version of a rule of your own: `rule` or an older version `to`, `reason`. `version` guards.",
        method="change",
        takes=with_id(ChangedRule),
    ),
    _STORED.remove(
        "Remove a rule of your own. Its versions stay.",
        takes=RemoveRule,
        query=(replace(text("reason", "Why, for readers of the audit log."), is_required=True),),
        call=lambda gateway, caller, command: gateway.local_rules.remove(caller, command),
    ),
    _STORED.row(
        "history",
        "GET /{id}/history",
        "List the versions of a rule of your own, newest first. One without `rule` removed it.",
        takes=ById,
        is_list=True,
        call=_rule_history,
    ),
    row(
        "shield.rules.try",
        "POST /api/shield/rules/try",
        Permission.SHIELD_READ,
        "Try a draft of a rule on up to 50 `texts`. Nothing is stored.",
        takes=TryRule,
        gives=TriedRule,
        call=lambda gateway, caller, command: gateway.rule_trials.try_rule(command),
        body_setting="max_scan_body_bytes",
        fails=("overloaded",),
    ),
    _RULES.row(
        "replay",
        "POST /replay",
        "Show what a draft `rule`, or leaving out the rule `without`, would change in seven days and the suite.",
        takes=ReplayRule,
        gives=Replay,
        call=lambda gateway, caller, command: gateway.rule_trials.replay_rule(caller.principal, command),
    ),
    _TESTS.row(
        "show",
        "GET",
        "Show the last run of the validation suite, a summary of older ones, and the progress of a running one.",
        gives=ShieldTestsState,
        call=lambda gateway, caller, command: gateway.shield_tests.state(),
    ),
    _TESTS.create(
        RunShieldTests,
        "Run the validation suite: `category`?, `include_known_gaps`?. Answers when the run is done.",
        verb="run",
        method="run",
    ),
)
PUBLIC_OPERATIONS = (
    replace(
        _TRY,
        name="shield.scan",
        route=("POST", "/api/v1/shield/scan"),
        door=Door.KEY,
        needs=Scope.SHIELD_SCAN,
        summary="Scan a text for attacks, secrets and personal data. Answers verdict, score and what matched.",
        takes=ScanText,
        call=_scan,
        fails=("shield_unavailable", "audit_unavailable", "overloaded"),
    ),
    row(
        "shield.rules.list",
        "GET /api/v1/shield/rules",
        Scope.SHIELD_READ,
        "List the rules in use, without their patterns and examples.",
        is_list=True,
        gives=RuleSummary,
        call=_list_rules,
    ),
    row(
        "shield.tests.last",
        "GET /api/v1/shield/tests",
        Scope.SHIELD_READ,
        "Show the last run of the validation suite: rates, failures, times, and what changed since.",
        gives=LastShieldTests,
        call=lambda gateway, caller, command: gateway.shield_tests.last(),
    ),
)
