"""Where in a text that has not ended a match may be under way. Knows the rules that matter, and keeps no text.

Theory of operation. A `Watch` looks out for the rules worth some number of points. What a literal of one may begin with
is held from its first letter on; where a literal stands, the ways through its rules are gone, letter by letter, until
none is left. What no rule begins with in known letters is told by its shape (`runs`). Two machines tell what is held
after each letter (`steps`), and when a rule or the shape must be asked. Where they are lost, all that came since the
last look is normalized, and an automaton finds the literals in it.

In a prompt, rules of words are patient: of a match that takes anything for more than GAP_CHARS, what stands before that
gap is not held. What such matches begin with ("show me", "pretend") stands in every text, and is no order by itself.
"""

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple

from gateway.shield.cursor import BEHIND_CHARS, Cursor, Open, Spot
from gateway.shield.detections import Direction
from gateway.shield.layout import Brief
from gateway.shield.listed import Lister
from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer, View
from gateway.shield.plan import Plan
from gateway.shield.redact import MASKED_CATEGORIES
from gateway.shield.runs import HEAD_CHARS, RUN_CHARS, Runs, is_long
from gateway.shield.steps import Beginnings, Met, Pairs, Shapes, State
from gateway.shield.watched import KEPT_CHARS, SPACELESS, Compiled, Entry, Hit, Lead, Leads
from gateway.shield.ways import Room

# So many sets of ways, and steps from one to another, are remembered.
MOST_WAYS = 24_576


class Reach(NamedTuple):
    """How far back a watch looks, as `Watch` says."""

    most_chars: int
    behind_chars: int


