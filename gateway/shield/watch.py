"""Where in a text that has not ended a match may be under way. Knows the rules that matter, and keeps no text.

Theory of operation. A `Watch` looks out for the rules worth some number of points. What a literal of one may begin with
is held from its first letter on; where a literal stands, the ways through its rules are gone, letter by letter, until
none is left. What no rule begins with in known letters is told by its shape (`runs`). Two machines tell what is held
after each letter (`steps`), and when a rule or the shape must be asked. Where they are lost, all that came since the
last look is normalized, and an automaton finds the literals in it.

In a prompt, rules of words are patient: of a match that takes anything for more than GAP_CHARS, what stands before that
gap is not held. What such matches begin with ("show me", "pretend") stands in every text, and is no order by itself.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

from gateway.shield.cursor import BEHIND_CHARS, Cursor, Open
from gateway.shield.detections import Direction
from gateway.shield.layout import Brief
from gateway.shield.letter_steps import Beginnings
from gateway.shield.listed import Lister
from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer
from gateway.shield.plan import Plan
from gateway.shield.redact import MASKED_CATEGORIES
from gateway.shield.run_steps import Shapes
from gateway.shield.runs import HEAD_CHARS, LEAST_CODE_DIGITS, RUN_CHARS, Runs, is_long
from gateway.shield.steps import Begun, Met, State
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
    beginnings: tell what is held while no rule need be asked. is_strange: as in `Runs`.
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
        "shapes",
    )

    def __init__(self, fold: Normalizer, runs: Runs, leads: Leads, tokens: Leads, reach: "Reach", room: Room) -> None:
        """leads, tokens: where literals lead, and long tokens, which are runs till they are complete."""
        self._fold = fold
        self._runs = runs
        self._leads = leads
        self._tokens = tokens
        self.most_chars, self.behind_chars = reach
        self.is_strange = runs.is_strange
        self.shapes, self.beginnings = Shapes(runs), Beginnings(leads, fold, room)

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
        unseen, least_digits, reach = "", LEAST_CODE_DIGITS, Reach(RUN_CHARS, BEHIND_CHARS)
        for brief, plan, compiled in rules:
            is_masked, on_text = brief.category in MASKED_CATEGORIES, brief.view == "text"
            is_patient = direction is Direction.INBOUND and not is_masked
            entry = Entry(
                plan.source, plan.reach_chars, room, on_text=on_text, is_patient=is_patient, compiled=compiled
            )
            unseen += plan.first
            if plan.how == "digits":
                least_digits = min(least_digits, plan.run_digits)
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
        return cls(fold, Runs(heads, unseen, least_digits), found, long, reach, room)

    def live(self, text: str, at: Cursor) -> int:
        """Return where the first character is that may belong to a match under way at the end of a text.

        Leads the cursor on, but for `out`.
        """
        length = len(text)
        view = self._fold.normalize(text[at.seen :])
        # Blanks that meet at an edge are one.
        met = at.folded.endswith(" ") and view.text.startswith(" ")
        fresh, folded = text[at.seen :], view.text[met:]
        letters = squash_digits(at.folded[-KEPT_CHARS:] + folded)
        size, old = len(letters), len(letters) - len(folded)
        base = at.seen

        def written(place: int) -> int:
            return base + view.position(place - old + met)

        def is_capital(place: int) -> bool:
            return place >= old and text[written(place)].isupper()

        begun = [
            Begun(one.chars + len(fresh), one.letters + len(folded))
            for one in at.begun
            if letters[old - one.letters :] in self._leads.prefixes
        ]
        begun += [
            Begun(length - written(place), size - place)
            for place in range(max(old, size - KEPT_CHARS), size)
            if letters[place:] in self._leads.prefixes and self._is_begun(letters, place, is_capital)
        ]
        at.begun = begun
        at.read(length, folded, view, is_met=met)
        live = length - max((one.chars for one in begun if letters[-one.letters :] in self._leads.held), default=0)
        found = [one for one in self._leads.find(letters) if one[0] >= old and one[1] >= 0]
        hits = self._leads.hits(letters, found, is_capital)
        at.is_suspect = False
        hits += [(ahead + len(folded), lead) for ahead, lead in at.due]
        at.due = ()
        if hits or at.opens:
            live = self._weighed(text, at, hits, live, (fresh, folded))
        return self._shaped(text, at, live)

    def shaped(self, text: str, at: Cursor, met: Sequence[tuple[int, Met]], begun: State) -> int:
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

    def weighed(self, text: str, at: Cursor, met: Sequence[tuple[int, Met]], begun: State, live: int) -> int:
        """Return what is live of a text of which the machines tell all but what the rules say.

        met: the literals that were complete since it was looked at, each with how many letters came after it. live:
        what is for the machines.
        """
        fresh = text[at.seen :]
        folded, view = fresh.replace("\n", " ").lower(), None
        if not (folded.isascii() and folded.isprintable()) or "  " in folded:
            view = self._fold.normalize(fresh)
            folded = view.text
        # Blanks that meet at an edge are one.
        met_blank = folded[:1] == " " == at.folded[-1:]
        folded = folded[met_blank:]
        at.read(len(text), folded, view, is_met=met_blank)
        at.begun, at.is_suspect = begun.begun, False
        at.due = [(one.letters, one.lead) for one in begun.due] if begun.due else ()
        hits = [(after + one.size, lead) for after, one in met for lead in one.leads] if met else []
        return self._weighed(text, at, hits, live, (fresh, folded)) if hits or at.opens else max(live, at.out)

    def first_open(self, text: str, at: Cursor) -> int:
        """Return where the text begins that the rules read of which a match is under way."""
        on_text = max((one.size for one in at.opens if one.entry.on_text), default=0)
        folded = max((one.size for one in at.opens if not one.entry.on_text), default=0)
        return min(len(text) - on_text, at.written(folded)) - BEHIND_CHARS

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
        # Blanks alone are gone, mostly: a letter stands where it did, or so much further on.
        gone = len(view.source) - len(letters) if view.is_even else len(text)
        found = [
            one
            for one in self._tokens.find(letters)
            if one[1] >= 0
            and one[0] + gone >= known
            and ((view.is_even and one[0] >= known) or view.position(one[0]) >= known)
        ]
        if not found:
            return live
        hits = self._tokens.hits(letters, found, is_capital)
        return self._weighed(text, at, hits, live, ("", ""))

    def _weighed(self, text: str, at: Cursor, hits: list[Hit], live: int, fresh: tuple[str, str]) -> int:
        """Ask the rules of which matches are under way or may begin, and return what is live.

        fresh: what matches under way have not read yet of the text, and of the normalized text.
        """
        for one in at.opens:
            one.read(fresh[not one.entry.on_text])
        asked = self._begun(text, at, hits) if hits else at.opens
        opens: list[Open] = []
        ripe: list[Open] = []
        held_chars = 0
        for one in asked:
            if one.is_begun:
                opens.append(one)
            if one.held_chars and one.entry.on_text:
                live = min(live, len(text) - one.held_chars)
            elif one.held_chars > held_chars:
                held_chars = one.held_chars
            if one.is_ripe and one.held_chars < one.size:
                ripe.append(one)
        if held_chars:
            live = min(live, at.written(held_chars))
        live = max(live, at.out)
        at.opens = opens
        if ripe:
            self._ask(text, at, ripe, live)
        return live

    def _begun(self, text: str, at: Cursor, hits: list[Hit]) -> list[Open]:
        """Return the matches under way, and those that may have begun where literals stand."""
        folded, found = at.folded, at.opens[:]
        known = {(one.entry, one.size, one.width) for one in found}
        for ahead, (entry, least, most, rest, back, *_) in hits:
            subject, spot = folded, len(folded) - ahead
            first, last = max(0, spot - most), spot - least
            if last < 0:
                continue
            if entry.on_text:
                spot = at.written(ahead)
                first, subject = at.written(len(folded) - first) if most else spot, text
                last = spot - least if least <= 0 else at.written(len(folded) - last)
            key = entry, len(subject) - first, last - first
            if key in known:
                continue
            if rest and not entry.goes_on(rest, subject, spot):
                continue
            if not back or entry.comes_from(back, subject, first, spot):
                one = Open(entry, last - first, subject[first - 1 : first] if first else "")
                one.read(subject[first:])
                found.append(one)
                known.add(key)
        return found

    def _ask(self, text: str, at: Cursor, ripe: list[Open], live: int) -> None:
        """Ask the rules whose matches may be whole, in what is not held for them."""
        known_end = final = max(at.out, at.final)
        for one in ripe:
            subject = text if one.entry.on_text else at.folded
            first = len(subject) - one.size
            span = one.entry.whole(subject, first, first + one.width)
            one.is_ripe = span is not None
            if span is None or span[1] > len(subject) - one.held_chars:
                continue
            start, end = span
            if not one.entry.on_text:
                start = at.written(len(subject) - start)
                end = at.written(len(subject) - end + 1) + 1
            if start < live:
                final = max(final, end)
            elif one not in at.opens:
                # It is held for another match, and must be seen again when that is none.
                at.opens.append(one)
        at.final = final
        at.is_suspect |= final > known_end
