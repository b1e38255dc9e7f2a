"""`rules export` and `rules diff`: the rules as a file, and what two rule files have different."""

import argparse
from pathlib import Path
from typing import Any

from gateway.cli.command import FOUND, OK, Console, argument, command, load_settings, shield_in_use, shown
from gateway.errors import SetupError
from gateway.schema import encode
from gateway.shield import RULES_FILE, RuleError, data_files
from gateway.shield.rules import read_document

_Fields = dict[str, Any]
_SHOWN_CHARS = 120


@command(
    "rules export",
    "Write the built-in rules, or those in use, as a rule file.",
    "--output rules.json",
    argument("--output", metavar="FILE", help="where the rules are written; standard output if left out"),
    argument("--in-use", action="store_true", help="the rules of the settings, with the extra ones"),
    argument("--rules-extra", metavar="FILES", help="with --in-use: rule files or folders to add, comma-separated"),
)
def _export(options: argparse.Namespace, console: Console) -> None:
    if options.in_use:
        data = shield_in_use(options, load_settings(options)).source
    else:
        data = data_files.read(RULES_FILE)
    if not options.output:
        console.print(data.decode().rstrip("\n"))
        return
    try:
        Path(options.output).write_bytes(data)
    except OSError as error:
        raise SetupError(f"{shown(options.output)} cannot be written: {error.strerror or error}") from error


@command(
    "rules diff",
    "Tell what a rule file adds, removes and changes. Exit 0 the same, 1 different, 2 error.",
    "my.json",
    argument("file", metavar="FILE", help="rule file; with OTHER, the one to compare with"),
    argument(
        "other", nargs="?", metavar="OTHER", help="rule file to compare; if left out, FILE with the built-in rules"
    ),
    has_json=True,
)
def _diff(options: argparse.Namespace, console: Console) -> int:
    before = _by_id(_read(options.file) if options.other else data_files.read(RULES_FILE), options.file)
    after = _by_id(_read(options.other or options.file), options.other or options.file)
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    changed = {name: _changes(before[name], after[name]) for name in sorted(before.keys() & after.keys())}
    changed = {name: fields for name, fields in changed.items() if fields}
    if options.json:
        console.print_json({"added": added, "removed": removed, "changed": changed})
    else:
        for word, names in (("added", added), ("removed", removed)):
            for name in names:
                console.print(f"{word}: {name}")
        for name, changes in changed.items():
            for field, (old, new) in changes.items():
                console.print(f"changed: {name}: {field}: {_text(old)} -> {_text(new)}")
        console.print(f"{len(added)} added, {len(removed)} removed, {len(changed)} changed")
    return FOUND if added or removed or changed else OK


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SetupError(f"{shown(path)} cannot be read: {error.strerror or error}") from error


def _by_id(raw: bytes, path: str) -> dict[str, _Fields]:
    """Return the fields of each rule by its id, and each table as `table NAME`."""
    try:
        rules, tables = read_document(raw)
    except RuleError as error:
        raise SetupError(str(error.within(shown(path, 200)))) from error
    named = {rule.id: {name.replace("passes", "pass"): one for name, one in encode(rule).items()} for rule in rules}
    return named | {f"table {name}": {"words": tables[name]} for name in tables}


def _changes(before: _Fields, after: _Fields) -> dict[str, list[Any]]:
    """Return the old and the new value of each field that differs."""
    return {name: [before[name], after[name]] for name in before if before[name] != after[name]}


def _text(value: object) -> str:
    return "none" if value is None else shown(", ".join(value) if isinstance(value, list) else str(value), _SHOWN_CHARS)


COMMANDS = (_export, _diff)
