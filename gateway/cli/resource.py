"""Commands made from the rows in `gateway/operations/`: flags from what a row takes, output from what it gives.

The API and the command line share one record for each operation, so both check the same fields in the same way. The
files beside this one hold tables of `Row`s, and hooks for rows that need code, such as to read a password from stdin.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Command, Console, caller, shown, table, with_gateway
from gateway.clock import Clock
from gateway.domain.paging import Page
from gateway.errors import InvalidJson, InvalidRequest
from gateway.operations.operation import Operation
from gateway.schema import decode, encode, json_schema
from gateway.strict_json import read_json

Values = dict[str, object]
View = dict[str, Any]
Cell = str | Callable[[View], str]
"""The field whose value a column shows, or a function from the encoded view to its text."""

_VERBS = {
    **{"list": "find", "add": "create"},
    **dict.fromkeys(("update", "set", "resolve", "passwd", "enable", "disable"), "change"),
}
"""The verb of an operation, where the command of it has another."""
_DIGITS = re.compile("[0-9]{1,18}")
_DECIMAL = re.compile("[0-9]{1,18}(?:\\.[0-9]{0,18})?|\\.[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, and the field of the record that it fills.

    help: the schema's if left out. name: without dashes; the field's own if left out. read: returns the JSON value of
    the text, where the field's type does not determine it; with `repeats`, of all texts. sets: the value, for a flag
    that takes no text.
    required: None means as in the record.
    """

    field: str
    help: str = ""
    name: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    read: Callable[[Any], object] | None = None
    repeats: bool = False
    sets: object = None
    required: bool | None = None

    @property
    def word(self) -> str:
        """The flag as it is typed."""
        return "--" + (self.name or self.field).replace("_", "-")


@dataclass(frozen=True, slots=True)
class Row:
    """One command of a noun, and the operation it calls.

    name: the verb. example: what follows the verb in a line that works. operation: if its verb is another one.
    fixed: values that no flag sets. columns: of a list; a text is the name of a field, whose heading is the name.
    note: format of a line for a person, over the fields of the view. prints: the only field that goes to stdout.
    subject, needs_rules: see `commands_of`. before: completes the values. after: prints what follows the note, or all.
    is_good: whether to exit with 0, else with 1.
    """

    name: str
    summary: str
    example: str
    operation: str = ""
    flags: Sequence[Flag] = ()
    fixed: Mapping[str, object] | None = None
    columns: Sequence[str | tuple[str, Cell]] = ()
    note: str = ""
    prints: str = ""
    has_json: bool = False
    subject: str = ""
    needs_rules: bool = False
    before: Callable[[Values, argparse.Namespace, Console], None] | None = None
    after: Callable[[View, Values, argparse.Namespace, Console], None] | None = None
    is_good: Callable[[View], bool] = lambda view: True


def expiry(field: str, help: str, name: str = "", *, required: bool | None = None) -> Flag:
    """Return a flag for a time that lies ahead: `90d`, `12h`, or a date."""
    return Flag(field, help, name, "AGE|DATE", read=_midnight, required=required)


def _midnight(text: str) -> str:
    return f"{text}T00:00:00Z" if len(text) == len("2030-01-31") else text


def commands_of(
    noun: str, operations: Sequence[Operation], subject: str, *rows: Row, needs_rules: bool = False
) -> tuple[Command, ...]:
    """Return the commands of a noun.

    subject: help of the positional argument, for operations on one thing. needs_rules: whether the operations use the
    shield or the settings; all others work while the rule file is broken.
    """
    by_name = {one.name: one for one in operations}
    resource = operations[0].name.partition(".")[0]
    commands = []
    for row in rows:
        wanted = row.operation or f"{resource}.{row.name}"
        operation = by_name.get(wanted) or by_name[f"{resource}.{_VERBS[row.name]}"]
        has_subject = "{id}" in operation.route[1]
        row = replace(
            row,
            name=f"{noun} {row.name}",
            subject=(row.subject or subject) if has_subject else "",
            has_json=row.has_json or bool(row.columns),
            needs_rules=row.needs_rules or needs_rules,
        )
        declare, run = partial(_declare, row, operation), partial(_run, row, operation)
        commands.append(Command(row.name, row.summary, row.example, (declare,), run, has_json=row.has_json))
    return tuple(commands)


def _declare(row: Row, operation: Operation, parser: argparse.ArgumentParser) -> None:
    if row.subject:
        parser.add_argument("id", help=row.subject)
    schemas, required = _schemas(operation)
    defaults = {one.name: one.default for one in fields(operation.takes)} if operation.takes else {}  # type: ignore[arg-type]
    for flag in row.flags:
        schema = schemas[flag.field]
        choices = flag.choices or (schema.get("enum") if operation.query else None)
        help = flag.help or (None if choices else _help(schema, defaults.get(flag.field)))
        about: dict[str, Any] = {"dest": flag.field, "help": help}
        if (constant := _constant(flag, schema)) is not None:
            parser.add_argument(flag.word, action="store_const", const=constant, **about)
            continue
        metavar = flag.metavar or ("N" if schema.get("type") in ("integer", "number") else None)
        parser.add_argument(
            flag.word,
            choices=choices,
            metavar=None if choices else metavar,
            action="append" if flag.repeats else "store",
            required=flag.field in required if flag.required is None else flag.required,
            **about,
        )


def _help(schema: Mapping[str, Any], default: object) -> str | None:
    text = str(schema.get("description", ""))
    if "enum" in schema:
        text = f"one of {', '.join(schema['enum'])}"
    if default and isinstance(default, str | int) and not isinstance(default, bool):
        text = f"{text} ({default})"
    return text.replace("%", "%%") or None


