"""`report`: make a report and print or write it, with a line of progress on a terminal."""

import argparse

from gateway.app import Gateway
from gateway.cli.audit_log import private_file
from gateway.cli.command import OK, Command, Console, context, past_time, with_gateway
from gateway.domain.principals import local
from gateway.domain.reports import ReportFormat, ReportType
from gateway.services.reports import NewReport


def report(options: argparse.Namespace, console: Console) -> int:
    """Make and keep the report, and print it or write it to a file."""
    wanted = NewReport(
        type=ReportType(options.type),
        format=ReportFormat(options.format),
        since=past_time(options.since, "--since"),
        until=past_time(options.until, "--until"),
    )

    async def draw(done: int, total: int) -> None:
        filled = round(20 * done / total)
        bar = "#" * filled + "." * (20 - filled)
        console.err.write(f"\r{wanted.type.value} [{bar}] {done} of {total}" + ("\n" if done == total else ""))
        console.err.flush()

    async def work(gateway: Gateway) -> int:
        progress = draw if console.err.isatty() else None
        made = await gateway.reports.make(local("cli"), wanted, context(gateway), progress=progress)
        if options.output:
            with private_file(options.output) as file:
                file.write(made.document)
            console.note(f"{made.report.id}: {made.report.document_bytes} bytes written to {options.output}")
        else:
            console.out.write(made.document)
        return OK

    return with_gateway(options, work)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    parser.add_argument("--type", required=True, choices=[one.value for one in ReportType])
    parser.add_argument("--format", choices=[one.value for one in ReportFormat], default=ReportFormat.MARKDOWN.value)
    parser.add_argument("--since", metavar="AGE|DATE", help="start of the period, such as 30d or 2026-01-01 (7d)")
    parser.add_argument("--until", metavar="AGE|DATE", help="end of the period (now)")
    parser.add_argument("--output", metavar="FILE", help="file to write, for its owner alone; stdout if left out")


COMMANDS = (
    Command(
        "report",
        "Make a report as HTML, Markdown, CSV or JSON.",
        "--type executive_summary --format html --since 30d --output summary.html",
        declare,
        report,
    ),
)
