"""The byte-code pack of one Python: made from sources, and compared with the sources that lie beside it. Pure.

The build makes packs with it and `verify --bytecode` makes them again. Nothing of a pack that is compared is ever
unmarshalled, since marshal data from elsewhere can crash the interpreter.

Byte code leaves out what the program does not need: docstrings (a class keeps a dash, or `dataclasses` would write it
one) and the columns of a line, which only the marks under the lines of a traceback would show.

Layout: the magic number (4 bytes), the CRC-32 of all after byte 8 (4), the length of the boot code (4), the boot
code, the length of the index (4), the index as JSON, deflated, then what the index points into: {"modules": {name:
[file, is_package, start, end, block]}, "blocks": [[start, end]], "engine": of the regexes, "words": [start, end],
"made": [start, end]}. What a start runs is a piece by itself in block 0, deflated with `words` as its preset
dictionary. All other modules lie one after the other in the blocks from 1 on, each packed with LZMA: a third smaller,
and slower. `made` is packed so too. A module is a marshalled tuple: its code; the CRC-32 and the code of each text
that `dataclasses` compiles when the module is run; what `re` makes of each regex that it compiles then. `made` is
JSON: those texts and regexes by module. Integers are little endian.
"""

import _sre  # type: ignore[import-not-found]
import ast
import importlib.util
import json
import marshal
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

BOOT = "_boot.py"
LAUNCHER = "__main__.py"
# Of this version the bytes depend on the code alone, not on what else the process holds. It knows no slices, which are
# constants since Python 3.14: they are written as bytes that begin with the mark, and put in as version 5 has them.
_MARSHAL = 2
_SLICE_MARK = "slice".encode("utf-16")  # made at run time, so that no constant of this module is one
_SLICE, _BYTES, _NUMBER_BYTES = b":", b"s", 4
_RAW = -15  # deflate without a checksum of its own: there is one over all
_WORDS_BYTES = 32_768  # all that zlib looks back
_WORDS_OF_EACH_BYTES = 1_200
_BLOCK_BYTES = 512 * 1024  # after the module that makes it so long a block ends
_LZMA2 = 0x21
# Kinds of entries in a table of lines, as CPython's Objects/locations.md has them.
_LONG, _NO_COLUMNS, _NO_LINE = 14, 13, 15
_ONE_LINE = (10, 11, 12)


def module_of(file: str) -> str:
    """Return the name of the module in a source file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def compiled(text: bytes | str, file: str) -> CodeType:
    """Return the byte code of a source. The same for the same Python, whoever asks."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _take_docstring(node)
    return _without_columns(compile(tree, file, "exec", dont_inherit=True, optimize=0))


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
    """Return a table of places in the source with the lines alone, as `-X no_debug_ranges` leaves it."""
    kept, place = bytearray(), 0
    while place < len(table):
        kind = table[place] >> 3 & 15
        end = place + 1
        while end < len(table) and not table[end] & 128:
            end += 1
        if kind == _NO_LINE:
            kept.append(table[place])
        else:
            kept.append(128 | _NO_COLUMNS << 3 | table[place] & 7)
            if kind in (_LONG, _NO_COLUMNS):
                stop = place + 1
                while table[stop] & 64:
                    stop += 1
                kept += table[place + 1 : stop + 1]
            else:  # a signed number: how many lines further on
                kept.append(2 * (kind - _ONE_LINE[0]) if kind in _ONE_LINE else 0)
        place = end
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


def _module(code: CodeType, made: Made) -> bytes:
    """Return a module's code with what it makes, marshalled."""
    methods: list[object] = []
    for text in sorted(made.methods):
        method = compile(text, "<string>", "exec", dont_inherit=True, optimize=0)
        methods += [zlib.crc32(text.encode()), _without_columns(method)]
    regexes = tuple(_regex(text, flags) for text, flags in sorted(made.regexes, key=repr))
    return marshalled((code, tuple(methods), regexes))


def _regex(text: str | bytes, flags: int) -> tuple[object, ...]:
    """Return what `re.compile` gives to its engine, as it would."""
    tree = parser.parse(text, flags)
    state = tree.state
    names = tuple(state.groupdict.items())
    return text, flags, flags | state.flags, tuple(map(int, compiler._code(tree, flags))), state.groups - 1, names


def engine() -> list[int]:
    """Return what compiled regexes must be of to be run."""
    return [_sre.MAGIC, _sre.CODESIZE]


