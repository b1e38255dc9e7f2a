"""The figures of the house: how much code there is, how it is cut, and what it depends on.

    python tests/house/figures.py

prints one table. `test_sizes.py` holds each figure under its ceiling, which is lowered as the code shrinks.
"""

import ast
import functools
import statistics
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from house import test_floors
from house.source import ROOT, Source, sources

# (ceiling, target) by figure.
LIMITS = {
    "lines without shield": (43_000, 43_000),
    "files without shield": (300, 300),
    "lines of shield": (6_460, 6_500),
    "files of shield": (34, 34),
    "median lines of a file without shield": (142, 130),
    "p95 lines of a function": (27, 30),
    "import circles": (0, 0),
    "imports from above": (0, 0),
    "files on private structures": (1, 1),
    "lines of tests": (50_260, 34_000),
}
CEILINGS = {name: ceiling for name, (ceiling, _) in LIMITS.items()}
# Private to CPython or asyncio although they stand as plain attributes of objects.
PRIVATE_ATTRIBUTES = frozenset({"__code__", "_asyncio_future_blocking", "_fut_waiter", "_transport", "_loop"})
PRIVATE_MODULES = ("ctypes",)
DOCUMENTED = frozenset({"os._exit"})


def private_structures(source: Source) -> list[str]:
    """Return the names that a file uses although another library keeps them to itself."""
    bound: dict[str, str] = {}
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for alias in node.names:
                full = f"{module}.{alias.name}" if module else alias.name
                if full.startswith(("gateway", "__future__")):
                    continue
                bound[alias.asname or alias.name.split(".")[0]] = full
                if full.startswith(PRIVATE_MODULES) or any(_is_private(part) for part in full.split(".")):
                    found.add(full)
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in bound and _is_private(node.attr):
                found.add(f"{bound[node.value.id]}.{node.attr}")
            elif node.attr in PRIVATE_ATTRIBUTES and not _is_own(node.value):
                found.add(node.attr)
    return sorted(found - DOCUMENTED)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@functools.cache
def private_files() -> dict[str, list[str]]:
    """Return what each file uses of private structures; files that use none are left out."""
    return {source.name: names for source in sources() if (names := private_structures(source))}


@functools.cache
def measure() -> dict[str, int]:
    """Return every figure by its name."""
    shield = [source for source in sources() if source.module.startswith("gateway.shield")]
    others = [source for source in sources() if source not in shield]
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1 for source in sources() for node in source.functions
    )
    return {
        "lines without shield": sum(source.lines for source in others),
        "files without shield": len(others),
        "lines of shield": sum(source.lines for source in shield),
        "files of shield": len(shield),
        "median lines of a file without shield": round(
            statistics.median(source.lines for source in others if source.lines > 3)
        ),
        "p95 lines of a function": lengths[len(lengths) * 95 // 100],
        "import circles": len(test_floors.circles()),
        "imports from above": sum(len(test_floors.faults(source)) for source in sources()),
        "files on private structures": len(private_files()),
        "lines of tests": sum(path.read_bytes().count(b"\n") for path in (ROOT / "tests").rglob("*.py")),
    }


def main() -> None:
    """Print the table, and the files that use private structures."""
    print(f"{'figure':<38}{'now':>8}{'ceiling':>9}{'target':>8}")
    for name, value in measure().items():
        ceiling, target = LIMITS[name]
        print(f"{name:<38}{value:>8}{ceiling:>9}{target:>8}")
    print("\nfiles on private structures:")
    for name, private in private_files().items():
        print(f"  {name}: {', '.join(private)}")


if __name__ == "__main__":
    main()
