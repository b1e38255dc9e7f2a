"""The tool that runs the validation suite of the shield."""

from dataclasses import replace

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.mcp.progress import Progress
from gateway.mcp.tool import Tool, ToolOutput
from gateway.schema import encode, json_schema
from gateway.services.shield_tests import RunShieldTests, ShieldTestsRun
from gateway.strict_json import write_time

_MOST_LISTED = 20  # what a tool answers is read by a model, which pays by the word


async def _run(
    gateway: Gateway, principal: Principal, command: RunShieldTests, context: RequestContext, progress: Progress
) -> ToolOutput:
    async def told(done: int, total: int) -> None:
        await progress.tell(done, total, f"{done} of {total} texts scanned")

    await gateway.posture.running.check_rules()
    run = await gateway.shield_tests.run(principal, command, context, told)
    report = replace(run.report, unexercised=run.report.unexercised[:_MOST_LISTED])
    return ToolOutput(_text(run), encode(replace(run, report=report)))


def _text(run: ShieldTestsRun) -> str:
    report = run.report
    lines = [
        f"Cases: {report.cases}, {len(report.failures)} failed",
        f"Attacks found: {report.found} of {report.attacks} ({_percent(report.detection_rate)})",
        f"Benign texts flagged: {report.flagged} of {report.controls} ({_percent(report.false_positive_rate)})",
        f"Rules that no case matched: {len(report.unexercised)}",
        f"Time of a scan: p50 {report.p50_us} us, p95 {report.p95_us} us",
    ]
    if run.include_known_gaps:
        lines.append(f"Known gaps: {len(report.open_gaps)} open, {len(report.closed_gaps)} closed")
    if run.change is None:
        lines.append("No such run before.")
    else:
        change = run.change
        lines.append(
            f"Since {write_time(change.since_at)}: {len(change.newly_failing)} cases newly failing, "
            f"{len(change.newly_holding)} newly holding, with {'other' if change.rules_changed else 'the same'} rules"
        )
    lines += [
        f"- {one.case}: must be {one.expected.value} but is {one.verdict.value}"
        for one in report.failures[:_MOST_LISTED]
    ]
    if len(report.failures) > _MOST_LISTED:
        lines.append(f"and {len(report.failures) - _MOST_LISTED} more")
    return "\n".join(lines)


def _percent(rate: float | None) -> str:
    return "no such case" if rate is None else f"{rate:.1%}"


RUN_SHIELD_TESTS = Tool(
    name="run_shield_tests",
    title="Run the shield's tests",
    description=(
        "Run the validation suite: attacks and benign texts with the verdict that each should have. Answers detection "
        "rate, false-positive rate, failed cases, rules that no case matched (the first 20), times, and what changed "
        "since the last run. Counts as no traffic."
    ),
    takes=RunShieldTests,
    gives=lambda: json_schema(ShieldTestsRun, written=True),
    long_call=_run,
    is_read_only=False,
    is_idempotent=False,
)
"""The row of the tool."""
