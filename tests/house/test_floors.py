"""Imports point down, never up and never in a circle. The table is the plan of the house."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"
FILES = sorted(PACKAGE.rglob("*.py"))

# Floor by room. Halves are the storeys that floor 7, 5 and 2 have inside.
FLOORS = {
    "gateway.__main__": 7.8,
    "gateway.cli": 7.5,
    "gateway.compose": 7.2,
    "gateway.wiring": 7.0,
    "gateway.api": 6.0,
    "gateway.mcp": 6.0,
    "gateway.operations": 5.5,
    "gateway.jobs": 5.5,
    "gateway.app": 5.0,
    "gateway.services": 4.0,
    "gateway.store": 3.0,
    "gateway.llm": 3.0,
    "gateway.outputs": 3.0,
    "gateway.supervisor": 3.0,
    "gateway.domain": 2.0,
    "gateway.auth": 2.0,
    "gateway.setting_values": 1.5,
    "gateway.settings": 2.0,
    "gateway.field_types": 2.0,
    "gateway.codecs": 2.0,
    "gateway.schema": 2.0,
    "gateway.strict_json": 2.0,
    "gateway.offload": 2.0,
    "gateway.log": 2.0,
    "gateway.errors": 1.0,
    "gateway.clock": 1.0,
    "gateway.records": 1.0,
    "gateway.spelling": 1.0,
    "gateway.metrics": 1.0,
    "gateway.bundle": 1.0,
    "gateway.signals": 1.0,
    "gateway.shield": 1.0,
    "gateway.http": 1.0,
}
ISLANDS = ("gateway.shield", "gateway.http")
NEVER_EACH_OTHER = ({"gateway.api", "gateway.mcp"}, {"gateway.store", "gateway.llm"})


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return the gateway modules a file names in its imports."""
    known = {module_name(file) for file in FILES}
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name the whole path"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in full}
    return frozenset(name for name in found if name.split(".")[0] == "gateway" and name != "gateway")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_from_its_floor_and_below(path: Path) -> None:
    own = room(module_name(path))
    if own == "gateway":
        assert not imports(path)
        return
    for target in imports(path):
        other = room(target)
        assert other in FLOORS, f"{other} has no floor: add it to the table"
        if other == own:
            continue
        assert own not in ISLANDS, f"{own} is an island and imports {target}"
        assert FLOORS[other] <= FLOORS[own], f"{own} imports {target} from above"
        assert not any({own, other} <= pair for pair in NEVER_EACH_OTHER), f"{own} imports {target} from beside"


def test_only_the_edges_and_the_upstream_know_the_http_island() -> None:
    allowed = (
        "gateway.api",
        "gateway.mcp",
        "gateway.cli",
        "gateway.compose",
        "gateway.wiring",
        "gateway.llm.upstream",
        "gateway.outputs.webhook",
        "gateway.http",
    )
    for path in FILES:
        name = module_name(path)
        if any(room(target) == "gateway.http" for target in imports(path)):
            assert name.startswith(allowed), f"{name} knows gateway.http"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module_name(path): imports(path) for path in FILES}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name in done:
            return
        for target in graph.get(name, ()):
            visit(target, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())
