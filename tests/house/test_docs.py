"""The tables of the documents are those of the code. `python tests/house/test_docs.py` writes them anew."""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

import pytest
from house.source import Source, sources

from gateway import errors, settings
from gateway.cli import main
from gateway.domain.alerts import AlertStatus
from gateway.domain.audit import AuditEvent
from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role
from gateway.mcp.tools import TOOLS
from gateway.metrics import FAMILIES
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS
from gateway.operations.operation import Operation
from gateway.services.resource import Resource

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOORS = {"open": "nothing", "optional": "nothing; a key tells more", "session": "a session", "sign_in": "a password"}
# By code, what the caller should do; and what it means where no class of `errors` has the code.
ERRORS = json.loads((Path(__file__).parent / "errors.json").read_text("utf-8"))


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def summaries(what: str, named: dict[str, str]) -> str:
    return table((what, "does"), [(f"`{name}`", does) for name, does in named.items()])


def operations(named: tuple[Operation, ...] = PUBLIC_OPERATIONS) -> str:
    needs = {one.name: f"`{one.needs}`" if one.needs else DOORS[one.door.value] for one in named}
    return table(("operation", "needs", "does"), [(f"`{' '.join(x.route)}`", needs[x.name], x.summary) for x in named])


def setting_rows() -> str:
    rows = []
    for row in settings.rows():
        default = () if row.default is None else row.default if isinstance(row.default, tuple) else (row.default,)
        shown = "the user's data folder" if row.name == "data_dir" else ", ".join(map(str, default))
        rows.append((f"`{row.name}`", f"`{settings.variable(row)}`", shown, row.metadata["about"]))
    return table(("setting", "variable", "default", "what it is"), rows)


def metrics() -> str:
    labels = {one.name: ", ".join(f"`{label}`" for label in one.labels) or "–" for one in FAMILIES}
    rows = [(f"`{one.name}`", one.kind, labels[one.name], one.help) for one in FAMILIES]
    return table(("metric", "kind", "labels", "meaning"), rows)


def roles() -> str:
    def held(role: Role, resource: str) -> str:
        return next((word for word in ("manage", "read") if f"{resource}:{word}" in ROLE_PERMISSIONS[role]), "")

    resources = dict.fromkeys(one.value.partition(":")[0] for one in Permission)
    rows = [(f"`{one}`", *(held(role, one) for role in Role)) for one in resources]
    return table(("resource", *(f"`{role.value}`" for role in Role)), rows)


def error_rows() -> str:
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.GatewayError)]
    by_code = {one.code: (one.__doc__ or "").partition("\n")[0] for one in reversed(classes)}
    said = {code: (one.get("meaning") or by_code[code], one["advice"]) for code, one in ERRORS.items()}
    rows = [(str(status), f"`{code}`", *said[code]) for code, status in errors.STATUS_BY_CODE.items()]
    return table(("status", "code", "meaning", "what to do"), rows)


# By the name of the table, its page.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("reference/cli.md", lambda: summaries("command", {x.name: x.summary for x in main.commands()})),
    "operations": ("reference/api.md", operations),
    "internal operations": ("reference/internal-api.md", partial(operations, INTERNAL_OPERATIONS)),
    "tools": ("reference/mcp-tools.md", lambda: summaries("tool", {x.name: x.description for x in TOOLS})),
    "settings": ("reference/settings.md", setting_rows),
    "metrics": ("reference/metrics.md", metrics),
    "errors": ("reference/errors.md", error_rows),
    "roles": ("howto/users.md", roles),
}


def place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_documents_is_the_table_of_the_code(name: str) -> None:
    page, render = TABLES[name]
    found = place(name).search((DOCS / page).read_text("utf-8"))
    assert found, f"{page} lost its place for {name}"
    assert found[2].strip() == render().strip(), "run: python tests/house/test_docs.py"


def constants(source: Source, *nodes: ast.AST) -> Iterator[str]:
    """Yield the texts of expressions, also those that are constants of the module."""
    known = vars(import_module(source.module))
    for one in (one for node in nodes for one in ast.walk(node)):
        value = one.value if isinstance(one, ast.Constant) else known.get(one.id) if isinstance(one, ast.Name) else None
        if isinstance(value, str):
            yield value


