"""The byte-code packs of an archive: made of what each Python compiled, and compared with sources. Pure.

Nothing of a pack that is compared is ever unmarshalled, since marshal data from elsewhere can crash the interpreter.

Layout of a pack: the magic number (4 bytes), the CRC-32 of all after byte 8 (4), the length of the boot code (4), the
boot code, deflated, the length of the index (4), the index as JSON, deflated, then what the index points into:
{"modules": {name: [is_package, begin, end, block, ...]}, "blocks": [[begin, end, begin, end, size]], "engine": of the
regexes, "words": [begin, end]}. Integers are little endian.

What a start runs is a piece by itself, in block 0. It is in two places, since all Pythons have the same texts: these
lie in the member that all packs share, and what refers to them in the pack. Both are one deflated stream with `words`,
which the packs share too, as its preset dictionary. In the index stand where the second part is packed, and the first.

All other modules lie in the blocks from 1 on, packed with LZMA: a third smaller, and slower. A block is in two places
as well. Its codes and their tables are in the pack, of each kind one module's after the other's; its frames (see
`marshals`) are in the shared member, Python after Python. In the index stand where both are packed and how much of the
frames need be unpacked for this Python, and of a module where its frame begins and ends, the number of its block, and
where of each kind its own begin.

A module is a marshalled tuple: its code; the CRC-32 and the code of each text that `dataclasses` compiles when the
module is run; what `re` makes of each regex that it compiles then. Which texts and regexes these are stands in a member
of its own, JSON packed with LZMA, for whoever compares.
"""

import importlib.util
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from typing import Any

from gateway.cli.bytecode import BOOT, LAUNCHER, Made, compile_module, compiled, engine, marshalled, module_of
from gateway.cli.marshals import parted, referring, texts_of
from gateway.shield import dictionary

