"""The compiled regexes of a rule file, kept from the build: `re` needs milliseconds for one, a scan meets a hundred.

What `re` makes of a regex is a list of numbers, which only the engine that it was made for can run. So there is one
pack for each Python, and where none fits, everything is compiled as ever. Most numbers are the same for all engines, so
one pack has all of them, and the others what differs: they name its member.

Layout: a line of JSON; then, deflated, an index, the preset dictionary of all that follows, and a piece a rule. The
line says of which engine and rule file the pack is, how long the index is, the CRC-32 of all that follows, and which
member of the archive has the pieces that are empty here (`base`). The index is two lists, as JSON: how long the
dictionary and each piece are, and the numbers of those pieces that are packed with another one behind the dictionary,
each with that one's. A piece is a line of JSON, which says of each regex its flags, groups and names of groups; then, 4
bytes each, the CRC-32 of all of them, and how many numbers each has; then all the numbers, a byte each; then, 4 bytes
each, those that a byte does not hold, in whose place stands its highest.

Few of them are ever tried: a process that stays leaves the pieces in the archive, and holds a digest of each.
"""

import _sre  # type: ignore[import-not-found]
import hashlib
import json
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from gateway.shield import dictionary
from gateway.shield.factor import factor

FLAGS = int(re.ASCII)  # a number is asked for one of its bits ten times as fast as re's own flags
_NUMBER_BYTES = 4
_DIGEST_BYTES = 16
_WIDE = 255  # stands in the place of a number that is as high or higher
_NUMBER = next(kind for kind in "ILH" if array(kind).itemsize == _NUMBER_BYTES)


def compile_regex(text: str, flags: int = FLAGS) -> re.Pattern[str]:
    """Compile a regex for the running Python; it matches as `re.compile` has it, and sooner."""
    code, state = _coded(text, flags)
    return _made(flags | state.flags, code, state.groups - 1, state.groupdict)


def pack_regexes(digest: str, rules: Sequence[Sequence[str]], *, is_thorough: bool = True) -> bytes:
    """Compile regexes for the running Python. digest: of the rule file. rules: the regexes of each rule.

    is_thorough: whether to look for what makes the pack small; of no use to one that `share_pieces` makes anew.
    """
    pieces = list(map(_piece, rules))
    words = dictionary.choose_dictionary(pieces) if is_thorough else b""
    likes = dictionary.choose_likes(pieces, words) if is_thorough else {}
    return _packed({"engine": _engine(), "digest": digest}, words, pieces, likes)


def _packed(head: Mapping[str, Any], words: bytes, pieces: Sequence[bytes], likes: Mapping[int, int]) -> bytes:
    packed = [dictionary.packed(words)]
    for number, piece in enumerate(pieces):
        known = dictionary.words_like(words, pieces[likes[number]]) if number in likes else words
        packed.append(dictionary.packed(piece, known) if piece else b"")
    index = dictionary.packed(json.dumps([list(map(len, packed)), sorted(likes.items())]).encode())
    body = b"".join((index, *packed))
    told = {**head, "index": len(index), "crc": zlib.crc32(body)}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n" + body


