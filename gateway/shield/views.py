"""A decoded view: another reading of a text, put together from pieces that know where they come from."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text that was hidden in another, and the way back.

    name: how it was hidden, such as ``base64``. text: what it says. pieces: offset in `text` where each piece begins,
    and, beside it, its place.
    """

    name: str
    text: str
    pieces: tuple[int, ...]
    places: tuple["Place", ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the half-open span in the hiding text of a non-empty span of `text`.

        Exact where a piece is as long as what it hides behind, else in proportion.
        """
        first = max(0, bisect_right(self.pieces, start) - 1)
        last = max(0, bisect_right(self.pieces, end - 1) - 1)
        if self.places[first].is_reversed or self.places[last].is_reversed:
            ends = [*self._ends(first, start, start + 1), *self._ends(last, end - 1, end)]
            return min(ends), max(ends)
        low = self._ends(first, start, start + 1)[0]
        return low, max(low + 1, self._ends(last, end - 1, end)[1])

    def _ends(self, piece: int, start: int, end: int) -> tuple[int, int]:
        place = self.places[piece]
        start, end = min(start - self.pieces[piece], place.length), min(end - self.pieces[piece], place.length)
        if place.is_reversed:
            return place.end - end, place.end - start
        size = place.end - place.start
        if size == place.length:
            return place.start + start, place.start + end
        return place.start + start * size // place.length, place.start - (-end * size // place.length)


class Place(NamedTuple):
    """Where a piece stood: half-open span in the hiding text; length: characters it became; read backwards or not."""

    start: int
    end: int
    length: int
    is_reversed: bool = False


@dataclass(slots=True)
class Builder:
    """Collects the pieces of one decoded view."""

    name: str
    parts: list[str] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    length: int = 0

    def add(self, text: str, start: int, end: int, *, is_reversed: bool = False) -> None:
        """Append what the span start..end of the hiding text says."""
        if text:
            self.pieces.append(self.length)
            self.places.append(Place(start, end, len(text), is_reversed))
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
        return [Decoded(self.name, "".join(self.parts), tuple(self.pieces), tuple(self.places))]


def regions(spots: list[tuple[int, int]], *, around: int, length: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Group ordered spans that stand near one another; return (start, end, spans) with `around` characters more."""
    groups: list[tuple[int, int, list[tuple[int, int]]]] = []
    for start, end in spots:
        low, high = max(0, start - around), min(length, end + around)
        if groups and low <= groups[-1][1]:
            groups[-1][2].append((start, end))
            groups[-1] = (groups[-1][0], high, groups[-1][2])
        else:
            groups.append((low, high, [(start, end)]))
    return groups