def audit_actions() -> Iterator[str]:
    """Yield each action of an audit event that the code writes out, or a part of it: a noun, or what happened."""
    writer = re.compile(r".*\b(event|append_change|record|_append|_append_move|_insert|_update)", re.DOTALL)
    for source in (one for one in sources() if one.module.startswith(("gateway.services", "gateway.cli.worker"))):
        for node in source.nodes:
            if isinstance(node, ast.Assign) and re.search(r"\b(action|refused)\b", ast.unparse(node.targets[0])):
                yield from constants(source, node.value)
            elif isinstance(node, ast.FunctionDef) and node.name == "_action":
                yield from constants(source, node)
            elif isinstance(node, ast.Call):
                first = node.args[:2] if writer.fullmatch(ast.unparse(node.func)) else []
                yield from constants(source, *first, *(one.value for one in node.keywords if one.arg == "action"))


def alert_kinds() -> Iterator[tuple[str, str]]:
    """Yield the rule, or its end, and a severity of each alert and of each finding that no rule of a file makes."""
    for source in sources():
        for node in source.nodes:
            given = {one.arg: one.value for one in node.keywords} if isinstance(node, ast.Call) else {}
            if isinstance(node, ast.Dict):
                given = {ast.unparse(one).strip("'"): node.values[at] for at, one in enumerate(node.keys) if one}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_Raised":
                given = dict(zip(("rule", "severity", "title"), node.args, strict=False))
            if {"rule", "severity"} <= set(given) and {"title", "name"} & set(given):
                severities = re.findall(r"Severity\.([A-Z]+)", ast.unparse(given["severity"])) or [""]
                yield from ((rule, one.lower()) for one in severities for rule in constants(source, given["rule"]))


def every_subclass(one: type) -> set[type]:
    return {one}.union(*map(every_subclass, one.__subclasses__()))


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of each row of a page's tables."""
    return [line.split(" | ") for line in re.findall(r"^\| (.*) \|$", (DOCS / page).read_text("utf-8"), re.MULTILINE)]


def test_the_page_of_audit_events_has_every_event_and_field() -> None:
    named = {name for row in rows_of("reference/audit-events.md") for name in re.findall(r"`([a-z_]+)`", row[0])}
    of_all = {one.metadata.get("json_name", one.name) for one in fields(AuditEvent)}
    # What the gateway did with a text is also called an action.
    others = {"none", "observed", "redacted", "active"}
    written = set(filter(re.compile("[a-z]+(_[a-z]+)*").fullmatch, audit_actions())) - others
    nouns = {vars(one)["resource_type"] for one in every_subclass(Resource)} - {""} | {"shield_scan"}
    verbs = written | {"created", *AlertStatus, "block", "review"}
    assert of_all <= named <= of_all | written | {f"{noun}_{verb}" for noun in nouns for verb in verbs}
    assert [one for one in written | nouns if not any(f"_{one}_" in f"_{event}_" for event in named)] == []


def test_the_page_of_alerts_has_every_kind_with_its_severity() -> None:
    found: dict[str, set[str]] = {}
    for rule, severity in alert_kinds():
        found.setdefault(rule, set()).add(severity)
    rows = {row[1].strip("`"): set(row[2].split(", ")) for row in rows_of("reference/alerts.md")[3:]}
    assert [rule for rule in found if not any(row.endswith(rule) for row in rows)] == []
    for row, severities in rows.items():
        made = [rule for rule in found if row.endswith(rule)]
        is_open = "<name>" in row  # a detector has its severity from its effect
        assert is_open or (made and all(severities <= found[rule] or "" in found[rule] for rule in made)), row


def test_the_readme_is_short_and_leads_to_the_documents() -> None:
    text = (DOCS.parent / "README.md").read_text("utf-8")
    assert len(text.encode()) <= 8_192
    assert "(docs/README.md)" in text
    assert [link for link in re.findall(r"\]\(([^)#]+)", text) if not (DOCS.parent / link).exists()] == []


def test_manage_includes_read_in_every_role() -> None:
    for held in ROLE_PERMISSIONS.values():
        assert {one.value.replace(":manage", ":read") for one in held} <= {one.value for one in held}


if __name__ == "__main__":
    for name, (page, render) in TABLES.items():
        path = DOCS / page
        text = path.read_text("utf-8")
        begin, _, end = place(name).search(text).groups()
        path.write_text(place(name).sub(f"{begin}\n{render()}\n\n{end}".replace("\\", "\\\\"), text), "utf-8")
