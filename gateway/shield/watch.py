"""Where in a text that has not ended a match may be under way. Knows the rules that matter, and keeps no text.

Theory of operation. A `Watch` looks out for the rules worth some number of points. An automaton finds how their
matches begin; at each such place the rule's own regex says whether it matched, and the one for beginnings (`partial`)
whether it still may. What no rule begins with in known letters (runs of letters and digits, lists of numbers, letters
apart, invisible characters) is told by its shape: while such a run goes on, it is held from its beginning, once it
no longer looks like a word.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from gateway.shield import automaton
from gateway.shield.layout import Brief
from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer, View
from gateway.shield.partial import beginnings, unfinished
from gateway.shield.plan import Plan

# How far before what is held the text is looked at: what stands behind a match's beginning, and a literal near it.
BEHIND_CHARS = 32
FAR_BEHIND_CHARS = 96
# So much of a run without a known beginning is held, and no more.
RUN_CHARS = 4_096
# A run so long may hide another text, which is then scanned for.
LONG_RUN_CHARS = 16
_LONG_PREFIX_CHARS = 12
_STRANGE_CHARS = 6
_HEAD_CHARS = 4
_WIDEST_GAP_CHARS = 4
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_TOKENS = _LETTERS + "+/_-="
RUN = _LETTERS + "!#$%&*+-./:;<=>@\\^_`|~"
_CODES = "0123456789abcdefABCDEFxXuU+ ,:;\r\n-.()/"
_BETWEEN = frozenset(" \t\r\n._-*|/,+~:;'\"=<>()[]{}")
_DIGIT = re.compile(r"(?<![0-9A-Za-z])[0-9+(]")
# A run that looks like a word of a language as yet: no digit, no sign inside it, no capital behind a small letter.
_WORD = re.compile(r"[^A-Za-z0-9%&\\]{0,3}([A-Za-z]?[a-z]{0,15})[.:;!>*`-]{0,3}")
_LONG_RUN = re.compile(f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS}}}")
_STRANGE = re.compile(
    f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS}}}|[0-9][0-9 ,:;.()/+-]{{8}}|[0-9][0-9a-fA-FxXuU+ ,:;\\r\\n-]{{14}}"
    "|(?<![A-Za-z0-9])(?:[A-Za-z0-9@$!][^A-Za-z0-9@$!]{1,4}){3}"
)
# How regexes begin that cannot match from inside a word on.
_AT_WORD = (r"\b", "(?<![A-Za-z", "(?<![a-z", "(?<![0-9A-Za-z", r"(?<![\w", r"(?<!(?<!\\)[A-Za-z", "(?<![^ ")
_AT_CAPITAL = "(?<![A-Z])(?<![a-z](?=[a-z]))"
_SQUASHED = bytes(48 if 48 <= byte < 58 else ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256))


class Outlook(NamedTuple):
    """What may still happen at the end of a text.

    live: place of the first character that may belong to an unfinished match. is_suspect: whether something that is
    still held before it may be a match.
    """

    live: int
    is_suspect: bool


class _Entry:
    """A rule that is watched: its regexes, compiled when its beginning is first met."""

    __slots__ = ("_source", "_unfinished", "_whole", "at_word", "on_text", "reach_chars")

    def __init__(self, plan: Plan, *, on_text: bool) -> None:
        self._source = plan.source
        self._whole: re.Pattern[str] | None = None
        self._unfinished: re.Pattern[str] | None = None
        self.on_text = on_text
        self.at_word = plan.source.startswith((*_AT_WORD, _AT_CAPITAL))
        self.reach_chars = plan.reach_chars

    def look(self, text: str, low: int, high: int) -> tuple[int, int]:
        """Return where a match that begins in low..high is under way, and where one is; each len(text) if none."""
        if self._whole is None or self._unfinished is None:
            self._whole = re.compile(self._source, re.ASCII)
            self._unfinished = re.compile(unfinished(self._source), re.ASCII)
        length = len(text)
        live = whole = length
        if high + self.reach_chars >= length:
            found = self._search(self._unfinished, text, max(low, length - self.reach_chars), high)
            live = found.start() if found else length
        found = self._search(self._whole, text, low, high)
        if found:
            whole = found.start()
        return live, whole

    def _search(self, regex: re.Pattern[str], text: str, low: int, high: int) -> re.Match[str] | None:
        if low == high:
            return regex.match(text, low)
        found = regex.search(text, low)
        return found if found and found.start() <= high else None


class _Leads:
    """Literals, and the rules they lead to: how far before a literal's last character a match begins."""

    __slots__ = ("_find", "_inside", "_leads", "_prefixes")

    def __init__(self, leads: dict[str, dict[tuple[_Entry, int, int], None]], *, native: bool | None) -> None:
        words = sorted(leads)
        self._leads = [
            (
                len(word) - 1,
                tuple((entry, low + len(word) - 1, high + len(word) - 1) for entry, low, high in leads[word]),
                all(entry.at_word for entry, _, _ in leads[word]) and word[0].isalnum(),
            )
            for word in words
        ]
        self._prefixes = _prefixes_of(words)
        # Those with which a match may begin inside a word.
        self._inside = _prefixes_of([word for word, lead in zip(words, self._leads, strict=True) if not lead[2]])
        self._find = automaton.build(words, native=native)[0]

    def begun(self, squashed: str, view: View | str, most: int) -> int:
        """Return how long the longest end of the text is that a literal begins with, `most` at most."""
        prefixes, inside = self._prefixes, self._inside
        most = min(most, len(squashed))
        for size in range(most if most < _LONG_PREFIX_CHARS else _LONG_PREFIX_CHARS, 0, -1):
            tail = squashed[-size:]
            if tail in prefixes and (tail in inside or not _is_inside(squashed, view, len(squashed) - size)):
                return size
        return 0

    def places(self, squashed: str, view: View | str) -> list[tuple[int, int, _Entry]]:
        """List where matches of which rules may begin: first and last place."""
        found = []
        final = len(squashed) - 1
        for last, index in self._find(squashed):
            if index < 0:
                continue
            size, leads, at_word = self._leads[index]
            if at_word and _is_inside(squashed, view, last - size):
                continue
            found += [(max(0, last - high), min(final, last - low), lead) for lead, low, high in leads if last >= low]
        return found


