"""All that a start needs of a rule file, worked out ahead: plans, short forms of the rules, and what the automata hold.

Theory of operation. The form is lines of JSON, of which a start parses hardly any. They stay compressed in groups, a
third of their size in memory, and a group is unpacked to read one of its lines. The first line tells where everything
stands, a line for each automaton holds its anchors in the order they are added, and each rule and each anchor has a
line of its own, which is parsed when the rule or the anchor is first met; so has each text of what stands behind
literals, since many share one. Rules that were not planned ahead take the same form in memory, so there is one way to
run them.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.shield import anchors
from gateway.shield.detections import Direction, Severity
from gateway.shield.literals import ALONE, Lead
from gateway.shield.patterns import SIGNS_IN_TOKENS
from gateway.shield.plan import Plan
from gateway.shield.scripts import SCRIPTS, first_letter, script_of

VERSION = 24
INDEXES = ("words", "tokens", *SCRIPTS)
# The numbers of the first lines of each kind: anchors of the indexes, which of them lead to rules for replies, the
# vocabulary, and the rules.
_ANCHORS = 1
_FOR_REPLIES = _ANCHORS + len(INDEXES)
_VOCABULARY = _FOR_REPLIES + len(INDEXES)
_RULES = _VOCABULARY + 1
_WANTED = ord("1")
# What may stand before a letter of a token that has neither a letter nor a digit before it: the first, its beginning.
_BEFORE_ALONE = "\n" + SIGNS_IN_TOKENS
# Groups of 32 lines would save no memory to speak of, and made the first scans of a process cost twice as much.
_GROUP_LINES = 4
_LENGTH_BYTES = 4
# Characters searched that cost as much as one try.
CHARS_PER_TRY = 64


Row = tuple[int, int, int, int, int, str]


@dataclass(frozen=True, slots=True)
class Word:
    """A literal around an anchor. before: how far before the anchor it begins; -1 if the anchor begins before it.

    leads: number of a rule, how far before the literal its match begins, least and most, the regexes that must match
    at the literal and backwards from it, by their places in the plan's `parts`, and what stands right behind it, as
    `Lead.then`. signal: whether it is one.
    """

    literal: str
    before: int
    is_signal: bool
    leads: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Brief:
    """What a detection and a try need of a rule; the fields are the rule's."""

    id: str
    name: str
    category: str
    severity: Severity
    confidence: float
    description: str
    direction: frozenset[Direction]
    view: str
    validator: str | None
    standards: tuple[str, ...]

    def row(self) -> list[Any]:
        """Return the fields in order, as JSON can hold them."""
        told = [self.id, self.name, self.category, self.severity, self.confidence, self.description]
        return [*told, sorted(self.direction), self.view, self.validator, self.standards]


class _Lines:
    """Compressed lines by number. Keeps the group it unpacked last, for whoever reads one line after another."""

    __slots__ = ("_groups", "_last")

    def __init__(self, raw: bytes) -> None:
        """raw: bytes made by `pack`."""
        self._groups: list[bytes] = []
        self._last: tuple[int, list[bytes]] = (-1, [])  # one value, since threads share it
        place = 0
        while place < len(raw):
            start = place + _LENGTH_BYTES
            place = start + int.from_bytes(raw[place:start])
            self._groups.append(raw[start:place])

    def __getitem__(self, number: int) -> bytes:
        group, place = divmod(number, _GROUP_LINES)
        unpacked, lines = self._last
        if unpacked != group:
            lines = zlib.decompress(self._groups[group]).split(b"\n")
            self._last = group, lines
        return lines[place]

    @staticmethod
    def pack(lines: Sequence[bytes]) -> bytes:
        """Return lines as bytes. None of them holds a line break."""
        starts = range(0, len(lines), _GROUP_LINES)
        groups = [zlib.compress(b"\n".join(lines[start : start + _GROUP_LINES])) for start in starts]
        return b"".join(len(group).to_bytes(_LENGTH_BYTES) + group for group in groups)


