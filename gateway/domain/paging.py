"""Pages of a list that is read newest first, and their opaque cursors. Pure."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.errors import InvalidRequest

T = TypeVar("T")

MAX_INTEGER = 2**63 - 1
DEFAULT_LIMIT = 100
_TAG_BYTES = 6
_MAX_CURSOR_CHARS = 128
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MASK_40 = 2**40 - 1
ID_NUMBERS = 3
"""The number of integers that `position_of` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """Which page of a list to return. The filter of a list inherits from it."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. next: the cursor of the next page, or None at the end."""

    items: tuple[T, ...]
    limit: int
    next: str | None


def write_cursor(query: Sequence[object], position: Sequence[int]) -> str:
    """Return an opaque cursor that continues after `position` (non-negative integers) in the list of `query`."""
    joined = ".".join(str(number) for number in position).encode("ascii")
    return base64.urlsafe_b64encode(_tag(query, joined) + joined).decode("ascii").rstrip("=")


def read_cursor(cursor: str, query: Sequence[object], *, count: int) -> tuple[int, ...]:
    """Return the `count` integers of a cursor that `write_cursor` made for the same `query`.

    Raises:
        InvalidRequest: the cursor does not belong to this query. `param` is ``cursor``.
    """
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        tag, joined = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
        numbers = tuple(int(part) for part in joined.decode("ascii").split("."))
        if len(numbers) != count or not 0 <= min(numbers) <= max(numbers) <= MAX_INTEGER or tag != _tag(query, joined):
            raise ValueError
    except ValueError:  # binascii.Error and UnicodeError are kinds of it
        message = "The cursor belongs to another query; ask again without it."
        raise InvalidRequest(message, param="cursor") from None
    return numbers


def position_of(record_id: str) -> tuple[int, ...]:
    """Return the cursor position of a record in a list sorted by id: the time and randomness of its ULID."""
    value = 0
    for character in record_id.rpartition("_")[2]:
        value = value << 5 | _CROCKFORD.index(character)
    return (value >> 80, value >> 40 & _MASK_40, value & _MASK_40)


def id_at(prefix: str, position: Sequence[int]) -> str:
    """Return the id at `position`: the inverse of `position_of`."""
    value = position[0] << 80 | (position[1] & _MASK_40) << 40 | position[2] & _MASK_40
    return prefix + "_" + "".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))


def _tag(query: Sequence[object], joined: bytes) -> bytes:
    # The tag covers query and position, so that a changed cursor and a cursor of another query are refused.
    return hashlib.sha256(repr(tuple(query)).encode("utf-8", "backslashreplace") + b"\0" + joined).digest()[:_TAG_BYTES]
