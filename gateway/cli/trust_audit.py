"""`trust-audit`: every check of how this gateway is set up. Exit 0 when none fails, 1 when one does, 2 on an error."""

import argparse

from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Console, argument, command, context, shown, with_gateway
from gateway.domain.posture import Check, CheckStatus, TrustAudit
from gateway.domain.principals import local
from gateway.schema import encode
from gateway.services.running import THIS_SHELL
from gateway.shield.detections import Severity

_WORST_FIRST = tuple(Severity)
_MARKS = {CheckStatus.PASS: "ok", CheckStatus.WARN: "WARN", CheckStatus.FAIL: "FAIL", CheckStatus.NOT_APPLICABLE: "-"}


@command(
    "trust-audit",
    "Check how this gateway is set up. Exit 0 when nothing fails, 1 when a check fails, 2 on an error.",
    "--min-severity high --json",
    argument(
        "--min-severity",
        choices=[severity.value for severity in Severity],
        default=Severity.LOW.value,
        help="check only this severity and graver ones (low: all)",
    ),
    has_json=True,
)
def _trust_audit(options: argparse.Namespace, console: Console) -> int:
    least = _WORST_FIRST.index(Severity(options.min_severity))

    async def work(gateway: Gateway) -> int:
        run = await gateway.trust_audits.run(local("cli"), context(gateway))
        wanted = [check for check in run.checks if _WORST_FIRST.index(check.severity) <= least]
        if options.json:
            console.print_json(encode(run) | {"checks": [encode(check) for check in wanted]})
        else:
            _print_run(run, wanted, console)
        return FOUND if any(check.status is CheckStatus.FAIL for check in wanted) else OK

    return with_gateway(options, work)


def _print_run(run: TrustAudit, wanted: list[Check], console: Console) -> None:
    for check in wanted:
        mark = f"{_MARKS[check.status]:<4}  {check.severity.value:<8}"
        console.print(f"{mark}  {check.title}: {shown(check.evidence, 160)}")
        if check.status in (CheckStatus.WARN, CheckStatus.FAIL):
            console.print(f"      {check.id}: {check.why}")
            console.print(f"      fix: {check.fix}  [{', '.join(check.refs)}]")
    if run.settings_of == THIS_SHELL:
        console.print("settings of this shell, because no gateway runs on this data folder; the run is not kept")
    else:
        console.print(f"settings of the running gateway {run.settings_of}")
    score = "unknown" if run.score is None else f"{run.score} of 100"
    counts = f"{run.passed} pass, {run.warned} warn, {run.failed} fail, {run.skipped} do not apply"
    console.print(f"posture {score}: {counts} ({run.id})")


COMMANDS = (_trust_audit,)
