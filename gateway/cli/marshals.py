"""Marshalled byte code in other forms: what Pythons have alike is taken out of it. Pure; nothing is unmarshalled.

Version 2 of the format says everything in full, wherever it stands. What a start reads is written with references
instead, which are read sooner, and all texts come first: the same ones for all Pythons. What lies in blocks is parted
in two: what is each Python's own, which is codes and their tables, and the frame that holds them, with names and
constants, which is nearly the same for all Pythons, so that the frames of all lie in one packed block.

A frame has a mark, and a byte that tells which of the three it is, wherever a code, its table of lines or its table of
handlers stood. How long each is comes first, then all codes, all tables of lines and all of handlers: like lies by
like. The archive's finder, deploy/boot.py, puts them in again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_MARK = bytes(range(0xF5, 0xF9))  # no text holds these bytes; made at run time, so that no constant is one
_SAID = 128  # flag of what is referred to later
_REFERENCE = b"r"
_REFERENCE_BYTES = 5
_NUMBER_BYTES = 4
_FEW = 256  # so many parts or characters a short form holds
_SIZES = {b"N": 0, b"F": 0, b"T": 0, b".": 0, b"i": 4, b"g": 8, b"y": 16}
_TUPLE, _SMALL_TUPLE, _SET, _SLICE, _CODE, _LONG = b"(", b")", b">", b":", b"c", b"l"
_BYTES, _TEXT, _NAME = b"s", b"u", b"t"
# As ASCII, short and long.
_ASCII = {_TEXT: (b"z", b"a"), _NAME: (b"Z", b"A")}
_SHORT = frozenset((b"z", b"Z"))
_REFERRED_TO = frozenset((_BYTES, _TUPLE, _SET, _LONG, b"g"))
_PLAIN = b""  # a number of byte code, which says no kind
# Of byte code: five numbers, its code, seven parts, the first line, and the tables of lines and of handlers.
_CODE_NUMBERS, _CODE_PARTS, _PLACE_OF_LINE = 5, 10, 8
_OWN = (0, 9, 10)


class _Node(NamedTuple):
    """One value in marshal data: where it begins and ends, its kind, and the values in it."""

    begin: int
    end: int
    kind: bytes
    parts: "tuple[_Node, ...]"


def texts_of(codes: Iterable[bytes]) -> bytes:
    """Return the beginning of a marshalled tuple of all texts in byte code of version 2, each once, and one more value.

    What follows is `referring` to the texts, and that last value.
    """
    texts: dict[bytes, bytes] = {}
    for raw in codes:
        for node in _all(_read(raw, 0)):
            if node.kind in _ASCII:
                text = raw[node.begin + 1 + _NUMBER_BYTES : node.end]
                texts[text] = _NAME if node.kind == _NAME else texts.get(text, _TEXT)  # a name once is one always
    pieces = [_opened(len(texts) + 1)]
    pieces += [
        _written(kind, len(text).to_bytes(_NUMBER_BYTES, "little") + text, _SAID) for text, kind in texts.items()
    ]
    return b"".join(pieces)


def referring(raw: bytes, texts: bytes) -> bytes:
    """Return version 2 of the format with a reference in the place of each text, and what comes again said once.

    Raises:
        ValueError, LookupError: `texts` is nothing that `texts_of` made of this byte code, among other.
    """
    tree, pieces = _read(raw, 0), list[bytes]()
    often = Counter(raw[node.begin : node.end] for node in _all(tree) if node.kind in _REFERRED_TO)
    known = _numbered(texts)
    places: dict[bytes, int] = {}

    def write(node: _Node) -> None:
        said, flag = raw[node.begin : node.end], 0
        place = known[said[1 + _NUMBER_BYTES :]] if node.kind in _ASCII else places.get(said)
        if place is not None:
            pieces.append(_REFERENCE + place.to_bytes(_NUMBER_BYTES, "little"))
            return
        if node.kind in _REFERRED_TO and len(said) > _REFERENCE_BYTES and often[said] > 1:
            places[said], flag = len(known) + len(places), _SAID
        pieces.append(_head(raw, node, flag))
        for part in node.parts:
            write(part)

    write(tree)
    return b"".join(pieces)


def _numbered(texts: bytes) -> dict[bytes, int]:
    """Return the texts that `texts_of` wrote, with their places."""
    found: dict[bytes, int] = {}
    place = 2 if texts[:1] == _SMALL_TUPLE else 1 + _NUMBER_BYTES
    while place < len(texts):
        is_short = bytes([texts[place] & ~_SAID]) in _SHORT
        begin = place + 1 + (1 if is_short else _NUMBER_BYTES)
        place = begin + int.from_bytes(texts[place + 1 : begin], "little")
        found[texts[begin:place]] = len(found)
    return found


def parted(raw: bytes) -> tuple[bytes, tuple[bytes, bytes, bytes, bytes]]:
    """Return version 2 of the format in two parts, the frame and what is taken out: sizes, codes, lines and handlers.

    A text that comes again is written as a name is, of which a process has one: each code says the name of its file.

    Raises:
        ValueError: a constant holds the mark.
    """
    tree, frame, sizes = _read(raw, 0), list[bytes](), list[bytes]()
    often = Counter(raw[node.begin + 1 : node.end] for node in _all(tree) if node.kind in _ASCII)
    own = dict[int, list[bytes]]((place, []) for place in _OWN)

    def write(node: _Node) -> None:
        is_shared = node.kind == _TEXT and often[raw[node.begin + 1 : node.end]] > 1
        frame.append(_head(raw, node._replace(kind=_NAME) if is_shared else node, 0))
        for place, part in enumerate(node.parts):
            if node.kind == _CODE and place in _OWN:
                begin = part.begin + len(_BYTES) + _NUMBER_BYTES
                frame.append(_MARK + bytes([_OWN.index(place)]))
                sizes.append((part.end - begin).to_bytes(_NUMBER_BYTES, "little"))
                own[place].append(raw[begin : part.end])
            else:
                write(part)

    write(tree)
    framed = b"".join(frame)
    if framed.count(_MARK) != len(sizes):
        raise ValueError("a constant holds the mark of what was taken out")
    codes, lines, handlers = map(b"".join, own.values())
    return framed, (b"".join(sizes), codes, lines, handlers)


def _read(raw: bytes, begin: int) -> _Node:
    kind, place = raw[begin : begin + 1], begin + 1
    if kind in _SIZES:
        return _Node(begin, place + _SIZES[kind], kind, ())
    if kind == _CODE:
        place += _CODE_NUMBERS * _NUMBER_BYTES
        count = _CODE_PARTS
    elif kind == _SLICE:
        count = 3
    else:
        count = int.from_bytes(raw[place : place + _NUMBER_BYTES], "little", signed=True)
        place += _NUMBER_BYTES
        if kind in (_BYTES, _TEXT, _NAME):
            return _Node(begin, place + count, kind, ())
        if kind == _LONG:
            return _Node(begin, place + 2 * abs(count), kind, ())
        if kind not in (_TUPLE, _SET):
            raise ValueError(f"marshal data of an unknown kind: {kind!r}")
    parts = []
    for number in range(count):
        if kind == _CODE and number == _PLACE_OF_LINE:
            parts.append(_Node(place, place + _NUMBER_BYTES, _PLAIN, ()))
            place += _NUMBER_BYTES
        parts.append(_read(raw, place))
        place = parts[-1].end
    return _Node(begin, place, kind, tuple(parts))


def _all(node: _Node) -> Iterator[_Node]:
    yield node
    for part in node.parts:
        yield from _all(part)


def _head(raw: bytes, node: _Node, flag: int) -> bytes:
    """Return what a value is written as, up to the first of its parts."""
    if node.kind == _PLAIN:
        return raw[node.begin : node.end]
    inner = raw[node.begin + 1 : node.parts[0].begin if node.parts else node.end]
    if node.kind == _TUPLE:
        return _opened(len(node.parts), flag)
    return _written(node.kind, inner, flag)


def _opened(count: int, flag: int = 0) -> bytes:
    """Return the beginning of a tuple of so many values."""
    if count < _FEW:
        return bytes([_SMALL_TUPLE[0] | flag, count])
    return bytes([_TUPLE[0] | flag]) + count.to_bytes(_NUMBER_BYTES, "little")


def _written(kind: bytes, inner: bytes, flag: int) -> bytes:
    """Return a value of which `inner` follows the kind; a text in its shortest form."""
    if kind in _ASCII and inner[_NUMBER_BYTES:].isascii():
        text, (short, long) = inner[_NUMBER_BYTES:], _ASCII[kind]
        kind, inner = (short, bytes([len(text)]) + text) if len(text) < _FEW else (long, inner)
    return bytes([kind[0] | flag]) + inner
