"""A decoded view: another reading of a text, put together from pieces that know where they come from."""

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text that was hidden in another, and the way back.

    name: how it was hidden, such as ``base64``. text: what it says. pieces: offset in `text` where each piece begins;
    beside it, starts and ends: half-open span of the hiding text that it stood in. is_reversed: read backwards.
    """

    name: str
    text: str
    pieces: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    is_reversed: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span in the hiding text of a non-empty span of `text`.

        Exact where a piece is as long as what it hides behind, else in proportion.
        """
        first = max(0, bisect_right(self.pieces, start) - 1)
        last = max(0, bisect_right(self.pieces, end - 1) - 1)
        ends = [*self._ends(first, start, start + 1), *self._ends(last, end - 1, end)]
        if self.is_reversed:
            return min(ends), max(ends)
        return ends[0], max(ends[0] + 1, ends[3])

    def _ends(self, piece: int, start: int, end: int) -> tuple[int, int]:
        at, low, high = self.pieces[piece], self.starts[piece], self.ends[piece]
        length = (self.pieces[piece + 1] if piece + 1 < len(self.pieces) else len(self.text)) - at
        start, end = min(start - at, length), min(end - at, length)
        if self.is_reversed:
            return high - end, high - start
        size = high - low
        if size == length:
            return low + start, low + end
        return low + start * size // length, low - (-end * size // length)


@dataclass(slots=True)
class Builder:
    """Collects the pieces of one decoded view."""

    name: str
    parts: list[str] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    length: int = 0

    def add(self, text: str, start: int, end: int) -> None:
        """Append what the span start..end of the hiding text says."""
        if text:
            self.pieces.append(self.length)
            self.starts.append(start)
            self.ends.append(end)
            self.parts.append(text)
            self.length += len(text)

    def end_piece(self, at: int) -> None:
        """Keep what follows apart from what came before, by a line break that stands nowhere."""
        if self.parts:
            self.add("\n", at, at)

    def done(self) -> list[Decoded]:
        """Return the view, or nothing if it has no text."""
        if not self.parts:
            return []
        return [Decoded(self.name, "".join(self.parts), tuple(self.pieces), tuple(self.starts), tuple(self.ends))]


def regions(spots: list[tuple[int, int]], *, around: int, length: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Group ordered spans that stand near one another; return (start, end, spans) with `around` characters more."""
    groups: list[tuple[int, int, list[tuple[int, int]]]] = []
    low, high = 0, -1
    near: list[tuple[int, int]] = []
    for spot in spots:
        start, end = spot
        if start - around > high:
            if near:
                groups.append((low, min(high, length), near))
            low, near = max(0, start - around), []
        high = end + around
        near.append(spot)
    if near:
        groups.append((low, min(high, length), near))
    return groups
