"""Where in a text that has not ended a match may be under way. Knows the rules that matter, and keeps no text.

Theory of operation. A `Watch` looks out for the rules worth some number of points. An automaton finds how their
matches begin, in what is held and what came anew: what a literal may begin with is always held. At each such place the
rule's own regex says whether it matched, and the one for beginnings (`partial`) whether it still may. What no rule
begins with in known letters is told by its shape (`runs`). A piece of plain words in which nothing begins costs one
regex, one search by the automaton and a few questions to a set.

In a prompt, rules of words are patient: of a match that takes anything for more than GAP_CHARS, what stands before that
gap is not held. What such matches begin with ("show me", "pretend") stands in every text, and is no order by itself.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from gateway.shield import automaton
from gateway.shield.detections import Direction
from gateway.shield.layout import Brief
from gateway.shield.literals import Lead, squash_digits
from gateway.shield.normalize import Normalizer, View
from gateway.shield.partial import beginnings, unfinished
from gateway.shield.plan import Plan
from gateway.shield.redact import MASKED_CATEGORIES
from gateway.shield.runs import HEAD_CHARS, RUN_CHARS, Runs, is_long

# How far before what is held the text is looked at, beside what a literal's lead says.
BEHIND_CHARS = 32
# A longer stretch of anything in a match is a gap.
GAP_CHARS = 16
_LONG_PREFIX_CHARS = 12
# From Thai on scripts have no blanks between words, mostly.
_SPACELESS = "\u0e00"
# How regexes begin that cannot match from inside a word on.
_AT_WORD = (r"\b", "(?<![A-Za-z", "(?<![a-z", "(?<![0-9A-Za-z", r"(?<![\w", r"(?<!(?<!\\)[A-Za-z", "(?<![^ ")
_AT_CAPITAL = "(?<![A-Z])(?<![a-z](?=[a-z]))"


class Cursor:
    """Where a stream stands in its text.

    out: all before is out. since: where the literals begin that are to be looked at again. begin: where a word begins,
    before which no run goes on. is_suspect: whether something that is held, and need not be any more, may be a match.
    final: where the last match ends that was seen and cannot change.
    """

    __slots__ = ("begin", "final", "is_suspect", "out", "since")

    def __init__(self) -> None:
        self.out = self.since = self.begin = self.final = 0
        self.is_suspect = False

    def move(self, chars: int) -> None:
        """Follow a text that has lost some characters at its beginning."""
        self.out -= chars
        self.since -= chars
        self.begin = max(0, self.begin - chars)
        self.final = max(0, self.final - chars)


class _Seen(NamedTuple):
    """What a rule says of a text. live: where a match is under way and held; the text's length if none is.

    is_begun: whether one is under way, be it in its gap. start, end: of a match that is whole; 0 if there is none.
    """

    live: int
    is_begun: bool
    start: int
    end: int


class _Entry:
    """A rule that is watched: its regexes, compiled when its beginning is first met."""

    __slots__ = ("_parts", "_source", "_unfinished", "_whole", "at_word", "is_patient", "on_text", "reach_chars")

    def __init__(self, plan: Plan, *, on_text: bool, is_patient: bool) -> None:
        self._source = plan.source
        self._whole: re.Pattern[str] | None = None
        self._unfinished: re.Pattern[str] | None = None
        self._parts: dict[str, tuple[re.Pattern[str], ...]] = {}
        self.is_patient = is_patient
        self.on_text = on_text
        self.at_word = plan.source.startswith((*_AT_WORD, _AT_CAPITAL))
        self.reach_chars = plan.reach_chars

    def goes_on(self, rest: str, text: str, place: int) -> bool:
        """Say whether what must come after a literal stands at a place, or may yet."""
        regexes = self._parts.get(rest)
        if regexes is None:
            regexes = self._parts[rest] = re.compile(rest, re.ASCII), re.compile(unfinished(rest), re.ASCII)
        return any(regex.match(text, place) for regex in regexes)

    def comes_from(self, back: str, text: str, low: int, place: int) -> bool:
        """Say whether what must come before a literal at a place stands there, from `low` on."""
        regexes = self._parts.get(back)
        if regexes is None:
            regexes = self._parts[back] = (re.compile(back, re.ASCII),)
        return regexes[0].match(text[max(0, low - 1) : place + 1][::-1], 1) is not None

    def look(self, text: str, low: int, high: int) -> _Seen:
        """Look for matches that begin in low..high."""
        if self._whole is None or self._unfinished is None:
            self._whole = re.compile(self._source, re.ASCII)
            self._unfinished = re.compile(
                unfinished(self._source, gap_chars=GAP_CHARS if self.is_patient else None), re.ASCII
            )
        length = len(text)
        begun = None
        if high + self.reach_chars >= length:
            begun = self._search(self._unfinished, text, max(low, length - self.reach_chars), high)
        live = min((start for start, _ in begun.regs[1:] if start >= 0), default=begun.start()) if begun else length
        whole = self._search(self._whole, text, low, high)
        return _Seen(live, begun is not None, *(whole.span() if whole else (0, 0)))

    def _search(self, regex: re.Pattern[str], text: str, low: int, high: int) -> re.Match[str] | None:
        if low == high:
            return regex.match(text, low)
        found = regex.search(text, low)
        return found if found and found.start() <= high else None


class _Lead(NamedTuple):
    """A way from a literal to a rule; low, high, rest and back as in `Lead`."""

    entry: _Entry
    low: int
    high: int
    rest: str
    back: str


class _Hit(NamedTuple):
    """A lead that was met. place: of its literal in the text that was read. behind: how far before its end."""

    place: int
    behind: int
    lead: _Lead


class _Leads:
    """Literals, and the rules they lead to."""

    __slots__ = ("_inside", "_leads", "_prefixes", "find")

    def __init__(self, led: dict[str, dict[_Lead, None]], *, native: bool | None) -> None:
        words = sorted(led)
        # How long a literal is, where it leads, and whether it is looked at only where a word begins.
        self._leads = [
            (len(word), tuple(led[word]), all(lead.entry.at_word for lead in led[word]) and word[0].isalnum())
            for word in words
        ]
        self._prefixes = _prefixes_of(words)
        # Those that are held inside a word too: a sign begins one, and patient rules are about words.
        self._inside = _prefixes_of(
            [
                word
                for word in words
                if not word[0].isalnum() or not all(lead.entry.is_patient or lead.entry.at_word for lead in led[word])
            ]
        )
        self.find = automaton.build(words, native=native)[0]

    def begun(self, letters: str, before: str, view: View | None = None) -> tuple[int, int]:
        """Return from where on a literal may have begun that the letters end with, and from where on they are held.

        Each is the number of letters if there is none. before: the character before them, if any. view: what they were
        made from; not needed for plain words, which have no capital inside.
        """
        prefixes, inside = self._prefixes, self._inside
        size = first = len(letters)
        for place in range(size - _LONG_PREFIX_CHARS if size > _LONG_PREFIX_CHARS else 0, size):
            tail = letters[place:]
            if tail in prefixes:
                if first == size:
                    first = place
                if tail[0] == " ":
                    # A blank before a word is not held itself.
                    if place + 1 < size:
                        return first, place + 1
                    continue
                if tail in inside or tail[0] >= _SPACELESS or not (letters[place - 1] if place else before).isalnum():
                    return first, place
                if view and view.source[view.position(place)].isupper():
                    return first, place
        return first, size

    def hits(self, letters: str, before: str, view: View) -> list[_Hit]:
        """List which rules' literals stand in the letters, if what must come after them does, or may yet."""
        found = []
        for last, index in self.find(letters):
            if index < 0:
                continue
            size, leads, at_word = self._leads[index]
            place = last + 1 - size
            at = view.position(place)
            if at_word and (letters[place - 1] if place else before).isalnum() and not view.source[at].isupper():
                continue
            behind = len(letters) - place
            for lead in leads:
                entry, rest = lead.entry, lead.rest
                where = (view.source, at) if entry.on_text else (view.text, place)
                if not rest or entry.goes_on(rest, *where):
                    found.append(_Hit(at, behind, lead))
        return found