class Watch:
    """Looks out for some rules. Holds nothing of any text; threads may share it.

    most_chars: the most that is held. behind_chars: how far before what is held a match may begin. shapes,
    beginnings, both in pairs: tell what is held while no rule need be asked. is_strange: as in `Runs`.
    """

    __slots__ = (
        "_fold",
        "_leads",
        "_runs",
        "_tokens",
        "beginnings",
        "behind_chars",
        "is_strange",
        "most_chars",
        "pairs",
        "shapes",
    )

    def __init__(self, fold: Normalizer, runs: Runs, leads: Leads, tokens: Leads, reach: "Reach") -> None:
        """leads, tokens: where literals lead, and long tokens, which are runs till they are complete."""
        self._fold = fold
        self._runs = runs
        self._leads = leads
        self._tokens = tokens
        self.most_chars, self.behind_chars = reach
        self.is_strange = runs.is_strange
        self.shapes, self.beginnings = Shapes(runs), Beginnings(leads, fold)
        self.pairs = Pairs(self.shapes, self.beginnings)

    @classmethod
    def making(
        cls,
        rules: Iterable[tuple[Brief, Plan, Compiled]],
        direction: Direction,
        *,
        native: bool | None = None,
    ) -> Generator[None, None, "Watch"]:
        """Make a watch in steps of a few milliseconds.

        rules: those to look out for, each with what compiles its regexes. native: as in `automaton.build`.
        """
        fold, room = Normalizer(), Room(MOST_WAYS)
        lister = Lister(fold)
        leads: dict[str, dict[Lead, None]] = {}
        tokens: dict[str, dict[Lead, None]] = {}
        # How tokens begin, as they are written.
        heads: set[str] = set()
        unseen, reach = "", Reach(RUN_CHARS, BEHIND_CHARS)
        for brief, plan, compiled in rules:
            is_masked, on_text = brief.category in MASKED_CATEGORIES, brief.view == "text"
            is_patient = direction is Direction.INBOUND and not is_masked
            entry = Entry(
                plan.source, plan.reach_chars, room, on_text=on_text, is_patient=is_patient, compiled=compiled
            )
            unseen += plan.first
            is_head = plan.how == "tokens" and not any(lead.low for lead in plan.leads)
            if is_head:
                heads.update(lead.literal[:HEAD_CHARS] for lead in plan.leads)
            behind_chars = reach.behind_chars
            for literal, lead in lister.leads_of(plan, entry, is_masked=is_masked):
                # A match that begins with a long token is looked at once that is complete: till then it is a run.
                is_token = is_head or (on_text and lead.low < 0)
                (tokens if is_token else leads).setdefault(literal, {})[lead] = None
                behind_chars = max(behind_chars, BEHIND_CHARS + lead.high)
            reach = Reach(max(reach.most_chars, plan.reach_chars), behind_chars)
            yield
        found = yield from Leads.making(leads, native=native)
        long = yield from Leads.making(tokens, native=native)
        return cls(fold, Runs(heads, unseen), found, long, reach)

    def live(self, text: str, at: Cursor) -> int:
        """Return where the first character is that may belong to a match under way at the end of a text.

        Leads the cursor on, but for `out`.
        """
        length = len(text)
        view = self._fold.normalize(text[at.seen :])
        # Blanks that meet at an edge are one.
        met = at.folded.endswith(" ") and view.text.startswith(" ")
        folded = view.text[met:]
        letters = at.letters + squash_digits(folded)
        size, old = len(letters), len(at.letters)
        base = at.seen

        def written(place: int) -> int:
            return base + view.position(place - old + met)

        def is_capital(place: int) -> bool:
            return place >= old and text[written(place)].isupper()

        at.begun = [
            (place, count + size - old) for place, count in at.begun if letters[old - count :] in self._leads.prefixes
        ]
        at.begun += [
            (written(place), size - place)
            for place in range(max(old, size - KEPT_CHARS), size)
            if letters[place:] in self._leads.prefixes and self._is_begun(letters, place, is_capital)
        ]
        at.folded += folded
        at.letters = letters[-KEPT_CHARS:]
        at.seen = length
        at.begun.sort()
        live = min((place for place, count in at.begun if letters[size - count :] in self._leads.held), default=length)
        found = [one for one in self._leads.find(letters) if one[0] >= old and one[1] >= 0]
        hits = self._leads.hits(letters, found, is_capital)
        at.is_suspect = False
        if hits or at.opens:
            live = self._weighed(text, at, hits, live, size)
        return self._shaped(text, at, live)

    def shaped(self, text: str, at: Cursor, met: Iterable[tuple[int, Met]], begun: State) -> int:
        """Return what is live of a text of which the machines do not tell the shape. met, begun: as in `weighed`."""
        return self._shaped(text, at, self.weighed(text, at, met, begun, len(text) - begun.held_chars))

    def _shaped(self, text: str, at: Cursor, live: int) -> int:
        """Return what is live for its shape, or is by what is known."""
        out = at.out
        low = max(0, out - BEHIND_CHARS)
        runs = self._runs.live(text[low:]) + low
        live = min(live, runs)
        if is_long(text, out):
            live = self._long(text, at, low, live)
        live = max(live, out)
        at.begin = min(runs, max(text.rfind(" "), text.rfind("\n")) + 1)
        at.is_suspect = at.is_suspect or self._runs.is_strange(text, out, live)
        return live

    def weighed(self, text: str, at: Cursor, met: Iterable[tuple[int, Met]], begun: State, live: int) -> int:
        """Return what is live of a text of which the machines tell all but what the rules say.

        met: the literals that were complete since it was looked at, each with how many letters came after it. live:
        what is for the machines.
        """
        fresh = text[at.seen :]
        folded = fresh.replace("\n", " ").lower()
        if not (folded.isascii() and folded.isprintable()) or "  " in folded:
            folded = self._fold.normalize(fresh).text
        # Blanks that meet at an edge are one.
        at.folded += folded[1:] if folded[:1] == " " == at.folded[-1:] else folded
        at.letters = squash_digits(at.folded[-KEPT_CHARS:])
        at.seen, at.is_suspect = len(text), False
        at.begun = [(at.seen - one.chars, one.letters) for one in begun.begun]
        size = len(at.folded)
        hits = [Hit(size - after - one.size, lead) for after, one in met for lead in one.leads]
        return self._weighed(text, at, hits, live, size) if hits or at.opens else max(live, at.out)

    def first_open(self, text: str, at: Cursor) -> int:
        """Return where the text begins that the rules read of which a match is under way."""
        folded = at.folded
        spots = (one.spot for one in at.opens)
        firsts = (one.first if one.entry.on_text else self._written(text, folded, one.first) for one in spots)
        return min(firsts, default=len(text)) - BEHIND_CHARS

    def _is_begun(self, letters: str, place: int, is_capital: Callable[[int], bool]) -> bool:
        """Say whether a literal that may begin at a place, for its letters, may do so for what stands before."""
        tail = letters[place:]
        if not place or not letters[place - 1].isalpha() or tail[0] >= SPACELESS or tail in self._leads.inside:
            return True
        return is_capital(place)

    def _long(self, text: str, at: Cursor, low: int, live: int) -> int:
        """Ask the rules for long tokens, one of which is under way; return what is live."""
        view = self._fold.normalize(text[low:])
        letters = squash_digits(view.text)
        is_capital = lambda place: view.source[view.position(place)].isupper()  # noqa: E731
        # Those that end earlier were asked before: if a match is under way, it is open.
        known, at.tokens = at.tokens - low, len(text)
        found = [one for one in self._tokens.find(letters) if one[1] >= 0 and view.position(one[0]) >= known]
        if not found:
            return live
        hits = self._tokens.hits(letters, found, is_capital)
        places = [Hit(len(at.folded) - len(letters) + place, lead) for place, lead in hits]
        return self._weighed(text, at, places, live, len(at.folded))

    def _weighed(self, text: str, at: Cursor, hits: list[Hit], live: int, size: int) -> int:
        """Ask the rules of which matches are under way or may begin, and return what is live.

        size: of the letters that the hits were found in, which are the last of the text.
        """
        folded = at.folded
        asked = {one.spot: one for one in at.opens}
        for place, (entry, least, most, rest, back, *_) in hits:
            spot = len(folded) - size + place
            first, last = max(0, spot - most), spot - least
            if last < 0:
                continue
            subject = folded
            if entry.on_text:
                subject = text
                spot, first = self._written(text, folded, spot), self._written(text, folded, first)
                last = self._written(text, folded, last) if least >= 0 else spot - least
            known = Spot(entry, first, last)
            if known in asked or (rest and not entry.goes_on(rest, subject, spot)):
                continue
            if not back or entry.comes_from(back, subject, first, spot):
                asked[known] = Open(known)
        opens: list[Open] = []
        wholes: list[tuple[Open, int, int]] = []
        begun = len(folded)
        for one in asked.values():
            entry, first, last = one.spot
            subject = text if entry.on_text else folded
            held, is_begun = one.read_on(subject)
            if is_begun:
                opens.append(one)
            if entry.on_text:
                live = min(live, held)
            else:
                begun = min(begun, held)
            if one.is_ripe and held > first:
                span = entry.whole(subject, first, last)
                one.is_ripe = span is not None
                if span and span[1] <= held:
                    wholes.append((one, *span))
        if begun < len(folded):
            live = min(live, self._written(text, folded, begun))
        live = max(live, at.out)
        known_end = final = max(at.out, at.final)
        for one, start, end in wholes:
            if not one.spot.entry.on_text:
                start, end = self._written(text, folded, start), self._written(text, folded, end - 1) + 1
            if start < live:
                final = max(final, end)
            elif one not in opens:
                # It is held for another match, and must be seen again when that is none.
                opens.append(one)
        at.opens, at.final = opens, final
        at.is_suspect |= final > known_end
        return live

    def _written(self, text: str, folded: str, place: int) -> int:
        """Return where in the text a character of the normalized text comes from."""
        ahead = len(folded) - place
        low = len(text)
        tail = text[low - ahead :] if ahead <= low else ""
        if tail.isascii() and tail.lower().replace("\n", " ") == folded[place:] and "  " not in folded[place:]:
            return low - ahead
        while low:
            low = max(0, min(low - 1, len(text) - ahead) - BEHIND_CHARS)
            view: View = self._fold.normalize(text[low:])
            if len(view.text) >= ahead:
                return low + view.position(len(view.text) - ahead)
        return 0
