"""Files, functions and classes stay small, public names say what they do, and the figures of the house only improve."""

import ast
import asyncio

import pytest
from house.figures import CEILINGS, measure
from house.source import ROOT, Function, read, sources

FILES = (*sources(), read(ROOT / "build_zipapp.py"))
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_PUBLIC_METHODS = 12


def test_no_file_is_too_long() -> None:
    assert [source.name for source in FILES if source.lines > LONGEST_FILE] == []


def test_no_function_is_too_long() -> None:
    long = [
        f"{source.name}: {node.name}"
        for source in FILES
        for node in source.functions
        if (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_no_class_has_too_many_public_methods() -> None:
    wide = []
    for source in FILES:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                named = {one.name for one in node.body if isinstance(one, Function)}
                public = {name for name in named if not name.startswith("_")} - {*dir(asyncio.BufferedProtocol)}
                wide += [f"{source.name}: {node.name}"] if len(public) > MOST_PUBLIC_METHODS else []
    assert wide == []


def test_every_module_and_public_name_has_a_docstring() -> None:
    silent = [source.name for source in FILES if not ast.get_docstring(source.tree)]
    for source in FILES:
        for node in source.tree.body:
            if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
                silent += [] if ast.get_docstring(node) else [f"{source.name}: {node.name}"]
    assert silent == []


@pytest.mark.parametrize("name", CEILINGS)
def test_a_figure_stays_under_its_ceiling(name: str) -> None:
    """Lower the ceiling in figures.py when a change improves a figure."""
    assert measure()[name] <= CEILINGS[name]
