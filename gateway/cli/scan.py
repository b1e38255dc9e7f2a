"""`scan`: files, folders and stdin through the shield, offline. Human text, JSON, or SARIF 2.1.0."""

import argparse
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from gateway import __version__, compose
from gateway.cli.command import FAILED, FOUND, OK, Console, argument, command, load_settings, shown
from gateway.services.scans import detection_data
from gateway.shield import Shield
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict

LONGEST_FILE_BYTES = 64 * 1024 * 1024
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
RANK = {Verdict.ALLOW: 0, Verdict.REVIEW: 1, Verdict.BLOCK: 2}
LEVELS = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


@dataclass(frozen=True, slots=True)
class Scanned:
    """One source of text and its scan result. error: why it could not be scanned, or None."""

    path: str
    text: str
    result: ScanResult
    error: str | None = None


@command(
    "scan",
    "Scan files, folders or stdin offline. Exit 0 clean, 1 found, 2 error.",
    "--fail-on review --format sarif prompts/ > findings.sarif",
    argument("paths", nargs="*", metavar="FILE", help="files or folders; - or nothing reads stdin"),
    argument("--format", choices=("human", "json", "sarif"), default="human"),
    argument("--fail-on", choices=("review", "block"), default="block", help="verdict that exits with 1"),
    argument("--direction", choices=("inbound", "outbound"), default="inbound"),
    argument("--rules", metavar="FILE", help="rules to use instead of the built-in ones"),
    argument("--rules-extra", metavar="FILES", help="rule files or folders to add on top, comma-separated"),
)
def _run(options: argparse.Namespace, console: Console) -> int:
    settings = load_settings(options)
    scanner = compose.load_shield(settings.rules, settings.rules_extra)
    direction = Direction(options.direction)
    found = [_scan_source(scanner, path, console, direction) for path in _walk(options.paths or ["-"])]
    if options.format == "json":
        console.print_json([_as_json(one) for one in found])
    elif options.format == "sarif":
        console.print_json(_as_sarif(scanner, found))
    else:
        _print_human(found, console)
    failed = [one for one in found if one.error]
    for one in failed:
        console.note(f"gateway: {shown(one.path, 200)}: {one.error}")
    if failed:
        return FAILED
    limit = RANK[Verdict(options.fail_on.upper())]
    return FOUND if any(RANK[one.result.verdict] >= limit for one in found) else OK


def _walk(paths: list[str]) -> Iterator[str]:
    """Yield the named files, and for a folder every regular file below it by name. Symbolic links are not followed."""
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            yield path
            continue
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
            for name in sorted(files):
                full = os.path.join(folder, name)
                if os.path.isfile(full) and not os.path.islink(full):
                    yield full


def _scan_source(scanner: Shield, path: str, console: Console, direction: Direction) -> Scanned:
    """Scan one file, or stdin for ``-``. A source that cannot be read is an error, never a clean result."""
    nothing = ScanResult(Verdict.ALLOW, 0)
    try:
        with nullcontext(console.stdin) if path == "-" else open(path, "rb") as file:
            raw = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        return Scanned(path, "", nothing, error.strerror or "cannot be read")
    if len(raw) > LONGEST_FILE_BYTES:
        return Scanned(path, "", nothing, f"longer than {LONGEST_FILE_BYTES >> 20} MiB; split it")
    is_utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")  # its byte order mark; other bytes become lone surrogates
    text = raw.decode("utf-16", "replace") if is_utf16 else raw.decode("utf-8-sig", "surrogateescape")
    return Scanned(path, text, scanner.scan(text, direction))


def _as_json(one: Scanned) -> dict[str, object]:
    if one.error:
        return {"path": one.path, "error": one.error}
    result = one.result
    return {
        "path": one.path,
        "verdict": result.verdict.value,
        "score": result.score,
        "detections": [detection_data(detection) for detection in result.detections],
        "stats": dict(result.stats()),
    }


def _as_sarif(scanner: Shield, found: list[Scanned]) -> dict[str, object]:
    """Return a SARIF 2.1.0 log (OASIS) with one run, its rules, and one result for each detection."""
    used = {detection.rule: detection for one in found for detection in one.result.detections}
    names = sorted(used)
    results = [
        {
            "ruleId": detection.rule,
            "ruleIndex": names.index(detection.rule),
            "level": LEVELS[detection.severity],
            "message": {"text": f"{detection.description} (view: {detection.view})"},
            "locations": [{"physicalLocation": _location(one, detection)}],
            "rank": float(detection.score),
        }
        for one in found
        for detection in one.result.detections
    ]
    rules = [
        {
            "id": name,
            "name": used[name].name,
            "shortDescription": {"text": used[name].description},
            "properties": {"tags": [used[name].category, *used[name].standards]},
        }
        for name in names
    ]
    driver = {"name": "gateway", "version": __version__, "rules": rules, "properties": {"rulesDigest": scanner.digest}}
    failures = [{"level": "error", "message": {"text": f"{one.path}: {one.error}"}} for one in found if one.error]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failures, "toolExecutionNotifications": failures}],
        "results": results,
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _location(one: Scanned, detection: Detection) -> dict[str, object]:
    line, column = _position(one.text, detection.start)
    end_line, end_column = _position(one.text, detection.end)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {"artifactLocation": {"uri": one.path.replace(os.sep, "/")}, "region": region}


def _position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of a code point offset, both from 1."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - text.rfind("\n", 0, offset)


def _print_human(found: list[Scanned], console: Console) -> None:
    for one in found:
        if one.error or not one.result.detections:
            continue
        console.print(f"{shown(one.path, 200)}: {one.result.verdict.value} (score {one.result.score})")
        for detection in one.result.detections:
            line, column = _position(one.text, detection.start)
            where = f"{line}:{column}".ljust(8)
            console.print(
                f"  {where} {detection.severity.value:<8} +{detection.score:<3} {detection.rule}"
                f"  [{detection.view}]  {shown(detection.matched, 60)!s}"
            )
    counts = {verdict: sum(not one.error and one.result.verdict is verdict for one in found) for verdict in Verdict}
    console.print(
        f"{sum(counts.values())} scanned: {counts[Verdict.BLOCK]} BLOCK, {counts[Verdict.REVIEW]} REVIEW, "
        f"{counts[Verdict.ALLOW]} ALLOW"
    )


COMMANDS = (_run,)