def _prefixes_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:cut] for word in words for cut in range(1, len(word)))


class Watch:
    """Looks out for some rules. Holds nothing of any text; threads may share it."""

    __slots__ = ("_fold", "_leads", "_runs", "_tokens", "most_chars")

    def __init__(
        self, rules: Iterable[tuple[Brief, Plan]], direction: Direction, *, native: bool | None = None
    ) -> None:
        """rules: those to look out for. direction: of the text. native: as in `automaton.build`."""
        self._fold = Normalizer()
        leads: dict[str, dict[_Lead, None]] = {}
        tokens: dict[str, dict[_Lead, None]] = {}
        # How tokens begin, as they are written.
        heads: set[str] = set()
        unseen = ""
        self.most_chars = RUN_CHARS
        for brief, plan in rules:
            is_patient = direction is Direction.INBOUND and brief.category not in MASKED_CATEGORIES
            entry = _Entry(plan, on_text=brief.view == "text", is_patient=is_patient)
            self.most_chars = max(self.most_chars, plan.reach_chars)
            unseen += plan.first
            if plan.how == "tokens":
                heads.update(lead.literal[:HEAD_CHARS] for lead in plan.leads)
            for lead in self._leads_of(plan, is_patient=is_patient):
                # A match that begins with a long token is looked at once that is complete: till then it is a run.
                is_token = plan.how == "tokens" or (entry.on_text and lead.low < 0)
                led = (tokens if is_token else leads).setdefault(lead.literal, {})
                led[_Lead(entry, lead.low, lead.high, lead.rest, lead.back)] = None
        self._runs = Runs(heads, unseen)
        self._leads = _Leads(leads, native=native)
        self._tokens = _Leads(tokens, native=native)

    def _leads_of(self, plan: Plan, *, is_patient: bool) -> Iterable[Lead]:
        """Return what leads to a plan's matches: a beginning if one is known, else a literal that stands further on."""
        begins: Iterable[str] = ()
        waits = is_patient and any(lead.high - lead.low > GAP_CHARS for lead in plan.leads)
        if waits:
            pass
        elif plan.leads and not any(lead.low or lead.high for lead in plan.leads):
            begins = {lead.literal for lead in plan.leads}
        elif plan.starts:
            # Before the group stands what may come before a match.
            begins = beginnings(plan.starts[max(0, plan.starts.find("(?P<begin>")) :], self._letter)
        if not begins and plan.leads and not waits:
            begins = beginnings(plan.source, self._letter)
        told = map(self._bare, begins) if begins else map(self._folded, plan.leads)
        return {lead for lead in told if lead.literal}

    def _bare(self, beginning: str) -> Lead:
        """White space at the edge of a match is no part of it that matters."""
        folded = squash_digits(self._fold.normalize(beginning).text)
        bare = folded.lstrip(" ")
        edge = len(folded) - len(bare)
        return Lead(bare[:_LONG_PREFIX_CHARS], edge, edge)

    def _folded(self, lead: Lead) -> Lead:
        return replace(lead, literal=squash_digits(self._fold.normalize(lead.literal).text))

    def _letter(self, char: str) -> str:
        return squash_digits(self._fold.fold_char(char))

    def live(self, text: str, at: Cursor) -> int:
        """Return where the first character is that may belong to a match under way at the end of a text.

        Leads the cursor on, but for `out`.
        """
        plain = self._runs.plain(text, at.begin)
        if plain is None:
            return self._asked(text, at)
        leads = self._leads
        letters = text[at.since :].lower()
        if "\n" in letters:
            letters = letters.replace("\n\n", " ").replace("\n", " ")
        if leads.find(letters):
            return self._asked(text, at)
        # A blank may stand for a line's end and an empty line: places are counted from the end.
        away = len(text) - len(letters)
        known, held = leads.begun(letters, text[at.since - 1 : at.since])
        at.begin, live = plain
        at.since = away + known
        at.is_suspect = False
        held += away
        if held < live:
            live = held
        return live if live > at.out else at.out

    def _asked(self, text: str, at: Cursor) -> int:
        """Do the same for a text of any kind."""
        out, since, length = at.out, at.since, len(text)
        low = max(0, out - BEHIND_CHARS)
        runs = self._runs.live(text[low:]) + low
        view = self._fold.normalize(text[since:])
        letters = squash_digits(view.text)
        before = text[since - 1 : since]
        known, held = self._leads.begun(letters, before, view)
        again = live = length
        if known < len(letters):
            again = since + view.position(known)
            live = since + view.position(held) if held < len(letters) else length
        hits = self._leads.hits(letters, before, view)
        if is_long(text, out):
            hits += self._tokens.hits(letters, before, view)
        live = min(live, runs)
        is_whole = False
        if hits:
            place, live, is_whole = self._weighed(text, at, hits, live)
            again = min(again, place)
        live = max(live, out)
        at.since = again = min(again, live)
        at.begin = min(runs, again, max(text.rfind(" "), text.rfind("\n")) + 1)
        at.is_suspect = is_whole or self._runs.is_strange(text, out, live)
        return live

    def _weighed(self, text: str, at: Cursor, hits: list[_Hit], live: int) -> tuple[int, int, bool]:
        """Ask the rules that may match somewhere.

        Return which literal is to be looked at again, what is live, and whether a match ends before that.
        """
        out, since = at.out, at.since
        low = max(0, since - BEHIND_CHARS - max(hit.lead.high for hit in hits))
        view = self._fold.normalize(text[low:])
        letters = view.text
        again, wholes = len(text), []
        for place, behind, (entry, least, most, _, back) in hits:
            spot = len(letters) - behind
            first, final = max(0, spot - most), min(len(letters) - 1, spot - least)
            if final < 0:
                continue
            subject = view.source if entry.on_text else letters
            if entry.on_text:
                spot, first, final = map(view.position, (spot, first, final))
            if back and not entry.comes_from(back, subject, first, spot):
                continue
            seen = entry.look(subject, first, final)
            if seen.is_begun:
                again = min(again, since + place)
            if seen.live < len(subject):
                live = min(live, low + (seen.live if entry.on_text else view.position(seen.live)))
            if 0 < seen.end <= seen.live:
                start, end = (seen.start, seen.end) if entry.on_text else view.span(seen.start, seen.end)
                wholes.append((low + start, low + end))
        live = max(live, out)
        known = max(out, at.final)
        at.final = max([end for start, end in wholes if start < live], default=known)
        return again, live, at.final > known
