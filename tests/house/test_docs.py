"""The tables of the reference are those of the code. `python tests/house/test_docs.py` writes them anew."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from gateway import settings
from gateway.cli import main
from gateway.mcp.tools import TOOLS
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def commands() -> str:
    return table(("command", "does"), [(f"`{one.name}`", one.summary) for one in main.commands()])


def operations() -> str:
    rows = [
        (
            f"`{one.route[0]} {one.route[1]}`",
            f"`{one.needs}`"
            if one.needs
            else {"open": "nothing", "optional": "nothing; a key tells more"}[one.door.value],
            one.summary,
        )
        for one in PUBLIC_OPERATIONS
    ]
    return table(("operation", "needs", "does"), rows)


def internal() -> str:
    rows = [
        (
            f"`{one.route[0]} {one.route[1]}`",
            f"`{one.needs}`" if one.needs else {"session": "a session", "sign_in": "a password"}[one.door.value],
            one.summary,
        )
        for one in INTERNAL_OPERATIONS
    ]
    return table(("operation", "needs", "does"), rows)


def tools() -> str:
    return table(("tool", "does"), [(f"`{tool.name}`", tool.description) for tool in TOOLS])


def setting_rows() -> str:
    rows = []
    for row in settings.rows():
        shown = (
            "the user's data folder"
            if row.name == "data_dir"
            else ""
            if row.default in (None, ())
            else ", ".join(row.default)
            if isinstance(row.default, tuple)
            else str(row.default)
        )
        rows.append((f"`{row.name}`", f"`{settings.variable(row)}`", shown, row.metadata["about"]))
    return table(("setting", "variable", "default", "what it is"), rows)


# By the name of the table, its page.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("cli.md", commands),
    "operations": ("api.md", operations),
    "internal operations": ("internal-api.md", internal),
    "tools": ("mcp-tools.md", tools),
    "settings": ("settings.md", setting_rows),
}


def place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_reference_is_the_table_of_the_code(name: str) -> None:
    page, render = TABLES[name]
    found = place(name).search((REFERENCE / page).read_text("utf-8"))
    assert found, f"{page} lost its place for {name}"
    assert found[2].strip() == render().strip(), "run: python tests/house/test_docs.py"


def test_the_readme_is_short_and_names_every_document() -> None:
    text = (REFERENCE.parents[1] / "README.md").read_text("utf-8")
    assert len(text.encode()) <= 8_192
    pages = [path.relative_to(REFERENCE.parents[1]).as_posix() for path in REFERENCE.parent.rglob("*.md")]
    assert [page for page in pages if page not in text] == []


if __name__ == "__main__":
    for name, (page, render) in TABLES.items():
        path = REFERENCE / page
        text = path.read_text("utf-8")
        begin, _, end = place(name).search(text).groups()
        path.write_text(place(name).sub(f"{begin}\n{render()}\n\n{end}".replace("\\", "\\\\"), text), "utf-8")
