"""Every outside thing has one door. A second door is a defect even when it works."""

import ast
import re

import pytest
from house.figures import private_files
from house.source import sources

DOORS = {
    "h11": ("gateway/http/",),
    "socket": (
        "gateway/http/",
        "gateway/cli/serve.py",
        "gateway/cli/worker.py",
        "gateway/cli/mcp.py",
        "gateway/store/postgres_link.py",
    ),
    "ssl": ("gateway/http/", "gateway/store/postgres_link.py"),
    "asyncio": ("gateway/http/transport.py", "gateway/store/writer.py"),
    "mistune": ("gateway/domain/markdown.py",),
    "ahocorasick": ("gateway/shield/automaton.py",),
    "sqlite3": ("gateway/store/sqlite.py",),
    "tomllib": ("gateway/settings.py",),
    "random": ("gateway/services/demo_data.py",),
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


@pytest.mark.parametrize("module", DOORS)
def test_a_module_is_imported_only_behind_its_door(module: str) -> None:
    behind = [source.name for source in sources() if module in {name.split(".")[0] for name in source.imported}]
    assert [name for name in behind if not any(name.startswith(door) for door in DOORS[module])] == []


@pytest.mark.parametrize("pattern", NAMES)
def test_a_thing_is_named_only_behind_its_door(pattern: str) -> None:
    naming = [source.name for source in sources() if re.search(pattern, source.code)]
    assert [name for name in naming if not name.startswith(NAMES[pattern])] == []


def test_a_package_imports_no_name_that_one_of_its_modules_has() -> None:
    """Importing the module sets that name of its package, and hides what the package imported."""
    hidden = []
    for source in sources():
        if source.path.name == "__init__.py":
            beside = {other.stem for other in source.path.parent.iterdir()}
            for node in source.nodes:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    for name in (alias.asname or alias.name for alias in node.names):
                        own = (source.module, f"{source.module}.{name}")
                        is_own = isinstance(node, ast.ImportFrom) and (node.module or "") in own
                        hidden += [f"{source.name}: {name}"] if name in beside and not is_own else []
    assert hidden == []


def test_private_structures_of_other_libraries_stay_behind_one_door() -> None:
    assert set(private_files()) == {"gateway/shield/regex_tree.py"}
