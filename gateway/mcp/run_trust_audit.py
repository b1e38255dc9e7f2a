"""The tool that runs the trust audit: every check of how this gateway is set up."""

from dataclasses import dataclass, replace
from typing import Annotated

from gateway.app import Gateway
from gateway.domain.posture import Check, CheckStatus, TrustAudit
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.trust_audits import CHECKS
from gateway.errors import InvalidRequest
from gateway.mcp.progress import Progress
from gateway.mcp.tool import Tool, ToolOutput
from gateway.schema import Bounds, encode, json_schema
from gateway.services.running import THIS_SHELL
from gateway.shield.detections import Severity

_GRAVEST_FIRST = tuple(Severity)
_WANTING = (CheckStatus.FAIL, CheckStatus.WARN)


@dataclass(frozen=True, slots=True)
class RunTrustAudit:
    """Which checks to tell of. All of them are run and kept."""

    min_severity: Annotated[Severity | None, "Only checks of this severity or a graver one."] = None
    category: Annotated[Annotated[str, Bounds(1, 40)] | None, "Only checks of this category, such as keys."] = None


async def _run(
    gateway: Gateway, principal: Principal, command: RunTrustAudit, context: RequestContext, progress: Progress
) -> ToolOutput:
    categories = sorted({row.category for row in CHECKS})
    if command.category is not None and command.category not in categories:
        raise InvalidRequest(f"category must be one of {', '.join(categories)}.", param="category")
    await progress.tell(0, len(CHECKS), "looking at the host, the keys and the settings")
    run = await gateway.trust_audits.run(principal, context)
    await progress.tell(len(run.checks), len(run.checks), "every check has been made")
    told = tuple(check for check in run.checks if _is_wanted(check, command))
    return ToolOutput(_text(run, told), encode(replace(run, checks=told)))


def _is_wanted(check: Check, command: RunTrustAudit) -> bool:
    is_grave = command.min_severity is None or _rank(check) <= _GRAVEST_FIRST.index(command.min_severity)
    return is_grave and command.category in (None, check.category)


def _rank(check: Check) -> int:
    return _GRAVEST_FIRST.index(check.severity)


def _text(run: TrustAudit, told: tuple[Check, ...]) -> str:
    score = "none, since no check applies" if run.score is None else f"{run.score}/100"
    is_shell = run.settings_of == THIS_SHELL
    whose = (
        "this shell (no gateway runs, the run is not kept)" if is_shell else f"the running gateway {run.settings_of}"
    )
    lines = [
        f"Run: {run.id}",
        f"Posture score: {score}",
        f"Settings of {whose}",
        f"Checks: {run.passed} passed, {run.warned} with a warning, {run.failed} failed, {run.skipped} do not apply",
    ]
    wanting = [check for check in told if check.status in _WANTING]
    lines.append("To mend:" if wanting else "Nothing to mend among the checks that were asked for.")
    lines += [
        f"- {check.status.value} ({check.severity.value}, {check.category}): {check.title}. Seen: {check.evidence}. "
        f"{check.fix}"
        for check in sorted(wanting, key=lambda check: (check.status.value, _rank(check)))
    ]
    return "\n".join(lines)


RUN_TRUST_AUDIT = Tool(
    name="run_trust_audit",
    title="Run the trust audit",
    description=(
        "Check how this gateway is set up: exposure, sign-in, keys, shield, providers, agents, files, backups, the "
        "audit chain, the archive. Answers the posture score and each check with what was seen, why it matters and how "
        "to mend it. Changes nothing but the record of the run."
    ),
    takes=RunTrustAudit,
    gives=lambda: json_schema(TrustAudit, written=True),
    long_call=_run,
    is_read_only=False,
    is_idempotent=False,
)
"""The row of the tool."""