class Layout:
    """A rule file made ready. Parses a line when it is asked for."""

    __slots__ = ("_head", "_leads", "_lines", "_places", "_thens")

    def __init__(self, raw: bytes) -> None:
        """raw: bytes made by `make_layout`.

        Raises:
            ValueError, LookupError, zlib.error: they are not.
        """
        self._lines = _Lines(raw)
        self._head: dict[str, Any] = json.loads(self._lines[0])
        if self._head["version"] != VERSION:
            raise ValueError("of another version")
        place = _RULES + self.count
        self._places = {}
        for name, size in zip(INDEXES, self._head["sizes"], strict=True):
            self._places[name] = place
            place += size
        self._leads = place
        self._thens = place + self.count

    @property
    def digest(self) -> str:
        """SHA-256 of the rule file it was made from."""
        return str(self._head["digest"])

    @property
    def count(self) -> int:
        """How many rules there are."""
        return int(self._head["rules"])

    def numbers(self, how: str) -> list[int]:
        """Return the numbers of the rules that are found by ``digits`` or by ``unseen``."""
        return list(self._head[how])

    def dearest(self, index: str) -> int:
        """Return how many tries following one anchor of an index may cost."""
        return int(self._head["dearest"][INDEXES.index(index)])

    def letters(self) -> dict[str, frozenset[str]]:
        """Return, by script, letters of which one stands in each literal of its index."""
        return dict(zip(SCRIPTS, map(frozenset, self._head["letters"]), strict=True))

    def anchors(self, index: str, direction: Direction | None) -> dict[int, str]:
        """Return the anchors of one of INDEXES by number, in the order in which they are added.

        direction: of the texts they will be looked for in; replies need but a third of them. None for any.
        """
        place = INDEXES.index(index)
        every = enumerate(json.loads(self._lines[_ANCHORS + place]))
        if direction is not Direction.OUTBOUND:
            return dict(every)
        wanted = self._lines[_FOR_REPLIES + place]
        return {number: anchor for number, anchor in every if wanted[number] == _WANTED}

    def left_out(self, direction: Direction | None) -> frozenset[int]:
        """Return the numbers of the rules that never count in a direction."""
        return frozenset(self._head["left_out"][direction] if direction else ())

    def words(self, index: str, number: int) -> tuple[Word, ...]:
        """Return the literals around one anchor."""
        rows = json.loads(self._lines[self._places[index] + number])
        return tuple(Word(row[0], row[1], bool(row[2]), tuple(map(self._row, row[3]))) for row in rows)

    def _row(self, row: list[int]) -> Row:
        number, low, high, rest, back, then = row
        return number, low, high, rest, back, self._lines[self._thens + then].decode()

    def vocabulary(self) -> list[str]:
        """Return the words of the rules' regexes."""
        return self._lines[_VOCABULARY].decode().split(" ")

    def rule(self, number: int) -> tuple[Brief, Plan]:
        """Return a rule's short form and its plan without the leads, which a scan knows from their literals."""
        told, plan = json.loads(self._lines[_RULES + number])
        source, how, reach, parts, run_chars, run_digits, *others = plan
        first, alone, gate, value_chars, edges = others
        name, title, category, severity, confidence, description, direction, view, validator, standards = told
        brief = Brief(
            id=name,
            name=title,
            category=category,
            severity=Severity(severity),
            confidence=confidence,
            description=description,
            direction=frozenset(map(Direction, direction)),
            view=view,
            validator=validator,
            standards=tuple(standards),
        )
        return brief, Plan(
            source,
            how,
            reach,
            parts=tuple(parts),
            run_chars=run_chars,
            run_digits=run_digits,
            first=first,
            alone=alone,
            gate=tuple(gate),
            value_chars=value_chars,
            edges=tuple((edge, chars) for edge, chars in edges),
        )

    def plan(self, number: int) -> Plan:
        """Return the plan of a rule with its leads, but for what stands behind their literals."""
        plan = self.rule(number)[1]
        rows = json.loads(self._lines[self._leads + number])
        parts = plan.parts
        leads = (Lead(literal, low, high, parts[rest], parts[back]) for literal, low, high, rest, back in rows)
        return replace(plan, leads=tuple(leads))


def whole_plans(packed: bytes) -> Iterator[Plan]:
    """Yield the plans of which a layout was made, with what stands behind their literals."""
    layout = Layout(packed)
    # Each once: a literal that must stand alone has several anchors.
    rows = {
        (row[0], word.literal, row[1:]): None
        for name in INDEXES
        for number in layout.anchors(name, None)
        for word in layout.words(name, number)
        for row in word.leads
    }
    thens: dict[tuple[object, ...], list[str]] = {}
    for number, literal, (*told, then) in reversed(rows):
        thens.setdefault((number, literal, *told), []).append(then)
    for number in range(layout.count):
        plan = layout.plan(number)
        behind = (thens[number, lead.literal, *_lead_row(plan, lead)[:-1]].pop() for lead in plan.leads)
        leads = (replace(lead, then=then) for lead, then in zip(plan.leads, behind, strict=True))
        yield replace(plan, leads=tuple(leads))