def make_pack(sources: Mapping[str, bytes], made: Mapping[str, Made], first: Collection[str] = ()) -> bytes:
    """Compile every source for the running Python.

    sources: by file name; the launcher is left out. made: what modules make, by their names. first: names of the
    modules that a start runs.
    """
    files = [file for file in sorted(sources) if file not in (BOOT, LAUNCHER)]
    codes = {file: _module(compiled(sources[file], file), made.get(module_of(file), Made())) for file in files}
    # How modules begin: names and constants that many of them share.
    begins = (code[:_WORDS_OF_EACH_BYTES] for file, code in codes.items() if module_of(file) in first)
    words = b"".join(begins)[-_WORDS_BYTES:]
    blob, blocks = bytearray(), [bytearray()]

    def add(packed: bytes) -> list[int]:
        blob.extend(packed)
        return [len(blob) - len(packed), len(blob)]

    def place(file: str, code: bytes) -> list[int]:
        if module_of(file) in first:
            return [*add(_deflated(code, words)), 0]
        if len(blocks[-1]) >= _BLOCK_BYTES:
            blocks.append(bytearray())
        blocks[-1].extend(code)
        return [len(blocks[-1]) - len(code), len(blocks[-1]), len(blocks)]

    modules = {
        module_of(file): [file, file.endswith("/__init__.py"), *place(file, code)] for file, code in codes.items()
    }
    told = json.dumps({name: made[name].told() for name in sorted(made)}, separators=(",", ":"))
    index = {
        "modules": modules,
        "blocks": [add(_squeezed(block)) for block in blocks],
        "engine": engine(),
        "words": add(_deflated(words)),
        "made": add(_squeezed(told.encode())),
    }
    head = _deflated(json.dumps(index, separators=(",", ":")).encode())
    boot = marshalled(compiled(sources[BOOT], BOOT))
    rest = b"".join((_number(len(boot)), boot, _number(len(head)), head, bytes(blob)))
    return importlib.util.MAGIC_NUMBER + _number(zlib.crc32(rest)) + rest


def _deflated(data: bytes, dictionary: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, wbits=_RAW, zdict=dictionary)
    return packer.compress(data) + packer.flush()


def _squeezed(data: bytes | bytearray) -> bytes:
    import lzma  # missing in some Pythons, which then make no pack

    filters = [{"id": _LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0, "dict_size": 1 << 20}]
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)


def _unsqueezed(packed: bytes) -> bytes:
    try:
        import lzma
    except ImportError as error:
        raise ValueError("this Python has no lzma") from error

    try:
        return lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=[{"id": _LZMA2, "dict_size": 1 << 20}])
    except lzma.LZMAError as error:
        raise ValueError("no packed block") from error


def differences(pack: bytes, sources: Mapping[str, bytes]) -> list[str]:
    """Compile `sources` anew and return what of `pack` is not their byte code, empty when all of it is.

    Raises:
        ValueError, LookupError, TypeError, zlib.error: it is no pack.
    """
    if pack[:4] != importlib.util.MAGIC_NUMBER:
        return ["its byte code is of another Python than the one that verifies"]
    problems = [] if zlib.crc32(pack[8:]) == int.from_bytes(pack[4:8], "little") else ["its checksum is wrong"]
    end = 12 + int.from_bytes(pack[8:12], "little")
    boot, begin = pack[12:end], end + 4 + int.from_bytes(pack[end : end + 4], "little")
    index, blob = json.loads(zlib.decompress(pack[end + 4 : begin], _RAW)), pack[begin:]
    if boot != marshalled(compiled(sources[BOOT], BOOT)):
        problems.append(f"{BOOT} has other byte code")
    words = zlib.decompress(blob[slice(*index["words"])], _RAW)
    blocks = [_unsqueezed(blob[slice(*place)]) for place in index["blocks"]]
    told: dict[str, Any] = json.loads(_unsqueezed(blob[slice(*index["made"])]))
    if index["engine"] != engine():
        problems.append("its regexes are of another engine")
    wanted = {module_of(file): file for file in sources if file not in (BOOT, LAUNCHER)}
    for name in sorted({*wanted, *index["modules"]}):
        file = wanted.get(name)
        if file is None or name not in index["modules"]:
            problems.append(f"{name} is only in the {'byte code' if file is None else 'sources'}")
            continue
        said, is_package, start, stop, block = index["modules"][name]
        if (said, is_package) != (file, file.endswith("/__init__.py")):
            problems.append(f"{name} is said to be {said}")
            continue
        alone = zlib.decompressobj(_RAW, words)
        module = blocks[block - 1][start:stop] if block else alone.decompress(blob[start:stop])
        made = Made.read(told[name]) if name in told else Made()
        try:
            is_same = module == _module(compiled(sources[file], file), made)
        except (SyntaxError, re.error, OverflowError, RecursionError):
            is_same = False  # what it is said to make is no program
        if not is_same:
            problems.append(f"{file} has other byte code")
    return problems


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")