def _is_inside(letters: str, view: View | str, place: int) -> bool:
    """Say whether a place is inside a word, and no capital stands there."""
    if place == 0 or not letters[place - 1].isalnum():
        return False
    return not (view[place] if isinstance(view, str) else view.source[view.position(place)]).isupper()


def _prefixes_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:cut] for word in words for cut in range(1, len(word)))


class Watch:
    """Looks out for some rules. Holds nothing of any text; threads may share it."""

    __slots__ = ("_fold", "_heads", "_leads", "_short", "_tokens", "_unseen", "behind_chars", "most_chars")

    def __init__(self, rules: Iterable[tuple[Brief, Plan]], *, native: bool | None = None) -> None:
        """rules: those to look out for. native: as in `automaton.build`."""
        self._fold = Normalizer()
        leads: dict[str, dict[tuple[_Entry, int, int], None]] = {}
        tokens: dict[str, dict[tuple[_Entry, int, int], None]] = {}
        # How tokens begin, as they are written.
        heads: set[str] = set()
        self._unseen = ""
        self.most_chars = RUN_CHARS
        self.behind_chars = BEHIND_CHARS
        for brief, plan in rules:
            entry = _Entry(plan, on_text=brief.view == "text")
            self.most_chars = max(self.most_chars, plan.reach_chars)
            self._unseen += plan.first
            if plan.how == "tokens":
                heads.update(lead.literal[:_HEAD_CHARS] for lead in plan.leads)
            for literal, low, high in self._leads_of(plan):
                # A match that begins with a long token is looked at once that is complete: till then it is a run.
                is_token = plan.how == "tokens" or (entry.on_text and low < 0)
                (tokens if is_token else leads).setdefault(literal, {})[entry, low, high] = None
                if low < 0:
                    self.behind_chars = FAR_BEHIND_CHARS
        self._short = tuple(sorted(head for head in heads if len(head) < _HEAD_CHARS))
        self._heads = _prefixes_of(heads) | heads
        self._leads = _Leads(leads, native=native)
        self._tokens = _Leads(tokens, native=native)

    def _leads_of(self, plan: Plan) -> Iterable[tuple[str, int, int]]:
        """Return what leads to a plan's matches: a beginning if one is known, else a literal that stands further on."""
        begins: Iterable[str] = ()
        if plan.leads and not any(lead.low or lead.high for lead in plan.leads):
            begins = {lead.literal for lead in plan.leads}
        elif plan.starts:
            # Before the group stands what may come before a match.
            begins = beginnings(plan.starts[max(0, plan.starts.find("(?P<begin>")) :], self._letter)
        if not begins and plan.leads:
            begins = beginnings(plan.source, self._letter)
        if begins:
            folded = {squash_digits(self._fold.normalize(word).text) for word in begins}
            # White space at the edge of a match is no part of it that matters.
            bare = {(word.lstrip(" "), len(word) - len(word.lstrip(" "))) for word in folded}
            return [(word[:_LONG_PREFIX_CHARS], edge, edge) for word, edge in bare if word]
        return [
            (squash_digits(self._fold.normalize(lead.literal).text), lead.low, lead.high)
            for lead in plan.leads
            if lead.literal.strip()
        ]

    def _letter(self, char: str) -> str:
        return squash_digits(self._fold.fold_char(char))

    def outlook(self, text: str, start: int) -> Outlook:
        """Say what may still happen at the end of `text`, of which all before `start` is out already."""
        length = len(text)
        live = self._shapes(text, start)
        if text.isascii() and text.isprintable() and "  " not in text:
            # The normalized text is of the same length then, and hardly worth making.
            view = None
            squashed = text.encode("ascii").translate(_SQUASHED).decode("ascii")
        else:
            view = self._fold.normalize(text)
            squashed = squash_digits(view.text)
        tail = self._leads.begun(squashed, view or text, length - start)
        if tail:
            begin = len(squashed) - tail
            live = min(live, view.position(begin) if view else begin)
        places = self._leads.places(squashed, view or text)
        if length - start >= LONG_RUN_CHARS and _LONG_RUN.search(text, start):
            places += self._tokens.places(squashed, view or text)
        if not places:
            live = max(live, start)
            return Outlook(live, live - start >= _STRANGE_CHARS and self._is_strange(text, start, live))
        return self._weighed(text, view or self._fold.normalize(text), places, start, live)

    def _weighed(self, text: str, view: View, places: list[tuple[int, int, _Entry]], start: int, live: int) -> Outlook:
        """Ask the rules that may match somewhere."""
        length, letters = len(text), view.text
        wholes = []
        for first, final, entry in places:
            if entry.on_text:
                under_way, whole = entry.look(text, view.position(first), view.position(final))
            else:
                under_way, whole = entry.look(letters, first, final)
                under_way = view.position(under_way) if under_way < len(letters) else length
                whole = view.position(whole) if whole < len(letters) else length
            live = min(live, under_way)
            wholes.append(whole)
        live = max(live, start)
        return Outlook(live, any(start <= whole < live for whole in wholes) or self._is_strange(text, start, live))

    def _shapes(self, text: str, start: int) -> int:
        """Return where the runs begin that have no known beginning, and with which the text ends."""
        length = len(text)
        run = len(text.rstrip(RUN))
        live = run
        word = _WORD.fullmatch(text, run)
        if word and word[1][:_HEAD_CHARS] not in self._heads and not word[1].startswith(self._short):
            live = length
        if text[run - 1 : run] == "\n":
            live = min(live, _first_line(text, run))
        codes = len(text.rstrip(_CODES))
        if codes < live:
            digit = _DIGIT.search(text, codes, live)
            live = digit.start() if digit else live
        live = min(live, _letters_apart(text, run))
        if self._unseen:
            live = min(live, len(text.rstrip(self._unseen)))
        # In steps of half the bound, so that what goes out is scanned with what came before it and no oftener.
        return live if length - live <= RUN_CHARS else length - RUN_CHARS // 2

    def _is_strange(self, text: str, start: int, live: int) -> bool:
        if _STRANGE.search(text, start, live):
            return True
        return not text.isascii() and any(char in self._unseen for char in text[start:live])


def _first_line(text: str, at: int) -> int:
    """Return where the first of the lines begins that one code is written in, one of which ended before `at`."""
    least = max(0, at - RUN_CHARS)
    while at > least and text[at - 1] == "\n":
        line = text[text.rfind("\n", 0, at - 1) + 1 : at - 1].removesuffix("\r")
        code = len(line) - len(line.rstrip(_TOKENS))
        if code < LONG_RUN_CHARS:
            break
        at -= 1 + code + (text[at - 2 : at - 1] == "\r")
    return at


def _letters_apart(text: str, run: int) -> int:
    """Return where the single letters begin that stand apart at the end of the text, the last of them at `run`."""
    place = run if len(text) - run <= 1 else len(text)
    least = max(0, place - RUN_CHARS)
    while True:
        letter = place - 1
        while letter > least and text[letter] in _BETWEEN and place - letter <= _WIDEST_GAP_CHARS:
            letter -= 1
        if letter < least or letter == place - 1 or not text[letter].isalnum():
            return place
        if letter and text[letter - 1] not in _BETWEEN:
            return place
        place = letter
