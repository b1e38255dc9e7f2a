"""The rules that a stream is watched for: their literals, and what each says of a text under way. Keeps no text.

Theory of operation. A lead goes from a literal to a rule, as in the matcher. Where the literal stands, the ways through
the rule's regex (`ways`) say whether a match is under way; when one is through, the regex says whether it matched.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import NamedTuple

from gateway.shield import automaton
from gateway.shield.partial import BEGINNING_CHARS, is_at_edge
from gateway.shield.program import read
from gateway.shield.regexes import compile_regex
from gateway.shield.ways import Room, Way, Ways

# From Thai on scripts have no blanks between words, mostly.
SPACELESS = "\u0e00"
# A longer stretch of anything in a match is a gap.
GAP_CHARS = 16
# So many letters of one inside a word tell that it may have begun there.
INNER_CHARS = 3
# So many letters tell whether a literal may have begun.
KEPT_CHARS = BEGINNING_CHARS - 1

_WORDS_A_STEP = 1_000

Compiled = Callable[[str], re.Pattern[str]]
Find = automaton.Find


class Entry:
    """A rule that is watched: the ways through its regex, and the regex itself, made when they are first needed.

    is_patient: what stands before a gap is not held. on_text: it reads the text as sent, else the normalized one.
    """

    __slots__ = (
        "_compiled", "_is_edge", "_parts", "_rests", "_room", "_source", "_ways", "is_patient", "on_text",
        "reach_chars",
    )  # fmt: skip

    def __init__(
        self,
        source: str,
        reach_chars: int,
        room: Room,
        *,
        on_text: bool,
        is_patient: bool,
        compiled: Compiled = compile_regex,
    ) -> None:
        """source: the rule's regex. room: for its ways. compiled: gives it, and others of its plan, ready to be run."""
        self._source = source
        self._room = room
        self._compiled = compiled
        self._is_edge: bool | None = None
        self._ways: Ways | None = None
        self._rests: dict[str, Ways] = {}
        self._parts: dict[str, re.Pattern[str]] = {}
        self.is_patient = is_patient
        self.on_text = on_text
        self.reach_chars = reach_chars

    @property
    def is_edge(self) -> bool:
        """Whether no letter of the same word can stand before a match."""
        if self._is_edge is None:
            self._is_edge = is_at_edge(self._source)
        return self._is_edge

    @property
    def ways(self) -> Ways:
        """The ways through the regex."""
        ways = self._ways
        if ways is None:
            gap_chars = GAP_CHARS if self.is_patient else None
            ways = self._ways = Ways(read(self._source, gap_chars=gap_chars), self._room)
        return ways

    def ways_of(self, rest: str) -> Ways:
        """Return the ways through what must come after a literal; through the whole regex, if that is nothing."""
        if not rest:
            return self.ways
        ways = self._rests.get(rest)
        if ways is None:
            ways = self._rests[rest] = Ways(read(rest), self._room)
        return ways

    def goes_on(self, rest: str, text: str, place: int) -> bool:
        """Say whether what must come after a literal may stand at a place, or come yet."""
        way = self.ways_of(rest).none.joined(text[place - 1 : place] if place else "")
        for char in text[place:]:
            if way.is_whole or not way.steps:
                break
            way = way[char]
        return bool(way.steps)

    def comes_from(self, back: str, text: str, low: int, place: int) -> bool:
        """Say whether what must come before a literal at a place stands there, from `low` on."""
        return self._part(back).match(text[max(0, low - 1) : place + 1][::-1], 1) is not None

    def whole(self, text: str, low: int, high: int) -> tuple[int, int] | None:
        """Return the span of the first match that begins in low..high."""
        regex = self._part(self._source)
        found = regex.match(text, low) if low == high else regex.search(text, low)
        return found.span() if found and found.start() <= high else None

    def _part(self, source: str) -> re.Pattern[str]:
        regex = self._parts.get(source)
        if regex is None:
            regex = self._parts[source] = self._compiled(source)
        return regex