def _run(row: Row, operation: Operation, options: argparse.Namespace, console: Console) -> int:
    """Call the operation and print what it gives. Wrong values are refused before the data folder is opened."""
    with _naming(row.flags):
        values = _values(row, operation, options)
        if row.before is not None:
            row.before(values, options, console)
        command = _record(operation, values)

    assert operation.call is not None, operation.name
    call, write = operation.call, cast("Callable[[object], View]", operation.write or encode)

    async def work(gateway: Gateway) -> int:
        with _naming(row.flags):
            given = await call(gateway, caller(gateway), command)
        if not isinstance(given, Page):
            view = write(given)
            _print_one(row, view, values, options, console)
            return OK if row.is_good(view) else FOUND
        items = [*given.items]
        is_whole = not any(flag.field == "limit" for flag in row.flags)
        while is_whole and given.next is not None:
            more = _record(operation, values | {"cursor": given.next})
            given = cast("Page[object]", await call(gateway, caller(gateway), more))
            items += given.items
        _print_list(row, [write(item) for item in items], options, console)
        return OK

    # Not the other flags: a field may have the name of a setting, such as `prices`.
    own = argparse.Namespace(data_dir=options.data_dir, config=options.config)
    return with_gateway(own, work, needs_rules=row.needs_rules)


@contextmanager
def _naming(flags: Sequence[Flag]) -> Iterator[None]:
    """Name the flag instead of its field in a refusal."""
    words = {flag.field: flag.word for flag in flags if flag.sets is None}
    try:
        yield
    except InvalidRequest as error:
        field = re.split(r"[.\[]", error.param or "")[0]
        if field not in words or not error.message.startswith(field):
            raise
        raise InvalidRequest(words[field] + error.message.removeprefix(field), param=words[field]) from error


def as_text(value: object, *, separator: str = ", ", limit: int = 80) -> str:
    """Return the value of a field as a person reads it, in one line that is safe to print."""
    if isinstance(value, Mapping):
        value = [f"{name}={_plain(one)}" for name, one in value.items()]
    if isinstance(value, list | tuple):
        value = separator.join(map(_plain, value)) or None
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else shown(_plain(value), limit)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _schemas(operation: Operation) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the schema of each field that an operation takes, without null, and the names of the required ones."""
    if operation.query:
        needed = frozenset(one.name for one in operation.query if one.is_required)
        return {one.name: one.schema or {} for one in operation.query}, needed
    if operation.takes is None:
        return {}, frozenset()
    whole = cast("dict[str, Any]", json_schema(operation.takes))
    schemas = {name: one | one["anyOf"][0] if "anyOf" in one else one for name, one in whole["properties"].items()}
    return schemas, frozenset(whole["required"])


def _constant(flag: Flag, schema: Mapping[str, Any]) -> object:
    """Return the value that the flag sets by itself, or None if it takes a value."""
    if flag.sets is not None or flag.choices is not None:
        return flag.sets
    return True if schema.get("type") == "boolean" else "true" if schema.get("enum") == ["true", "false"] else None


def _values(row: Row, operation: Operation, options: argparse.Namespace) -> Values:
    """Return the values that were typed, as JSON has them. A flag that was left out leaves its field out."""
    values: Values = dict(row.fixed or {}) | ({"id": options.id} if row.subject else {})
    schemas, _ = _schemas(operation)
    for flag in row.flags:
        kind = None if operation.query else schemas[flag.field].get("type")
        if (typed := getattr(options, flag.field)) is not None:
            values[flag.field] = flag.read(typed) if flag.read else _value(typed, kind, flag.word)
    return values


def _value(typed: object, kind: object, word: str) -> object:
    """Return the JSON value of a text by the type of its field. A text of another form stays text, for a refusal."""
    if not isinstance(typed, str):
        return typed
    match kind:
        case "array":
            return [part.strip() for part in typed.split(",") if part.strip()]
        case "integer" if _DIGITS.fullmatch(typed):
            return int(typed)
        case "number" if _DECIMAL.fullmatch(typed):
            return float(typed)
        case "object":
            try:
                return read_json(typed.encode("utf-8", "surrogateescape"))
            except InvalidJson as error:
                raise InvalidRequest(f"{word}: {error.message}", param=word) from None
    return typed


def _record(operation: Operation, values: Values) -> object:
    now_at = Clock().now_at
    if operation.takes is None:
        return None
    if not operation.query:
        return decode(operation.takes, values, now=now_at)
    readers = {one.name: one.read for one in operation.query}
    read = {name: readers[name](str(one), now_at()) if name in readers else one for name, one in values.items()}
    return operation.takes(**read)


def _print_list(row: Row, views: list[View], options: argparse.Namespace, console: Console) -> None:
    if options.json:
        return console.print_json(views)
    columns = [(one.upper().replace("_", " "), one) if isinstance(one, str) else one for one in row.columns]
    rows = [
        tuple(as_text(view[cell], separator=",") if isinstance(cell, str) else cell(view) for _, cell in columns)
        for view in views
    ]
    console.print(table(rows, tuple(heading for heading, _ in columns)))


def _print_one(row: Row, view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    if options.json if row.has_json else not (row.note or row.after):
        return console.print_json(view)
    if row.note:
        texts = {name: shown(one) if isinstance(one, str) else one for name, one in view.items()}
        console.note(row.note.format_map(texts))
        if row.prints:
            console.print(str(view[row.prints]))
    if row.after:
        row.after(view, values, options, console)
    elif not row.note:
        for name, value in view.items():
            console.print(f"{name}: {as_text(value, limit=500)}")