def make_layout(
    digest: str, briefs: Sequence[Brief], plans: Sequence[Plan], *, signals: Sequence[str], vocabulary: Iterable[str]
) -> bytes:
    """Return the layout of a rule file, the same bytes for the same rules.

    briefs: the short form of each rule. signals: words to report where they stand.
    """
    leads: dict[str, dict[str, list[Row]]] = {name: {} for name in INDEXES}
    leads["words"] = {signal: [] for signal in signals}
    for number, plan in enumerate(plans):
        for lead in plan.leads:
            is_ascii = lead.literal.isascii()
            index = "tokens" if plan.how == "tokens" else "words" if is_ascii else script_of(lead.literal)
            leads[index].setdefault(lead.literal, []).append((number, *_lead_row(plan, lead)))
    found = {name: _anchored(literals, frozenset(signals)) for name, literals in leads.items()}
    found["tokens"] = _anchored_alone(leads["tokens"], plans)
    left_out = {way: [n for n, brief in enumerate(briefs) if way not in brief.direction] for way in Direction}
    head = {
        "version": VERSION,
        "digest": digest,
        "rules": len(plans),
        "sizes": [len(found[name]) for name in INDEXES],
        "dearest": [max((sum(map(_cost, words)) for words in found[name].values()), default=1) for name in INDEXES],
        "left_out": left_out,
        "letters": ["".join(sorted(set(map(first_letter, leads[name])))) for name in SCRIPTS],
        **{how: [number for number, plan in enumerate(plans) if plan.how == how] for how in ("digits", "unseen")},
    }
    lines = [head, *(list(found[name]) for name in INDEXES)]
    mute = frozenset(left_out[Direction.OUTBOUND])
    wanted = [b"".join(b"01"[led : led + 1] for led in _are_led(found[name].values(), mute)) for name in INDEXES]
    ends: list[Any] = [[brief.row(), _plan_row(plan)] for brief, plan in zip(briefs, plans, strict=True)]
    thens = sorted({lead.then for plan in plans for lead in plan.leads} | {""})
    places = {then: place for place, then in enumerate(thens)}
    for name in INDEXES:
        ends += [
            [[w.literal, w.before, int(w.is_signal), [(*row[:-1], places[row[-1]]) for row in w.leads]] for w in words]
            for words in found[name].values()
        ]
    ends += [[[lead.literal, *_lead_row(plan, lead)[:-1]] for lead in plan.leads] for plan in plans]
    middle = " ".join(sorted(set(vocabulary))).encode()
    every = [*map(_line, lines), *wanted, middle, *map(_line, ends), *(then.encode() for then in thens)]
    return _Lines.pack(every)


def _are_led(words: Iterable[Sequence[Word]], left_out: frozenset[int]) -> Iterator[bool]:
    """Tell of each anchor whether it leads to a signal, or to a rule that is not left out."""
    for around in words:
        yield any(word.is_signal or any(row[0] not in left_out for row in word.leads) for word in around)


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _plan_row(plan: Plan) -> list[Any]:
    told = [plan.source, plan.how, plan.reach_chars, plan.parts]
    told += [plan.run_chars, plan.run_digits, plan.first, plan.alone, plan.gate]
    return [*told, plan.value_chars, plan.edges]


def _lead_row(plan: Plan, lead: Lead) -> tuple[int, int, int, int, str]:
    return lead.low, lead.high, plan.parts.index(lead.rest), plan.parts.index(lead.back), lead.then


def _anchored(leads: dict[str, list[Row]], signals: frozenset[str]) -> dict[str, list[Word]]:
    roots = anchors.choose_roots(leads)
    words: dict[str, list[Word]] = {}
    for literal, led in leads.items():
        anchor, before = anchors.choose_anchor(literal, roots)
        words.setdefault(anchor, []).append(Word(literal, before, literal in signals, tuple(led)))
    return {anchor: words[anchor] for anchor in anchors.order_words(list(words))}


def _anchored_alone(leads: dict[str, list[Row]], plans: Sequence[Plan]) -> dict[str, list[Word]]:
    """Anchor the literals of tokens. One letter is everywhere: where it must stand alone, what is before it tells."""
    single = {one for one in leads if one in ALONE["alnum"]}
    alone = {one: [row for row in leads[one] if ALONE["alnum"] <= ALONE[plans[row[0]].alone]] for one in sorted(single)}
    others = {one: [row for row in led if row not in alone.get(one, ())] for one, led in leads.items()}
    words = _anchored({one: led for one, led in others.items() if led}, frozenset())
    for one, led in alone.items():
        if led:
            words.update({before + one: [Word(one, -1, False, tuple(led))] for before in _BEFORE_ALONE})
    return words


def _cost(word: Word) -> int:
    return sum(1 + (high - low) // CHARS_PER_TRY for _, low, high, _, _, _ in word.leads)
