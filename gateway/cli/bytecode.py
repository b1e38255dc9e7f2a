"""The byte code of a source, the same whenever the same Python is asked: what an archive holds, and compares. Pure.

Byte code leaves out what the program does not need: docstrings (a class keeps a dash, or `dataclasses` would write it
one), the columns of a line, which only the marks under the lines of a traceback would show, and in modules of our own
what functions say of types: nobody asks, and each start would work it out and keep it.
"""

import _sre  # type: ignore[import-not-found]
import ast
import marshal
import re._compiler as compiler  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

_OURS = "gateway/"
BOOT = "_boot.py"
LAUNCHER = "__main__.py"
# Of this version the bytes depend on the code alone, not on what else the process holds. It knows no slices, which are
# constants since Python 3.14: they are written as bytes that begin with the mark, and put in as version 5 has them.
_MARSHAL = 2
_SLICE_MARK = "slice".encode("utf-16")  # made at run time, so that no constant of this module is one
_SLICE, _BYTES, _NUMBER_BYTES = b":", b"s", 4
# Kinds of entries in a table of lines, as CPython's Objects/locations.md has them.
_LONG, _NO_COLUMNS, _NO_LINE = 14, 13, 15
_ONE_LINE = (10, 11, 12)
_SAME_LINE, _MOST_UNITS = b"\0", 8  # how many lines further on, which is a signed number, and how much code


def module_of(file: str) -> str:
    """Return the name of the module in a source file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def compiled(text: bytes | str, file: str) -> CodeType:
    """Return the byte code of a source. The same for the same Python, whoever asks."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _take_docstring(node)
        if file.startswith(_OURS) and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _take_annotations(node)
    return _without_columns(compile(tree, file, "exec", dont_inherit=True, optimize=0))


def _take_annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Leave out what a function says of the types of its arguments. What a class says of its fields stays."""
    node.returns = None
    for one in ast.walk(node.args):
        if isinstance(one, ast.arg):
            one.annotation = None


def _take_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return
    if not isinstance(first.value.value, str):
        return
    if isinstance(node, ast.ClassDef):
        first.value.value = "-"
    else:
        nothing: ast.stmt = ast.copy_location(ast.Pass(), first)
        node.body[:1] = [] if len(node.body) > 1 else [nothing]


def _without_columns(code: CodeType) -> CodeType:
    consts = tuple(_without_columns(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_consts=consts, co_linetable=_lines(code.co_linetable))


def _lines(table: bytes) -> bytes:
    """Return a table of places in the source with the lines alone. What is on one line is said in one entry."""
    entries, place = list[tuple[int, int, bytes]](), 0
    while place < len(table):
        kind, units = table[place] >> 3 & 15, (table[place] & 7) + 1
        end = place + 1
        while end < len(table) and not table[end] & 128:
            end += 1
        further = b""
        if kind in (_LONG, _NO_COLUMNS):
            stop = place + 1
            while table[stop] & 64:
                stop += 1
            further = table[place + 1 : stop + 1]
        elif kind != _NO_LINE:
            further = bytes([2 * (kind - _ONE_LINE[0])]) if kind in _ONE_LINE else _SAME_LINE
        kind = _NO_LINE if kind == _NO_LINE else _NO_COLUMNS
        if entries and entries[-1][0] == kind and further in (b"", _SAME_LINE):
            _, before, further = entries.pop()
            units += before
        entries.append((kind, units, further))
        place = end
    return b"".join(_entry(*entry) for entry in entries)


def _entry(kind: int, units: int, further: bytes) -> bytes:
    """Return an entry of a table of lines, and more where it is of more units of code than one can be of."""
    kept = bytearray()
    for begin in range(0, units, _MOST_UNITS):
        kept.append(128 | kind << 3 | min(units - begin, _MOST_UNITS) - 1)
        kept += further if begin == 0 or kind == _NO_LINE else _SAME_LINE
    return bytes(kept)


def _marked(value: Any) -> Any:
    """Return byte code, or a constant, without what version 2 of the format cannot hold."""
    match value:
        case CodeType():
            return value.replace(co_consts=tuple(map(_marked, value.co_consts)))
        case tuple():
            return tuple(map(_marked, value))
        case slice():
            parts = (value.start, value.stop, value.step)
            return _SLICE_MARK + b"".join(marshal.dumps(part, _MARSHAL) for part in parts)
    return value


def marshalled(value: CodeType | tuple[object, ...]) -> bytes:
    """Return byte code, or a tuple of it and of constants, for `marshal.loads`. The same bytes for the same code."""
    raw, done, pieces = marshal.dumps(_marked(value), _MARSHAL), 0, []
    while (mark := raw.find(_SLICE_MARK, done)) >= 0:
        begin, first = mark - _NUMBER_BYTES, mark + len(_SLICE_MARK)
        end = mark + int.from_bytes(raw[begin:mark], "little")
        pieces += [raw[done : begin - len(_BYTES)], _SLICE, raw[first:end]]
        done = end
    return b"".join((*pieces, raw[done:]))


@dataclass(frozen=True, slots=True)
class Made:
    """What a module makes while it is run, which its pack holds ready.

    methods: the texts that `dataclasses` compiles. regexes: pattern and flags of each regex.
    """

    methods: frozenset[str] = frozenset()
    regexes: frozenset[tuple[str | bytes, int]] = frozenset()

    def told(self) -> dict[str, object]:
        """Return it as JSON can hold it."""
        texts = [[text if isinstance(text, str) else [text.decode("latin-1")], flags] for text, flags in self.regexes]
        return {"methods": sorted(self.methods), "regexes": sorted(texts, key=repr)}

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Made":
        """Return what was told."""
        texts = [
            (text if isinstance(text, str) else text[0].encode("latin-1"), flags) for text, flags in told["regexes"]
        ]
        return cls(frozenset(told["methods"]), frozenset(texts))


def compile_module(source: bytes, file: str, made: Made) -> bytes:
    """Return a module's code with what it makes, marshalled.

    Raises:
        SyntaxError, re.error, OverflowError, RecursionError: the source, or what it is said to make, is no program.
    """
    methods: list[object] = []
    for text in sorted(made.methods):
        method = compile(text, "<string>", "exec", dont_inherit=True, optimize=0)
        methods += [zlib.crc32(text.encode()), _without_columns(method)]
    regexes = tuple(_regex(text, flags) for text, flags in sorted(made.regexes, key=repr))
    return marshalled((compiled(source, file), tuple(methods), regexes))


def _regex(text: str | bytes, flags: int) -> tuple[object, ...]:
    """Return what `re.compile` gives to its engine, as it would."""
    tree = parser.parse(text, flags)
    state = tree.state
    names = tuple(state.groupdict.items())
    return text, flags, flags | state.flags, tuple(map(int, compiler._code(tree, flags))), state.groups - 1, names


def engine() -> list[int]:
    """Return what compiled regexes must be of to be run."""
    return [_sre.MAGIC, _sre.CODESIZE]
