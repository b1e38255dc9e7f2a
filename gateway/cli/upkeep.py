"""`trust-audit`, `version`, `doctor`, `openapi`, `verify`: what this copy is, and what its setup lacks."""

import argparse
import hashlib
import json
import os
import re
import sys
from contextlib import aclosing
from dataclasses import dataclass
from zipfile import ZipFile

import anyio

from gateway import __version__, bundle, compose
from gateway.api.openapi import document
from gateway.app import Gateway
from gateway.cli.bytecode import compile_pyc
from gateway.cli.command import (
    FOUND,
    OK,
    Console,
    argument,
    caller,
    command,
    load_settings,
    make_log,
    shown,
    table,
    with_gateway,
)
from gateway.clock import Clock
from gateway.domain import manual, markdown
from gateway.domain.posture import Check, CheckStatus, TrustAudit
from gateway.domain.trust_audit_facts import RunningGateway
from gateway.errors import GatewayError, SetupError
from gateway.http.client import Client
from gateway.http.messages import ClientError, Terms
from gateway.operations.every import DESCRIBED_OPERATIONS
from gateway.schema import encode
from gateway.services.archive_check import BAD_ARCHIVE, MANIFEST, check_members
from gateway.services.running import THIS_SHELL, rules_lack
from gateway.settings import Settings, is_loopback
from gateway.shield.detections import Severity

