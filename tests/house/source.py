"""The Python files of the product, each read and parsed once for all tests of the house."""

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file. name: its path from the root. nodes: every node of its tree, in the order of `ast.walk`."""

    path: Path
    name: str
    module: str
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def lines(self) -> int:
        """Count lines as `wc -l` does."""
        return self.text.count("\n")

    @property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones included."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @functools.cached_property
    def imported(self) -> frozenset[str]:
        """Every name an import statement mentions: `a.b` for `import a.b`, `a.b` and `a` for `from a import b`."""
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}: imports name the whole path"
                found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        return frozenset(found)

    @functools.cached_property
    def imports(self) -> frozenset[str]:
        """The modules of the gateway that this file imports."""
        known = modules()
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {name if name in known else str(node.module) for name in full}
        return frozenset(name for name in found if name.startswith("gateway."))

    @functools.cached_property
    def code(self) -> str:
        """The text without comments, docstrings and other free-standing strings."""
        lines = self.text.split("\n")
        for node in self.nodes:
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                    lines[number] = ""
        return "\n".join(line.split("  # ")[0] for line in lines if not line.lstrip().startswith("#"))


def read(path: Path) -> Source:
    """Read and parse one file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(path, path.relative_to(ROOT).as_posix(), module, text, tree, tuple(ast.walk(tree)))


@functools.cache
def sources() -> tuple[Source, ...]:
    """Return the files of `gateway/`, sorted by path."""
    return tuple(read(path) for path in sorted((ROOT / "gateway").rglob("*.py")))


@functools.cache
def modules() -> frozenset[str]:
    """Return the names of the gateway's modules."""
    return frozenset(source.module for source in sources())