FOLDER = "_pyc/"
SHARED = f"{FOLDER}shared.pack"
MADE = f"{FOLDER}made.pack"
_RAW = -15  # deflate without a checksum of its own: there is one over all
_BLOCK_BYTES = 640 * 1024  # of one Python, marshalled: after the module that makes it so long a block ends
_LZMA2, _WINDOW_BYTES = 0x21, 1 << 21
_KINDS = 4  # of what `parted` takes out of a frame


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one Python made of the sources. modules: marshalled, by source file."""

    magic: bytes
    engine: list[int]
    boot: bytes
    modules: Mapping[str, bytes]
    made: Mapping[str, Mapping[str, object]]


def compile_all(sources: Mapping[str, bytes], made: Mapping[str, Made]) -> Compiled:
    """Compile every source for the running Python. made: what modules make, by their names."""
    files = [file for file in sorted(sources) if file not in (BOOT, LAUNCHER)]
    return Compiled(
        importlib.util.MAGIC_NUMBER,
        engine(),
        marshalled(compiled(sources[BOOT], BOOT)),
        {file: compile_module(sources[file], file, made.get(module_of(file), Made())) for file in files},
        {name: made[name].told() for name in sorted(made)},
    )


def pack_of(tag: str) -> str:
    """Return the member with the byte code of a Python, by its cache tag."""
    return f"{FOLDER}{tag}.pack"


def make_packs(pythons: Mapping[str, Compiled], first: Collection[str] = ()) -> dict[str, bytes]:
    """Return members by their names: a pack for each Python, given by its tag, and what they share.

    first: names of the modules that a start runs.
    """
    sources = sorted(next(iter(pythons.values())).modules)
    drafts = {tag: _Draft(python) for tag, python in pythons.items()}
    shared = _add_first([file for file in sources if module_of(file) in first], list(drafts.values()))
    for number, group in enumerate(_groups([file for file in sources if module_of(file) not in first], pythons), 1):
        frames = bytearray()
        for draft in drafts.values():
            draft.add_block(number, group, frames)
        place = _add(shared, _squeezed(frames))
        for draft in drafts.values():
            draft.blocks[-1][2:2] = place
    told = {tag: python.made for tag, python in pythons.items()}
    packs = {pack_of(tag): draft.pack() for tag, draft in drafts.items()}
    return packs | {SHARED: bytes(shared), MADE: _squeezed(json.dumps(told, separators=(",", ":")).encode())}


def is_package(file: str) -> bool:
    """Tell whether a source is that of a package."""
    return file.endswith("/__init__.py")


@dataclass(slots=True)
class _Draft:
    """A pack while it is made. entries: by source file, as in the index."""

    python: Compiled
    entries: dict[str, list[int]] = field(default_factory=dict)
    blocks: list[list[int]] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)

    def add_block(self, number: int, files: Sequence[str], frames: bytearray) -> None:
        """Add a block of the other modules, and their frames to those of the other Pythons."""
        places = {}
        kinds = tuple(bytearray() for _ in range(_KINDS))
        for file in files:
            frame, own = parted(self.python.modules[file])
            self.entries[file] = [int(is_package(file)), *_add(frames, frame), number]
            places[file] = [_add(kind, of_file)[0] for kind, of_file in zip(kinds, own, strict=True)]
        begins = [0, *accumulate(map(len, kinds))]
        for file in files:
            self.entries[file] += map(add, begins, places[file])
        self.blocks.append([*_add(self.blob, _squeezed(b"".join(kinds), is_code=True)), len(frames)])

    def pack(self) -> bytes:
        """Return the whole pack."""
        index = {
            "modules": {module_of(file): self.entries[file] for file in sorted(self.entries)},
            "blocks": self.blocks,
            "engine": self.python.engine,
            "words": self.words,
        }
        head = dictionary.packed(json.dumps(index, separators=(",", ":")).encode())
        boot = dictionary.packed(self.python.boot)
        rest = b"".join((_number(len(boot)), boot, _number(len(head)), head, bytes(self.blob)))
        return self.python.magic + _number(zlib.crc32(rest)) + rest


def _add_first(files: Sequence[str], drafts: Sequence[_Draft]) -> bytearray:
    """Add the modules that a start runs to all packs, and return what the packs share of them."""
    texts = {file: texts_of(draft.python.modules[file] for draft in drafts) for file in files}
    codes = {file: [referring(draft.python.modules[file], texts[file]) for draft in drafts] for file in files}
    # A module of each Python in turn, so that the words are of use to all.
    words = dictionary.choose_dictionary(
        [texts[file] + codes[file][turn % len(drafts)] for turn, file in enumerate(files)]
    )
    shared = bytearray()
    place = _add(shared, dictionary.packed(words))
    for draft in drafts:
        draft.words = place
    for file in files:
        packer = zlib.compressobj(9, wbits=_RAW, zdict=words)
        place = _add(shared, packer.compress(texts[file]) + packer.flush(zlib.Z_SYNC_FLUSH))
        for draft, code in zip(drafts, codes[file], strict=True):
            rest = packer.copy()
            packed = rest.compress(code) + rest.flush()
            draft.entries[file] = [int(is_package(file)), *_add(draft.blob, packed), 0, *place]
    return shared


def _groups(files: Iterable[str], pythons: Mapping[str, Compiled]) -> Iterator[list[str]]:
    """Cut files into those of one block each."""
    group, size = list[str](), 0
    for file in files:
        group.append(file)
        size += len(next(iter(pythons.values())).modules[file])
        if size >= _BLOCK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _add(blob: bytearray, piece: bytes) -> list[int]:
    """Append a piece and return where it begins and ends."""
    blob += piece
    return [len(blob) - len(piece), len(blob)]


def _squeezed(data: bytes | bytearray, *, is_code: bool = False) -> bytes:
    """Pack with LZMA. is_code: whether it comes by two bytes."""
    import lzma  # missing in some Pythons, which then make no pack

    bits = int(is_code)
    how = {"preset": 9 | lzma.PRESET_EXTREME, "lp": bits, "pb": bits, "dict_size": _WINDOW_BYTES}
    filters = [{"id": _LZMA2, **how}]
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)


def _unsqueezed(packed: bytes) -> bytes:
    try:
        import lzma
    except ImportError as error:
        raise ValueError("this Python has no lzma") from error

    try:
        filters = [{"id": _LZMA2, "dict_size": _WINDOW_BYTES}]
        return lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=filters)
    except lzma.LZMAError as error:
        raise ValueError("no packed block") from error


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


class _Pack:
    """A pack that is compared. Nothing of it is trusted."""

    def __init__(self, raw: bytes, shared: bytes) -> None:
        end = 12 + int.from_bytes(raw[8:12], "little")
        self.boot, begin = zlib.decompress(raw[12:end], _RAW), end + 4 + int.from_bytes(raw[end : end + 4], "little")
        self.index, self._blob = json.loads(zlib.decompress(raw[end + 4 : begin], _RAW)), raw[begin:]
        self._words, self._shared = zlib.decompress(shared[slice(*self.index["words"])], _RAW), shared
        self._blocks = [
            (_unsqueezed(shared[place[2] : place[3]]), _unsqueezed(self._blob[place[0] : place[1]]))
            for place in self.index["blocks"]
        ]

    def is_module(self, name: str, code: bytes) -> bool:
        """Tell whether a module's marshalled code is that of the pack."""
        _, begin, end, block, *place = self.index["modules"][name]
        if block:
            frames, codes = self._blocks[block - 1]
            frame, own = parted(code)
            kept = tuple(codes[at : at + len(kind)] for at, kind in zip(place, own, strict=True))
            return (frames[begin:end], kept) == (frame, own)
        unpacker = zlib.decompressobj(_RAW, self._words)
        texts, rest = (unpacker.decompress(part) for part in (self._shared[slice(*place)], self._blob[begin:end]))
        try:
            return unpacker.eof and rest == referring(code, texts)
        except LookupError:  # a text that is not among them
            return False


