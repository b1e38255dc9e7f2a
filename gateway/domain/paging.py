"""Pages of a list, which is read newest first or in another order, and their opaque cursors. Pure."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Generic, TypeVar

from gateway.errors import InvalidJson, InvalidRequest
from gateway.strict_json import read_json, write_json

T = TypeVar("T")
S = TypeVar("S")

MAX_INTEGER = 2**63 - 1
DEFAULT_LIMIT = 100
MOST_COUNTED = 10_000
"""The rows that match a filter are counted up to this number."""
_TAG_BYTES = 6
_MAX_CURSOR_CHARS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """Which page of a list to return. The filter of a list inherits from it.

    sort: the name of a sort of the list, with the lowest first, or with a ``-`` before it the highest. None: newest
    first.
    """

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    sort: str | None = None

    @property
    def is_highest_first(self) -> bool:
        return self.sort is None or self.sort.startswith("-")

    def sort_of(self, sorts: Mapping[str, S]) -> tuple[S, ...]:
        """Return what a list has under the name of its sort, nothing when no sort is named."""
        return () if self.sort is None else (sorts[self.sort.removeprefix("-")],)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list.

    next: the cursor of the next page, or None at the end. total: how many match on all pages together, or None when
    they are too many to count, which is more than `MOST_COUNTED`.
    """

    items: tuple[T, ...]
    limit: int
    next: str | None
    total: int | None


def write_cursor(query: Sequence[object], position: Sequence[int | str]) -> str:
    """Return an opaque cursor that continues after `position`, numbers and texts, in the list of `query`."""
    joined = write_json(list(position))
    return base64.urlsafe_b64encode(_tag(query, joined) + joined).decode("ascii").rstrip("=")


def read_cursor(cursor: str, query: Sequence[object], kinds: Sequence[type | UnionType]) -> tuple[Any, ...]:
    """Return the position in a cursor that `write_cursor` made for the same `query`. kinds: int or str for each part.

    Raises:
        InvalidRequest: the cursor does not belong to this query. `param` is ``cursor``.
    """
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        tag, joined = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
        position = read_json(joined)
        if tag != _tag(query, joined) or not isinstance(position, list):
            raise ValueError
        if not all(isinstance(part, kind) for part, kind in zip(position, kinds, strict=True)):
            raise ValueError
    except (ValueError, InvalidJson):  # binascii.Error and UnicodeError are kinds of the first
        message = "The cursor belongs to another query; ask again without it."
        raise InvalidRequest(message, param="cursor") from None
    return tuple(position)


def _tag(query: Sequence[object], joined: bytes) -> bytes:
    # The tag covers query and position, so that a changed cursor and a cursor of another query are refused.
    return hashlib.sha256(repr(tuple(query)).encode("utf-8", "backslashreplace") + b"\0" + joined).digest()[:_TAG_BYTES]
