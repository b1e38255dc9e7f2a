"""The compiled regexes of a rule file, kept from the build: `re` needs milliseconds for one, a scan meets a hundred.

What `re` makes of a regex is a list of numbers, which only the engine that it was made for can run. So there is one
pack for each Python, and where none fits, everything is compiled as ever. Most numbers are the same for all engines, so
one pack has all of them, and the others what differs: they name its member.

Layout: a line of JSON, the preset dictionary of all that follows (zlib), then a piece a rule (zlib). The line says of
which engine and rule file the pack is, where the pieces end, and which member of the archive has those that are
empty here (`base`). A piece is a line of JSON, which says of each regex its CRC-32, flags, groups, names of groups and
how many numbers it has; then all the numbers, a byte each; then, 4 bytes each, those that a byte does not hold, in
whose place stands its highest.
"""

import _sre  # type: ignore[import-not-found]
import json
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from gateway.shield import dictionary
from gateway.shield.factor import factor

FLAGS = re.ASCII
_NUMBER_BYTES = 4
_WIDE = 255  # stands in the place of a number that is as high or higher
_NUMBER = next(kind for kind in "ILH" if array(kind).itemsize == _NUMBER_BYTES)


def compile_regex(text: str, flags: int = FLAGS) -> re.Pattern[str]:
    """Compile a regex for the running Python; it matches as `re.compile` has it, and sooner."""
    code, state = _coded(text, flags)
    return _made(text, flags | state.flags, code, state.groups - 1, state.groupdict)


def pack_regexes(digest: str, rules: Sequence[Sequence[str]]) -> bytes:
    """Compile regexes for the running Python. digest: of the rule file. rules: the regexes of each rule."""
    pieces = [_piece(texts) for texts in rules]
    words = dictionary.choose_dictionary([piece.partition(b"\n")[2] for piece in pieces])
    return _packed({"engine": _engine(), "digest": digest}, words, pieces)


def _packed(head: Mapping[str, Any], words: bytes, pieces: Iterable[bytes]) -> bytes:
    packed = [zlib.compress(words, 9)]
    for piece in pieces:
        packer = zlib.compressobj(9, zdict=words)
        packed.append(packer.compress(piece) + packer.flush() if piece else b"")
    ends = list(accumulate(map(len, packed)))
    return json.dumps({**head, "ends": ends}, separators=(",", ":")).encode() + b"\n" + b"".join(packed)


def share_pieces(packs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return packs by member, all but the first without the pieces that the first has as well."""
    (member, first), *others = packs.items()
    shared, base = {member: first}, Regexes(first)
    for name, raw in others:
        pack = Regexes(raw)
        pieces = ((pack.piece(number), base.piece(number)) for number in range(len(pack)))
        own = [b"" if piece == known else piece for piece, known in pieces]
        shared[name] = _packed(pack.head | {"base": member}, b"", own)
    return shared


def whole(raw: bytes, read: Callable[[str], bytes]) -> bytes:
    """Return a pack with the one that it is based on, if it is. read: returns a member of the archive by its name.

    Raises:
        ValueError, LookupError: it is no pack.
        OSError, as `read` raises: the member that it names is not there.
    """
    base = json.loads(raw[: raw.index(b"\n")]).get("base")
    return raw if base is None else raw + read(base)


def differences(raw: bytes, digest: str, rules: Sequence[Sequence[str]]) -> list[str]:
    """Compile regexes anew and return what of a pack is not that, empty when all of it is. Runs nothing of it.

    Raises:
        ValueError, LookupError, TypeError, zlib.error: it is no pack.
    """
    pack = Regexes(raw)
    if not pack.fits(digest):
        return ["its regexes are of another engine or rule file"]
    if len(pack) != len(rules):
        return ["its regexes are of other rules"]
    wrong = [number for number, texts in enumerate(rules) if pack.piece(number) != _piece(texts)]
    return [f"the regexes of {len(wrong)} rules are not theirs, the first is number {wrong[0]}"] if wrong else []


class Regexes:
    """A pack of compiled regexes. A rule's piece is unpacked when one of its regexes is asked for."""

    __slots__ = ("_base", "_begin", "_ends", "_raw", "_words", "head")

    def __init__(self, raw: bytes) -> None:
        """raw: bytes that `whole` returned, or made by `pack_regexes`; they are trusted as the program itself is.

        Raises:
            ValueError, LookupError, TypeError, zlib.error: they are not.
        """
        self._begin = raw.index(b"\n") + 1
        self.head: dict[str, Any] = json.loads(raw[: self._begin])
        self._ends: list[int] = self.head["ends"]
        end = self._begin + self._ends[-1]
        self._base = Regexes(raw[end:]) if "base" in self.head else None
        self._raw = raw[:end]
        self._words = zlib.decompress(raw[self._begin : self._begin + self._ends[0]])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def fits(self, digest: str) -> bool:
        """Tell whether they are for the running Python and a rule file."""
        return (self.head["engine"], self.head["digest"]) == (_engine(), digest)

    def piece(self, number: int) -> bytes:
        """Return what is kept of one rule."""
        packed = self._raw[self._begin + self._ends[number] : self._begin + self._ends[number + 1]]
        if not packed and self._base is not None:
            return self._base.piece(number)
        return zlib.decompressobj(zdict=self._words).decompress(packed)

    def get(self, number: int, text: str) -> re.Pattern[str] | None:
        """Return a regex of the rule of a number, or None if it is not kept."""
        line, _, numbers = self.piece(number).partition(b"\n")
        key, begin, told = zlib.crc32(text.encode()), 0, json.loads(line)
        wide = sum(count for *_, count in told)  # where those that are left begin
        for crc, flags, groups, names, count in told:
            low = numbers[begin : begin + count]
            end = wide + low.count(_WIDE) * _NUMBER_BYTES
            if crc == key:
                return _made(text, flags, _joined(low, array(_NUMBER, numbers[wide:end])), groups, names)
            begin, wide = begin + count, end
        return None


def _engine() -> str:
    return f"{sys.implementation.cache_tag} {_sre.MAGIC} {_sre.CODESIZE} {_sre.MAXREPEAT} {sys.byteorder}"


def _coded(text: str, flags: int = FLAGS) -> tuple[list[int], Any]:
    tree = factor(parser.parse(text, flags))
    return compiler._code(tree, flags), tree.state


def _made(text: str, flags: int, code: list[int], groups: int, names: dict[str, int]) -> re.Pattern[str]:
    places: list[str | None] = [None] * (groups + 1)
    for name, place in names.items():
        places[place] = name
    regex: re.Pattern[str] = _sre.compile(text, flags, code, groups, names, tuple(places))
    return regex


def _piece(texts: Iterable[str]) -> bytes:
    told, low, wide = [], bytearray(), array(_NUMBER)
    for text in dict.fromkeys(texts):
        code, state = _coded(text)
        told.append([zlib.crc32(text.encode()), FLAGS | state.flags, state.groups - 1, state.groupdict, len(code)])
        low += bytes(min(number, _WIDE) for number in code)
        wide.extend(number for number in code if number >= _WIDE)
    return json.dumps(told, separators=(",", ":")).encode() + b"\n" + bytes(low) + wide.tobytes()


def _joined(low: bytes, wide: Iterable[int]) -> list[int]:
    """Put the numbers that a byte does not hold among the others again."""
    first, *rest = low.split(bytes([_WIDE]))
    numbers = list(first)
    for number, others in zip(wide, rest, strict=True):
        numbers.append(number)
        numbers += others
    return numbers
