"""Pages of a list that is read newest first, and their opaque cursors. Pure."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gateway.errors import InvalidRequest

T = TypeVar("T")

MAX_INTEGER = 2**63 - 1
DEFAULT_LIMIT = 100
_TAG_BYTES = 6
_MAX_CURSOR_CHARS = 128


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


def write_cursor(query: Sequence[object], position: Sequence[int | str]) -> str:
    """Return an opaque cursor that continues after `position`, numbers and ids, in the list of `query`."""
    joined = ".".join(str(part) for part in position).encode("ascii")
    return base64.urlsafe_b64encode(_tag(query, joined) + joined).decode("ascii").rstrip("=")


def read_cursor(cursor: str, query: Sequence[object], kinds: Sequence[type]) -> tuple[Any, ...]:
    """Return the position in a cursor that `write_cursor` made for the same `query`. kinds: int or str for each part.

    Raises:
        InvalidRequest: the cursor does not belong to this query. `param` is ``cursor``.
    """
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        tag, joined = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
        if tag != _tag(query, joined):
            raise ValueError
        parts = joined.decode("ascii").split(".")
        position = tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
        if not all(0 <= part <= MAX_INTEGER for part in position if isinstance(part, int)):
            raise ValueError
    except ValueError:  # binascii.Error and UnicodeError are kinds of it
        message = "The cursor belongs to another query; ask again without it."
        raise InvalidRequest(message, param="cursor") from None
    return position


def _tag(query: Sequence[object], joined: bytes) -> bytes:
    # The tag covers query and position, so that a changed cursor and a cursor of another query are refused.
    return hashlib.sha256(repr(tuple(query)).encode("utf-8", "backslashreplace") + b"\0" + joined).digest()[:_TAG_BYTES]
