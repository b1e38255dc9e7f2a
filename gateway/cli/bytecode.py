"""Compile a source file to the `.pyc` that an archive holds. The build writes these files; `verify` compares them.

The `.pyc` files are hash-based and unchecked, because the manifest of the archive already covers every member. They
leave out what production does not use: columns, docstrings and the types of arguments. Together these are a third of
the size, and a process would keep 5 MB of them.

`marshal` marks an object that something else in the process also refers to. The compiler shares names with all loaded
modules, so the marks would depend on what the process imported. Extra references to all names make the marks constant.
"""

import ast
import marshal
import sys
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER, source_hash
from types import CodeType

_UNCHECKED_HASH = (0b01).to_bytes(4, "little")


def compile_pyc(source: bytes, file: str) -> bytes:
    """Return the content of the `.pyc` file for the running Python. The same input gives the same bytes.

    file: the name in the archive, such as ``gateway/log.py``, which tracebacks show.

    Raises:
        SyntaxError, ValueError: the source is not valid.
    """
    name = sys.intern(file)  # `marshal` also notes whether a text is interned
    code = compile(_reduced(ast.parse(source, name)), name, "exec", dont_inherit=True)
    held = list(_constants(code))
    body = marshal.dumps(code)
    held.clear()  # only now: until here these references decide which marks `marshal` writes
    return MAGIC_NUMBER + _UNCHECKED_HASH + source_hash(source) + body


def _reduced(tree: ast.Module) -> ast.Module:
    """Take columns, docstrings and the types of arguments and results out of a tree. Fields keep their types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            node.end_lineno, node.col_offset, node.end_col_offset = node.lineno, 0, 0
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as docstring), *_]:
                    docstring.value = "-"  # not empty: `dataclass` would write one, which takes a while
    return tree


def _constants(value: object) -> Iterator[object]:
    """Yield every name and constant of a code object, with those of the code objects and tuples inside it."""
    yield value
    if isinstance(value, CodeType):
        names = (value.co_names, value.co_varnames, value.co_cellvars, value.co_freevars)
        yield from (value.co_name, value.co_qualname, value.co_filename)
        yield from (name for group in names for name in group)
        value = value.co_consts
    if isinstance(value, tuple | frozenset):
        for inner in value:
            yield from _constants(inner)