PYTHON = "{}.{}.{}".format(*sys.version_info[:3])
OTHER_BUILD = "use a file that was built with `build_zipapp.py --release`, which has all Pythons and platforms"
FULL_RULES = "remove GATEWAY_RULES, and name your own rules in GATEWAY_RULES_EXTRA, on top of the built-in ones"
LEAST_FREE_BYTES = 256 * 1024 * 1024
HEALTH_SECONDS, HEALTH_BYTES = 5.0, 65_536
RELEASED_AT = 1_767_225_600_000  # 2026-01-01: a clock before this was never set
_WORST_FIRST = tuple(Severity)
_MARKS = {CheckStatus.PASS: "ok", CheckStatus.WARN: "WARN", CheckStatus.FAIL: "FAIL", CheckStatus.NOT_APPLICABLE: "-"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `doctor`. fix: what to do if it is not good."""

    check: str
    good: bool
    what: str
    fix: str | None = None


@command("version", "Show the version and the identity of this copy.", "--json", has_json=True)
def _version(options: argparse.Namespace, console: Console) -> None:
    about = {
        "version": __version__,
        "build": bundle.build_id(),
        "archive_sha256": bundle.archive_sha256(),
        "python": PYTHON,
        "matcher": console.native.way,
    }
    if options.json:
        console.print_json(about)
    else:
        console.print(f"gateway {__version__} (build {bundle.build_id()})")
        console.print(f"archive SHA-256: {about['archive_sha256'] or 'none, this runs from a folder'}")
        console.print(f"Python {about['python']}, matcher: {about['matcher']}")


@command("doctor", "Check this copy and this host, and say what to fix.", "", has_json=True)
def _doctor(options: argparse.Namespace, console: Console) -> int:
    config = load_settings(options)
    findings = [
        *_check_program(console),
        _check_rules(config),
        _check_data_dir(config),
        *_check_database(config),
        _check_clock(),
    ]
    if options.json:
        console.print_json([encode(one) for one in findings])
    else:
        for one in findings:
            console.print(f"{'ok  ' if one.good else 'FIX '} {one.check}: {one.what}")
            if not one.good:
                console.print(f"     {one.fix}")
    return OK if all(one.good for one in findings) else FOUND


def _check_program(console: Console) -> list[Finding]:
    about = bundle.manifest()
    where = f"archive {bundle.archive_path()}" if about else f"the folder {bundle.ROOT}"
    found = [Finding("python", True, f"{PYTHON}, {sys.platform}, running from {where}")]
    if about is not None:
        found.append(_check_byte_code(about.bytecode))
    native = console.native
    why = "; ".join(f"{way}: {reason}" for way, reason in native.tried if reason != "ok")
    if native.way == "python":
        text = f"pure Python fallback: same detections, 2 to 4 times slower ({why})"
        wanted = native.tried[0][1] == "not wanted"
        fix = f"{OTHER_BUILD}, or use a host that allows memfd or an executable folder"
        found.append(Finding("matcher", wanted, text, fix))
    else:
        found.append(Finding("matcher", True, f"native, by {native.way}" + (f" ({why})" if why else "")))
    return found


def _check_byte_code(tags: tuple[str, ...]) -> Finding:
    """Check whether the archive has the byte code of the running Python. tags: the Pythons that it has some for."""
    pythons = [re.sub(r"^cpython-(\d)(\d+)$", r"Python \1.\2", tag) for tag in tags]
    if sys.implementation.cache_tag in tags:
        return Finding("byte code", True, f"from the archive, which has it for {' and '.join(pythons)}")
    what = f"compiled at each start, which is slower: this file was built for {' and '.join(pythons) or 'no Python'}"
    run_it = f"run it with {' or '.join(pythons)}, or " if pythons else ""
    return Finding("byte code", False, what, run_it + OTHER_BUILD)


def _check_rules(config: Settings) -> Finding:
    try:
        scanner = compose.load_shield(config.rules, config.rules_extra)
    except GatewayError as error:
        return Finding("rules", False, error.message, "correct the rule file: `rules check FILE` names the place")
    if lack := rules_lack(scanner, config.rules):
        return Finding("rules", False, lack, FULL_RULES)
    local = f", {scanner.local_count} of them local" if config.rules_extra else ""
    return Finding("rules", True, f"{len(scanner.rules)} rules{local}, SHA-256 {scanner.digest[:16]}…")


def _check_data_dir(config: Settings) -> Finding:
    if config.data_dir == ":memory:":
        return Finding("data folder", True, ":memory:, nothing is written and nothing survives a restart")
    folder = config.data_dir
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    what = f"{config.data_dir}" + ("" if folder == config.data_dir else " (does not exist yet)")
    fix = "name a folder that this user can write to with --data-dir or GATEWAY_DATA_DIR, or :memory:"
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("data folder", False, f"{what}: {folder} is not writable", fix)
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < LEAST_FREE_BYTES:
        return Finding("data folder", False, f"{what}: {free >> 20} MiB free", "make room: at least 256 MiB")
    return Finding("data folder", True, f"{what}, {free >> 20} MiB free")


def _check_database(config: Settings) -> list[Finding]:
    """Open the database, if there is one: its audit chain, the gateway that runs on it, and its providers' keys."""
    if not compose.has_database(config):
        return [Finding("database", True, "none yet; the first `serve` or `keys create` makes it")]

    async def look() -> list[Finding]:
        async with compose.open_gateway(config, log=make_log(config), is_shell=True) as gateway:
            report = await gateway.audit.verify()
            checked = await gateway.store.db.read(gateway.running.checked)
            used = [one for one in await gateway.store.db.read(gateway.store.providers.all) if one.enabled]
            refusals = {one.name: gateway.secrets.refusal(one.key_reference or "") for one in used}
        found = [Finding("database", True, f"opens; audit chain of {report.events} events is whole")]
        if not report.ok:
            found = [Finding("database", False, f"the audit chain is broken: {report.reason}", "restore a backup")]
        elif checked.settings_of != THIS_SHELL:
            found.append(_check_running(checked))
        fix = "change the reference with `providers update`, or the setting that the line names"
        bad = [Finding("providers", False, f"{name}: {reason}", fix) for name, reason in refusals.items() if reason]
        good = Finding("providers", True, f"{len(used)} in use; the settings allow each key's reference")
        return [*found, *(bad or [good])]

    try:
        return anyio.run(look)
    except GatewayError as error:
        return [Finding("database", False, error.message, "see the line above; nothing was changed")]


def _check_running(checked: RunningGateway) -> Finding:
    """Report the settings of the gateway that runs on the data folder. They may differ from those of this shell."""
    facts = checked.facts
    if facts.rules_lack:
        return Finding("running gateway", False, f"{checked.settings_of}: {facts.rules_lack}", FULL_RULES)
    sign_in = "users sign in" if facts.rbac_enabled else "nobody signs in"
    where = f"{checked.settings_of} on {facts.host}"
    what = f"{where}: {sign_in}, a BLOCK means {facts.shield_mode}, {facts.rules_count} rules"
    return Finding("running gateway", True, what)


def _check_clock() -> Finding:
    good = Clock().now_at() > RELEASED_AT
    return Finding("clock", good, "plausible" if good else "years behind", "set the clock; expiry and audit need it")


@command(
    "health",
    "Ask a running gateway whether it answers. Exit 0 if it does, 1 if not.",
    "--url http://127.0.0.1:5001",
    argument("--url", help="base URL of the gateway; its port on this host, by the settings, if left out"),
)
def _health(options: argparse.Namespace, console: Console) -> int:
    config = load_settings(options)
    host = config.host if is_loopback(config.host) else "127.0.0.1"  # a server that serves others serves this host too
    url = options.url or f"http://{f'[{host}]' if ':' in host else host}:{config.port}"

    async def ask() -> int:
        seconds = HEALTH_SECONDS
        async with aclosing(Client()) as client:
            terms = Terms(
                connect_seconds=seconds, first_byte_seconds=seconds, total_seconds=seconds, max_reply_bytes=HEALTH_BYTES
            )
            return (await client.request("GET", url.rstrip("/") + "/api/v1/health", (), b"", terms)).status

    try:
        status = anyio.run(ask)
    except ValueError as error:
        raise SetupError(f"--url must be a URL such as http://127.0.0.1:5001: {error}") from error
    except ClientError as error:
        console.print(f"{url}: {error.reason.replace('the upstream', 'the gateway')}")
        return FOUND
    # On its own port, it refuses plain HTTP where it serves HTTPS (400), and the name where hosts are restricted (421).
    is_up = status == 200 or (not options.url and status in (400, 421))
    console.print(f"{url}: the gateway answers" if is_up else f"{url}: status {status} instead of 200")
    return OK if is_up else FOUND


@command(
    "docs",
    "List the documents, or print one.",
    "start/quickstart",
    argument("page", nargs="?", help="such as start/quickstart"),
)
def _docs(options: argparse.Namespace, console: Console) -> None:
    if options.page:
        console.out.write(manual.read(options.page))
        return
    rows = [(name.removesuffix(".md"), markdown.title(manual.read(name))) for name in manual.names()]
    console.print(table(rows, ("PAGE", "TITLE")))


@command("openapi", "Print the OpenAPI document.", "> openapi.json")
def _openapi(options: argparse.Namespace, console: Console) -> None:
    console.print_json(document(DESCRIBED_OPERATIONS, load_settings(options)))


@command(
    "verify",
    "Check an archive against its manifest.",
    "new.pyz --bytecode",
    argument("file", nargs="?", metavar="FILE", help="archive to check; the running one if left out"),
    argument("--bytecode", action="store_true", help="also compile the sources and compare"),
    has_json=True,
)
def _verify(options: argparse.Namespace, console: Console) -> int:
    path = options.file or bundle.archive_path()
    if path is None:
        raise SetupError("this runs from a folder: name the archive to verify")
    # Nothing of the archive is run, imported or unmarshalled.
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            with ZipFile(file) as archive:
                hashes, problems = check_members(archive)
                is_whole = not problems
                if options.bytecode and is_whole:
                    problems = check_bytecode(archive)
    except BAD_ARCHIVE as error:
        raise SetupError(
            f"{path} is not a complete gateway archive ({type(error).__name__}): get a fresh copy"
        ) from error
    if options.json:
        console.print_json({"file": path, "sha256": digest, "members": len(hashes), "problems": problems})
        return FOUND if problems else OK
    for problem in problems:
        console.print(shown(problem, 200))
    state = "matches its manifest" if is_whole else "DAMAGED"
    if options.bytecode and is_whole:
        of_python = f"the byte code of {sys.implementation.cache_tag}"
        state += f"; {of_python} is not confirmed" if problems else f", and {of_python} its sources"
    console.print(f"{digest}  {path}: {state}, {len(hashes)} members")
    return FOUND if problems else OK


def check_bytecode(archive: ZipFile) -> list[str]:
    """Compile the sources in the archive and compare them with its byte code for the running Python."""
    tag = sys.implementation.cache_tag
    tags = json.loads(archive.read(MANIFEST))["bytecode"]
    if tag not in tags:
        have = ", ".join(tags) or "none"
        return [f"there is no byte code of {tag} in it to compare (it has: {have}); run this with another Python"]
    names = set(archive.namelist())
    sources = {name for name in names if name.endswith(".py") and not name.startswith("_")}
    compiled = {name for name in names if name.startswith(f"_{tag}/") and name.endswith(".pyc")}
    problems = []
    for source in sorted(sources):
        member = f"_{tag}/{source}c"
        if member not in compiled:
            problems.append(f"{source} has no byte code")
        elif archive.read(member) != _compiled(archive, source):
            problems.append(f"{source} has other byte code")
    extra = compiled - {f"_{tag}/{source}c" for source in sources}
    problems += [f"{name} has no source" for name in sorted(extra)]
    # The byte code of anyio reads two of its sources, which therefore lie beside it as well.
    copies = [name for name in names if name.startswith(f"_{tag}/") and name.endswith(".py")]
    changed = [name for name in copies if archive.read(name) != archive.read(name.removeprefix(f"_{tag}/"))]
    return problems + [f"{name} is another source" for name in sorted(changed)]


def _compiled(archive: ZipFile, source: str) -> bytes | None:
    try:
        return compile_pyc(archive.read(source), source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@command(
    "trust-audit",
    "Check how this gateway is set up. Exit 0 when nothing fails, 1 when a check fails, 2 on an error.",
    "--min-severity high --json",
    argument(
        "--min-severity",
        choices=[severity.value for severity in Severity],
        default=Severity.LOW.value,
        help="check only this severity and above (low: all)",
    ),
    has_json=True,
)
def _trust_audit(options: argparse.Namespace, console: Console) -> int:
    least = _WORST_FIRST.index(Severity(options.min_severity))

    async def work(gateway: Gateway) -> int:
        run = await gateway.trust_audits.run(caller(gateway))
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
        console.print("settings of this shell, because no gateway runs on this data folder; the run is not stored")
    else:
        console.print(f"settings of the running gateway {run.settings_of}")
    score = "unknown" if run.score is None else f"{run.score} of 100"
    counts = f"{run.passed} pass, {run.warned} warn, {run.failed} fail, {run.skipped} do not apply"
    console.print(f"posture {score}: {counts} ({run.id})")


COMMANDS = (_trust_audit, _version, _doctor, _health, _docs, _openapi, _verify)
