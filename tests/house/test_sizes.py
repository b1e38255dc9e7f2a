"""Small enough to hold: files, functions and classes have a size past which they must be split."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "gateway").rglob("*.py")), ROOT / "build_zipapp.py"]
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_PUBLIC_METHODS = 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_and_what_is_in_it_can_be_held_in_the_head(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= LONGEST_FILE
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the first line says what the file holds and what it leaves out"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, f"{node.name} is too long"
        elif isinstance(node, ast.ClassDef):
            public = [
                child.name
                for child in node.body
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_")
            ]
            assert len(public) <= MOST_PUBLIC_METHODS, f"{node.name} has {len(public)} public methods"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_public_says_what_it_does(path: Path) -> None:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