class Lead(NamedTuple):
    """A way from a literal to a rule; low, high, rest and back as in `literals.Lead`.

    is_edge: whether no letter of the same word can stand before it; None if the entry tells. is_held: whether its
    letters are held while they come in; they are not when a match reports only what comes after them, or is held for
    its shape. is_inner: whether they are held inside a word, too.
    """

    entry: Entry
    low: int
    high: int
    rest: str
    back: str
    is_edge: bool | None
    is_held: bool
    is_inner: bool

    def way(self, literal: str) -> Way | None:
        """Return the ways behind the literal, whatever stands before it; None if they do not tell whether to follow."""
        if self.entry.on_text or (self.low or self.high if not self.rest else False):
            return None
        way = self.entry.ways_of(self.rest).anywhere
        for char in literal:
            after = way[char]
            if char in way.branches:
                return None
            way = after
        return way


# A lead that was met, and how many letters there are from the beginning of its literal on.
Hit = tuple[int, Lead]


class Leads:
    """Literals, and the rules they lead to.

    led: where each literal leads. find: finds them. prefixes: what one may have begun with where a word begins; held:
    one that is held; inside: within a word too; blank_prefixes: what those have begun with that begin with a blank.
    """

    __slots__ = ("_at_words", "_words", "blank_prefixes", "find", "held", "inside", "led", "prefixes")

    def __init__(
        self,
        led: Mapping[str, tuple[Lead, ...]],
        find: Find,
        *,
        prefixes: frozenset[str],
        blank_prefixes: frozenset[str],
        held: frozenset[str],
        inside: frozenset[str],
    ) -> None:
        """led: in the order of the words that `find` knows."""
        self._words = list(led)
        self._at_words: dict[str, bool] = {}
        self.led = led
        self.find = find
        self.prefixes = prefixes
        self.blank_prefixes = blank_prefixes
        self.held = held
        self.inside = inside

    @classmethod
    def making(cls, led: Mapping[str, Iterable[Lead]], *, native: bool | None) -> Generator[None, None, "Leads"]:
        """Make leads in steps. native: as in `automaton.build`."""
        words = sorted(led)
        yield
        find = automaton.build(words, native=native)[0]
        yield
        leads: dict[str, tuple[Lead, ...]] = {}
        held: list[str] = []
        # Those that are held inside a word too: a sign begins one.
        inside: list[str] = []
        for number, word in enumerate(words, 1):
            leads[word] = tuple(led[word])
            of_held = [lead for lead in leads[word] if lead.is_held]
            if of_held:
                held.append(word)
                is_sign = not (word[0].isalnum() or word[0] == " ")
                if is_sign or any(lead.is_inner for lead in of_held):
                    inside.append(word)
            if not number % _WORDS_A_STEP:
                yield
        yield
        return cls(
            leads,
            find,
            # A blank before a word is not held itself.
            prefixes=(yield from _prefixes_of(word.lstrip(" ") for word in words)),
            blank_prefixes=(yield from _prefixes_of(word for word in words if word.startswith(" "))),
            held=(yield from _prefixes_of(word.lstrip(" ") for word in held)),
            inside=(yield from _prefixes_of(inside)),
        )

    def is_at_word(self, word: str) -> bool:
        """Say whether a literal is looked at only where a word begins."""
        known = self._at_words.get(word)
        if known is None:
            known = self._at_words[word] = word[0].isalnum() and all(
                lead.entry.is_edge if lead.is_edge is None else lead.is_edge for lead in self.led[word]
            )
        return known

    def hits(self, letters: str, found: Iterable[tuple[int, int]], is_capital: Callable[[int], bool]) -> list[Hit]:
        """List the leads of the literals that were found in some letters.

        is_capital: says whether a letter was written as a capital, which may begin a word inside another.
        """
        hits: list[Hit] = []
        for last, index in found:
            word = self._words[index]
            place = last + 1 - len(word)
            is_inside = place and letters[place - 1].isalpha()
            if not (is_inside and self.is_at_word(word)) or is_capital(place):
                hits += [(len(letters) - place, lead) for lead in self.led[word]]
        return hits


def _prefixes_of(words: Iterable[str]) -> Generator[None, None, frozenset[str]]:
    found: set[str] = set()
    for number, word in enumerate(words, 1):
        for cut in range(len(word) - 1, 0, -1):
            prefix = word[:cut]
            if prefix in found:
                # So are all that are shorter.
                break
            found.add(prefix)
        if not number % _WORDS_A_STEP:
            yield
    return frozenset(found)
