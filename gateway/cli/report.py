"""`report`: make a report and print or write it, with a line of progress on a terminal."""

import argparse

from gateway import strict_json
from gateway.app import Gateway
from gateway.cli.audit_log import private_file
from gateway.cli.command import OK, Command, Console
from gateway.cli.data_folder import context, with_gateway
from gateway.clock import SystemClock
from gateway.domain.principals import local
from gateway.domain.reports import ReportFormat, ReportType
from gateway.services.reports import NewReport, Progress


def report(options: argparse.Namespace, console: Console) -> int:
    """Make the report, keep it, and give it out."""
    now_at = SystemClock().now_at()
    wanted = NewReport(
        type=ReportType(options.type),
        format=ReportFormat(options.format),
        since=strict_json.read_time(options.since, param="--since", now_at=now_at) if options.since else None,
        until=strict_json.read_time(options.until, param="--until", now_at=now_at) if options.until else None,
    )

    async def work(gateway: Gateway) -> int:
        told = _progress(console, wanted) if console.err.isatty() else None
        made = await gateway.reports.make(local("cli"), wanted, context(gateway), progress=told)
        if options.output:
            with private_file(options.output) as file:
                file.write(made.document)
            console.note(f"{made.report.id}: {made.report.document_bytes} bytes written to {options.output}")
        else:
            console.out.write(made.document)
        return OK

    return with_gateway(options, work)


def _progress(console: Console, wanted: NewReport) -> Progress:
    """Return what rewrites one line of a terminal."""

    async def told(done: int, total: int) -> None:
        filled = round(20 * done / total)
        bar = "#" * filled + "." * (20 - filled)
        console.err.write(f"\r{wanted.type.value} [{bar}] {done} of {total}" + ("\n" if done == total else ""))
        console.err.flush()

    return told


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    parser.add_argument("--type", required=True, choices=[one.value for one in ReportType])
    parser.add_argument("--format", choices=[one.value for one in ReportFormat], default=ReportFormat.MARKDOWN.value)
    parser.add_argument("--since", metavar="AGE|DATE", help="begin of the period, such as 30d or 2026-01-01 (7d)")
    parser.add_argument("--until", metavar="AGE|DATE", help="end of the period (now)")
    parser.add_argument("--output", metavar="FILE", help="file to write, for its owner alone; stdout if left out")


COMMANDS = (
    Command(
        "report",
        "Make a report as HTML, Markdown, CSV or JSON.",
        "gateway.pyz report --type executive_summary --format html --since 30d --output summary.html",
        declare,
        report,
    ),
)