def differences(tag: str, sources: Mapping[str, bytes], read: Callable[[str], bytes]) -> list[str]:
    """Compile `sources` anew and return what of a Python's pack is not their byte code, empty when all of it is.

    read: returns a member of the archive by its name.

    Raises:
        ValueError, LookupError, TypeError, zlib.error: it is no pack.
    """
    raw = read(pack_of(tag))
    if raw[:4] != importlib.util.MAGIC_NUMBER:
        return ["its byte code is of another Python than the one that verifies"]
    problems = [] if zlib.crc32(raw[8:]) == int.from_bytes(raw[4:8], "little") else ["its checksum is wrong"]
    pack = _Pack(raw, read(SHARED))
    told: dict[str, Any] = json.loads(_unsqueezed(read(MADE)))[tag]
    if pack.boot != marshalled(compiled(sources[BOOT], BOOT)):
        problems.append(f"{BOOT} has other byte code")
    if pack.index["engine"] != engine():
        problems.append("its regexes are of another engine")
    wanted = {module_of(file): file for file in sources if file not in (BOOT, LAUNCHER)}
    for name in sorted({*wanted, *pack.index["modules"]}):
        file = wanted.get(name)
        if file is None or name not in pack.index["modules"]:
            problems.append(f"{name} is only in the {'byte code' if file is None else 'sources'}")
        elif bool(pack.index["modules"][name][0]) != is_package(file):
            problems.append(f"{name} is said to be another file")
        elif not _is_of_source(pack, name, file, sources[file], told):
            problems.append(f"{file} has other byte code")
    return problems


def _is_of_source(pack: _Pack, name: str, file: str, source: bytes, told: Mapping[str, Any]) -> bool:
    made = Made.read(told[name]) if name in told else Made()
    try:
        return pack.is_module(name, compile_module(source, file, made))
    except (SyntaxError, re.error, OverflowError, RecursionError):
        return False  # what it is said to make is no program
