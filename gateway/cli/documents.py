"""`audit verify`, `audit export` and `report`: check the audit log, and write it or a report to a private file."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from gateway import compose
from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Console, argument, caller, command, load_settings, past_time, with_gateway
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import read_request_id
from gateway.domain.reports import ReportFormat, ReportType
from gateway.errors import InvalidRequest, SetupError
from gateway.schema import encode
from gateway.services.audit_export import ExportFormat, export
from gateway.services.reports import NewReport
from gateway.strict_json import write_time


@command(
    "audit verify",
    "Check the audit log's hash chain, and an exported evidence file against it.",
    "--evidence inc_01J0000000000000000000000.json",
    argument("--evidence", metavar="FILE", help="exported evidence of an incident, HTML or JSON, to compare"),
    has_json=True,
)
def _audit_verify(options: argparse.Namespace, console: Console) -> int:
    _need_database(options)
    evidence = _read(options.evidence) if options.evidence else None

    async def work(gateway: Gateway) -> int:
        report = await gateway.audit.verify()
        export = None if evidence is None else await gateway.evidence.export_of(evidence)
        is_good = report.ok and (evidence is None or export is not None)
        if options.json:
            found = {} if evidence is None else {"evidence": export and export.id}
            console.print_json(encode(report) | found)
            return OK if is_good else FOUND
        if report.ok:
            console.print(f"ok: {report.events} events, the chain is whole")
        else:
            console.print(f"BROKEN at event {report.first_broken_seq}: {report.reason}")
        if export is not None:
            when = write_time(export.occurred_at)
            console.print(
                f"ok: the file is the evidence of {export.resource_id} that {export.actor} exported at {when}"
            )
        elif evidence is not None:
            console.print("CHANGED: no export in the audit log has the SHA-256 of this file")
        return OK if is_good else FOUND

    return with_gateway(options, work)


def _read(path: str) -> bytes:
    """Return the bytes of a file. Raises InvalidRequest."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.", param="--evidence") from error


@command(
    "audit export",
    "Write the audit log out as JSON lines or CSV, oldest first.",
    "--format csv --since 30d --output audit.csv",
    argument("--format", choices=[form.value for form in ExportFormat], default="jsonl"),
    argument("--since", metavar="AGE|DATE", help="such as 7d or 2026-01-31"),
    argument("--until", metavar="AGE|DATE", help="such as 24h or 2026-02-28"),
    argument("--action", help="only events of this action, such as api_key_created"),
    argument("--source", help="only events of this source, such as api, cli or shield"),
    argument("--actor", help="only events of the actor with this name"),
    argument("--search", metavar="TEXT", help="only events with this agent, key, address or other text"),
    argument("--request-id", metavar="ID", help="only events of a request (req_…)"),
    argument("--output", metavar="FILE", help="file to write, readable only by its owner (stdout)"),
)
def _audit_export(options: argparse.Namespace, console: Console) -> None:
    _need_database(options)
    wanted = AuditFilter(
        **{name: getattr(options, name) for name in ("source", "action", "actor", "search")},
        since=past_time(options.since, "--since"),
        until=past_time(options.until, "--until"),
        request_id=read_request_id(options.request_id, param="--request-id") if options.request_id else None,
    )

    async def work(gateway: Gateway) -> None:
        form = ExportFormat(options.format)
        pieces = await export(gateway.store, gateway.audit, caller(gateway), wanted, form)
        with _output(options, console) as out:
            async for piece in pieces:
                out.write(piece.decode())

    with_gateway(options, work)


@command(
    "report",
    "Make a report as HTML, Markdown, CSV or JSON.",
    "--type executive_summary --format html --since 30d --output summary.html",
    argument("--type", required=True, choices=[one.value for one in ReportType]),
    argument("--format", choices=[one.value for one in ReportFormat], default=ReportFormat.MARKDOWN.value),
    argument("--since", metavar="AGE|DATE", help="start of the period, such as 30d or 2026-01-01 (7d)"),
    argument("--until", metavar="AGE|DATE", help="end of the period (now)"),
    argument("--output", metavar="FILE", help="file to write, readable only by its owner (stdout)"),
)
def _report(options: argparse.Namespace, console: Console) -> None:
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

    async def work(gateway: Gateway) -> None:
        progress = draw if console.err.isatty() else None
        made = await gateway.reports.make(caller(gateway), wanted, progress=progress)
        with _output(options, console, f"{made.report.id}: {made.report.document_bytes} bytes ") as out:
            out.write(made.document)

    with_gateway(options, work)


@command(
    "incidents evidence",
    "Write the evidence of an incident: findings, requests, actions and their hashes.",
    "inc_01J0000000000000000000000 --format json --output evidence.json",
    argument("id", help="id of the incident (inc_…)"),
    argument("--format", choices=[ReportFormat.HTML.value, ReportFormat.JSON.value], default=ReportFormat.HTML.value),
    argument("--output", metavar="FILE", help="file to write, readable only by its owner (stdout)"),
)
def _evidence(options: argparse.Namespace, console: Console) -> None:
    _need_database(options)

    async def work(gateway: Gateway) -> None:
        form = ReportFormat(options.format)
        document = await gateway.evidence.write(caller(gateway), options.id, form)
        with _output(options, console) as out:
            out.write(document)

    with_gateway(options, work)


@contextmanager
def _output(options: argparse.Namespace, console: Console, what: str = "") -> Iterator[TextIO]:
    """Give the file of `--output`, which only its owner may read, or stdout. Say at the end where `what` is written."""
    if not options.output:
        yield console.out
        return
    with open(options.output, "w", encoding="utf-8", newline="", opener=partial(os.open, mode=0o600)) as out:
        yield out
    console.note(f"{what}written to {options.output}")


def _need_database(options: argparse.Namespace) -> None:
    config = load_settings(options)
    if config.data_dir != ":memory:" and not compose.has_database(config):
        raise SetupError(f"there is no database in {config.data_dir}")


COMMANDS = (_audit_verify, _audit_export, _report, _evidence)
