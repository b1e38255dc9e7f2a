"""Every outside thing has one door. A second door is a defect even when it works."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "gateway").rglob("*.py"))

DOORS = {
    "h11": ("gateway/http/",),
    "socket": (
        "gateway/http/",
        "gateway/cli/listeners.py",
        "gateway/cli/serve.py",
        "gateway/cli/answering.py",
        "gateway/cli/mcp_port.py",
    ),
    "ssl": ("gateway/http/",),
    "asyncio": ("gateway/http/transport.py", "gateway/store/writer.py"),
    "ahocorasick": ("gateway/shield/automaton.py",),
    "sqlite3": ("gateway/store/sqlite.py",),
    "tomllib": ("gateway/settings.py",),
    "random": ("gateway/domain/demo.py",),
    "secrets": (),
    "uuid": (),
    "subprocess": (),
    "pickle": (),
    "ctypes": (),
}
NAMES = {
    r"\bos\.(environ|getenv)\b": ("gateway/settings.py",),
    r"\b(time\.time|time_ns|datetime\.now|datetime\.utcnow|os\.urandom)\b": ("gateway/clock.py",),
    r"\bsys\.stdout\b|\bprint\(": ("gateway/cli/", "gateway/mcp/stdio.py"),
    r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s": ("gateway/store/",),
    r"(?i)\bPRAGMA\b|\browid\b|\bINSERT OR\b|VACUUM INTO|\bsqlite_|SQLite format": ("gateway/store/sqlite.py",),
    r"\bexcept Exception\b": (
        "gateway/api/dispatch.py",
        "gateway/mcp/server.py",
        "gateway/jobs.py",  # what failed is logged and runs again
        "gateway/cli/main.py",
        "gateway/http/session.py",  # one connection's fault must not end the others
        "gateway/services/scanner.py",  # whatever fails in the shield, the text is not let through
    ),
}


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def modules(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return frozenset(found)


@functools.cache
def code(path: Path) -> str:
    """Return the file without comments, docstrings and other free-standing strings."""
    text = path.read_text("utf-8")
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(line.split("  # ")[0] for line in lines if not line.lstrip().startswith("#"))


@pytest.mark.parametrize("module", DOORS)
def test_a_module_is_imported_only_behind_its_door(module: str) -> None:
    for path in FILES:
        if module in modules(path):
            assert place(path).startswith(DOORS[module]) if DOORS[module] else False, f"{place(path)} imports {module}"


@pytest.mark.parametrize("pattern", NAMES)
def test_a_thing_is_named_only_behind_its_door(pattern: str) -> None:
    for path in FILES:
        found = re.search(pattern, code(path))
        assert not found or place(path).startswith(NAMES[pattern]), f"{place(path)} has {found and found[0]!r}"


def test_the_schema_is_in_a_dialect_that_other_databases_read() -> None:
    for path in sorted((ROOT / "gateway" / "store" / "migrations").glob("*.sql")):
        found = re.search(r"(?i)\b(PRAGMA|rowid|INSERT OR|AUTOINCREMENT|GLOB|sqlite)\b", _without_notes(path))
        assert not found, f"{place(path)} has {found and found[0]!r}"


def _without_notes(path: Path) -> str:
    return "\n".join(line.split("--")[0] for line in path.read_text("utf-8").splitlines())


def test_no_module_of_a_package_takes_the_place_of_a_name_that_the_package_imports() -> None:
    """Whoever imports the module puts it into its package under its own name."""
    for path in FILES:
        if path.name == "__init__.py":
            beside = {other.stem for other in path.parent.iterdir()}
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    own = place(path.parent).replace("/", ".")
                    for alias in node.names:
                        name = alias.asname or alias.name
                        is_own = isinstance(node, ast.ImportFrom) and (node.module or "") in (own, f"{own}.{name}")
                        assert is_own or name not in beside, f"{place(path)}: {name}"
