"""The rows of the shield on the internal API: scan a text, try a policy, the rules, the validation suite."""

from dataclasses import dataclass, field, replace
from typing import TypeVar

from gateway.app import Gateway
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.field_types import LINE_PATTERN
from gateway.operations.operation import kind
from gateway.operations.rows import Noun, row
from gateway.operations.views import project
from gateway.services.policies import Actions, Score, WantedPolicy
from gateway.services.rules import RuleInUse, WantedOverride
from gateway.services.scans import ScanAnswer, ScanText, scan_schema
from gateway.services.shield_tests import RunShieldTests, ShieldTestsRun, ShieldTestsState
from gateway.shield.detections import Direction, Severity

View = TypeVar("View")


@dataclass(frozen=True, slots=True, kw_only=True)
class TryText(ScanText):
    """A text that an operator scans. record: whether traffic, alerts, threats and audit events are recorded."""

    record: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TryPolicy(ScanText):
    """A text, and the thresholds and weights to try; each has its default if left out."""

    block_score: Score | None = None
    review_score: Score | None = None
    category_actions: Actions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule and its override. file_severity: what the rule file says. hits: in the last seven days."""

    id: str
    name: str
    category: str
    severity: Severity
    file_severity: Severity
    enabled: bool
    confidence: float
    description: str
    direction: tuple[Direction, ...]
    view: str
    standards: tuple[str, ...]
    tags: tuple[str, ...]
    hits: int
    reason: str | None
    changed_at: int | None
    changed_by: str | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDetail(RuleView):
    """A rule with its pattern, and the texts that it must and must not match."""

    literals: tuple[str, ...]
    pattern: str | None
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
        enabled=found.enabled,
        direction=tuple(sorted(rule.direction)),
        hits=found.hits,
        reason=override.reason if override else None,
        changed_at=override.changed_at if override else None,
        changed_by=override.changed_by if override else None,
        version=override.version if override else 0,
    )


async def scan(gateway: Gateway, who: Principal, command: ScanText, context: RequestContext) -> ScanAnswer:
    """Scan one text like one of a caller, and count its verdict."""
    answer = await gateway.scans.scan(who, command, context)
    gateway.metrics.count("gateway_scans_total", source="scan", verdict=answer.verdict.value)
    return answer


async def try_text(gateway: Gateway, who: Principal, command: TryText, context: RequestContext) -> ScanAnswer:
    """Scan one text for an operator, who decides whether to record it."""
    if command.record:
        return await scan(gateway, who, command, context)
    return await gateway.scans.scan(who, command, context, is_recorded=False)


async def try_policy(gateway: Gateway, who: Principal, command: TryPolicy, context: RequestContext) -> ScanAnswer:
    """Score one text by thresholds and weights, and record nothing."""
    wanted = WantedPolicy(
        block_score=command.block_score,
        review_score=command.review_score,
        category_actions=command.category_actions,
    )
    return await gateway.scans.rehearse(ScanText(command.text, command.direction), gateway.policies.draft(wanted))


_TRY = row(
    "shield.try",
    "POST /api/shield/scan",
    Permission.SHIELD_READ,
    "Scan a text. The gateway records the scan unless `record` is false.",
    takes=TryText,
    gives=ScanAnswer,
    write=ScanAnswer.data,
    schema=scan_schema,
    call=try_text,
    body_setting="max_scan_body_bytes",
    max_chars={"text": "max_text_chars"},
)
_RULES = Noun(
    name="shield.rules",
    path="/api/shield/rules",
    service=lambda gateway: gateway.rules,
    gives=RuleDetail,
    view=lambda gateway, found: _view(RuleDetail, found),
    reads=Permission.SHIELD_READ,
    manages=Permission.SHIELD_MANAGE,
)

SHIELD_OPERATIONS = (
    _TRY,
    replace(
        _TRY,
        name="shield.rehearse",
        route=("POST", "/api/shield/dry-run"),
        summary="Judge a text by `block_score`?, `review_score`? and `category_actions`?. Nothing is recorded.",
        takes=TryPolicy,
        call=try_policy,
    ),
    replace(_RULES, gives=RuleView, view=lambda gateway, found: _view(RuleView, found)).list(
        "List the rules as they hold here, with how often each matched in seven days.", verb="in_use"
    ),
    _RULES.show("Show one rule with what it looks for and its examples."),
    _RULES.row(
        "change",
        "PATCH",
        "Set how `rule` holds: `enabled`?, `severity`? (or `default`), `reason`?. At once, in every worker.",
        takes=WantedOverride,
        call=_RULES.showing(lambda rules, who, command, context: rules.change(who, command, context)),
        kinds=(
            kind(enabled={"enum": [True, None]}),
            kind(("enabled", "reason"), enabled={"const": False}, reason={"type": "string", "pattern": LINE_PATTERN}),
        ),
    ),
    row(
        "shield.tests.show",
        "GET /api/shield/tests",
        Permission.SHIELD_READ,
        "Show the last run of the validation suite, older ones in short, and how far one is that runs.",
        gives=ShieldTestsState,
        call=lambda gateway, who, command, context: gateway.shield_tests.state(),
    ),
    row(
        "shield.tests.run",
        "POST /api/shield/tests",
        Permission.SHIELD_MANAGE,
        "Run the validation suite: `category`?, `include_known_gaps`?. Answers when it is done.",
        takes=RunShieldTests,
        gives=ShieldTestsRun,
        call=lambda gateway, who, command, context: gateway.shield_tests.run(who, command, context),
        status=201,
    ),
)