def share_pieces(packs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return packs by member, all but the first without the pieces that the first has as well."""
    (member, first), *others = packs.items()
    shared, base = {member: first}, Regexes(first)
    for name, raw in others:
        pack = Regexes(raw)
        pieces = ((pack.piece(number), base.piece(number)) for number in range(len(pack)))
        own = [b"" if piece == known else piece for piece, known in pieces]
        shared[name] = _packed(pack.head | {"base": member}, b"", own, {})
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
    if not pack.is_intact():
        return ["the checksum of its regexes is wrong"]
    if len(pack) != len(rules):
        return ["its regexes are of other rules"]
    wrong = [number for number, texts in enumerate(rules) if pack.piece(number) != _piece(texts)]
    return [f"the regexes of {len(wrong)} rules are not theirs, the first is number {wrong[0]}"] if wrong else []


class Regexes:
    """A pack of compiled regexes. A rule's piece is unpacked when one of its regexes is asked for."""

    __slots__ = ("_base", "_digests", "_likes", "_places", "_raw", "_read", "_words", "head")

    def __init__(self, raw: bytes) -> None:
        """raw: bytes that `whole` returned, or made by `pack_regexes`; they are trusted as the program itself is.

        Raises:
            ValueError, LookupError, TypeError, zlib.error: they are not.
        """
        begin = raw.index(b"\n") + 1
        self.head: dict[str, Any] = json.loads(raw[:begin])
        end = begin + self.head["index"]
        (size, *sizes), likes = json.loads(dictionary.unpacked(raw[begin:end]))
        self._likes: dict[int, int] = dict(likes)
        self._words = dictionary.unpacked(raw[end : end + size])
        self._places = array(_NUMBER, accumulate(sizes, initial=end + size))
        self._base = Regexes(raw[self._places[-1] :]) if "base" in self.head else None
        self._raw = raw[: self._places[-1]]

    def __len__(self) -> int:
        return len(self._places) - 1

    def fits(self, digest: str) -> bool:
        """Tell whether they are for the running Python and a rule file."""
        return (self.head["engine"], self.head["digest"]) == (_engine(), digest)

    def is_intact(self) -> bool:
        """Tell whether the checksum is right. Who runs the archive has it checked as a member of that."""
        crc: int = self.head["crc"]
        return zlib.crc32(self._raw.partition(b"\n")[2]) == crc

    def leave(self, member: str, read: Callable[[str, int, int], bytes]) -> None:
        """Hold the pieces no longer. member: of the archive, where they lie. read: returns a part of a member."""
        if not self._raw:  # by somebody before
            return
        raw = memoryview(self._raw)
        self._digests = b"".join(_digest(raw[begin:end]) for begin, end in pairwise(self._places))
        self._read = partial(read, member)
        self._raw = b""  # last: another thread may ask for a piece
        if self._base is not None:
            self._base.leave(self.head["base"], read)

    def _packed_piece(self, number: int) -> bytes:
        begin, end = self._places[number : number + 2]
        packed = self._raw[begin:end]
        if packed or begin == end:
            return packed
        packed = self._read(begin, end)
        if not self._digests.startswith(_digest(packed), number * _DIGEST_BYTES):
            raise OSError("the archive was changed")
        return packed

    def piece(self, number: int) -> bytes:
        """Return what is kept of one rule.

        Raises:
            OSError: it was left in the archive, where it is no more.
        """
        packed = self._packed_piece(number)
        if not packed and self._base is not None:
            return self._base.piece(number)
        like = self._likes.get(number)
        words = self._words if like is None else dictionary.words_like(self._words, self.piece(like))
        return dictionary.unpacked(packed, words)

    def get(self, number: int, text: str) -> re.Pattern[str] | None:
        """Return a regex of the rule of a number, or None if it is not kept."""
        try:
            line, _, numbers = self.piece(number).partition(b"\n")
        except OSError:
            return None
        key, told = zlib.crc32(text.encode()), json.loads(line)
        size = len(told) * _NUMBER_BYTES
        crcs, counts = array(_NUMBER, numbers[:size]), array(_NUMBER, numbers[size : 2 * size])
        begin = 2 * size
        wide = begin + sum(counts)  # where those that are left begin
        for crc, count, (flags, groups, names) in zip(crcs, counts, told, strict=True):
            low = numbers[begin : begin + count]
            end = wide + low.count(_WIDE) * _NUMBER_BYTES
            if crc == key:
                return _made(flags, _joined(low, array(_NUMBER, numbers[wide:end])), groups, names)
            begin, wide = begin + count, end
        return None


def _digest(piece: bytes | memoryview) -> bytes:
    return hashlib.blake2b(piece, digest_size=_DIGEST_BYTES).digest()


def _engine() -> str:
    return f"{sys.implementation.cache_tag} {_sre.MAGIC} {_sre.CODESIZE} {_sre.MAXREPEAT} {sys.byteorder}"


def _coded(text: str, flags: int = FLAGS) -> tuple[list[int], Any]:
    tree = factor(parser.parse(text, flags))
    return compiler._code(tree, flags), tree.state


def _made(flags: int, code: list[int], groups: int, names: dict[str, int]) -> re.Pattern[str]:
    """Make a regex that does not keep its own text, which is as long as a fifth of it and asked for by nobody."""
    places: list[str | None] = [None] * (groups + 1)
    for name, place in names.items():
        places[place] = name
    regex: re.Pattern[str] = _sre.compile(None, flags, code, groups, names, tuple(places))
    return regex


def _piece(texts: Iterable[str]) -> bytes:
    told, low = [], bytearray()
    crcs, counts, wide = array(_NUMBER), array(_NUMBER), array(_NUMBER)
    for text in dict.fromkeys(texts):
        code, state = _coded(text)
        told.append([FLAGS | state.flags, state.groups - 1, state.groupdict])
        crcs.append(zlib.crc32(text.encode()))
        counts.append(len(code))
        low += bytes([number if number < _WIDE else _WIDE for number in code])
        wide.extend(number for number in code if number >= _WIDE)
    line = json.dumps(told, separators=(",", ":")).encode()
    return b"".join((line, b"\n", crcs.tobytes(), counts.tobytes(), low, wide.tobytes()))


def _joined(low: bytes, wide: Iterable[int]) -> list[int]:
    """Put the numbers that a byte does not hold among the others again."""
    first, *rest = low.split(bytes([_WIDE]))
    numbers = list(first)
    for number, others in zip(wide, rest, strict=True):
        numbers.append(number)
        numbers += others
    return numbers
