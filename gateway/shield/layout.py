"""All that a start needs of a rule file, worked out ahead: plans, short forms of the rules, and what the automata hold.

Theory of operation. The form is lines of JSON, of which a start parses hardly any. They stay compressed in groups, a
third of their size in memory, and a group is unpacked to read one of its lines. The first line tells where everything
stands, a line for each automaton holds its literals in the order they are added, and each plan and each literal has a
line of its own, which is parsed when the plan or the literal is first met. Rules that were not planned ahead take the
same form in memory, so there is one way to run them.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.shield.detections import Direction, Severity
from gateway.shield.literals import Lead, likelihood
from gateway.shield.plan import Plan

VERSION = 29
# Literals in ASCII and others, in the normalized view, and those of tokens, in the text as sent.
INDEXES = ("words", "beyond", "tokens")
# The numbers of the first lines of each kind: literals of the indexes, which of them lead to rules for replies, the
# vocabulary, and the plans.
_LITERALS = 1
_FOR_REPLIES = _LITERALS + len(INDEXES)
_VOCABULARY = _FOR_REPLIES + len(INDEXES)
_PLANS = _VOCABULARY + 1
_WANTED = ord("1")
# Groups of 32 lines would save no memory to speak of, and made the first scans of a process cost twice as much.
_GROUP_LINES = 4
_LENGTH_BYTES = 4
# So many letters of a literal are read so often that it matters where in memory they lie.
_COMMON_CHARS = 3

# Number of a plan, and how far before the literal its match begins, at least and at most.
Row = tuple[int, int, int]


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

    __slots__ = ("_head", "_lines", "_places")

    def __init__(self, raw: bytes) -> None:
        """raw: bytes made by `make_layout`.

        Raises:
            ValueError, LookupError, zlib.error: they are not.
        """
        self._lines = _Lines(raw)
        self._head: dict[str, Any] = json.loads(self._lines[0])
        if self._head["version"] != VERSION:
            raise ValueError("of another version")
        place = _PLANS + self.count
        self._places = {}
        for name, size in zip(INDEXES, self._head["sizes"], strict=True):
            self._places[name] = place
            place += size

    @property
    def digest(self) -> str:
        """SHA-256 of the rule file it was made from."""
        return str(self._head["digest"])

    @property
    def count(self) -> int:
        """How many plans there are: one for each pattern of each rule."""
        return int(self._head["plans"])

    @property
    def firsts(self) -> list[int]:
        """The number of the first plan of each rule."""
        return list(self._head["firsts"])

    def numbers(self, how: str) -> list[int]:
        """Return the numbers of the plans that are found by ``digits`` or ``unseen``, or begin ``before`` a literal."""
        return list(self._head[how])

    def literals(self, index: str, direction: Direction | None) -> dict[int, str]:
        """Return the literals of one of INDEXES by number, in the order in which they are added.

        direction: of the texts they will be looked for in; replies need but a third of them. None for any.
        """
        place = INDEXES.index(index)
        every = enumerate(json.loads(self._lines[_LITERALS + place]))
        if direction is not Direction.OUTBOUND:
            return dict(every)
        wanted = self._lines[_FOR_REPLIES + place]
        return {number: literal for number, literal in every if wanted[number] == _WANTED}

    def left_out(self, direction: Direction | None) -> frozenset[int]:
        """Return the numbers of the plans that never count in a direction."""
        return frozenset(self._head["left_out"][direction] if direction else ())

    def leads(self, index: str, number: int) -> tuple[bool, list[Row]]:
        """Return whether a literal is a signal word, and where it leads."""
        is_signal, *rows = json.loads(self._lines[self._places[index] + number])
        return bool(is_signal), [(plan, low, high) for plan, low, high in rows]

    def vocabulary(self) -> list[str]:
        """Return the words of the rules' regexes."""
        return self._lines[_VOCABULARY].decode().split(" ")

    def rule(self, number: int) -> tuple[Brief, Plan]:
        """Return the short form of a plan's rule, and the plan without its leads, which a scan knows from literals."""
        told, plan = json.loads(self._lines[_PLANS + number])
        name, title, category, severity, confidence, description, direction, view, validator, standards = told
        source, how, reach, run_chars, run_digits, first, gate, alone, holds_value = plan
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
            run_chars=run_chars,
            run_digits=run_digits,
            first=first,
            gate=tuple(gate),
            alone=alone,
            holds_value=holds_value,
        )

    def plans(self) -> list[Plan]:
        """Return all plans with their leads."""
        leads: dict[int, list[Lead]] = {number: [] for number in range(self.count)}
        for name in INDEXES:
            for number, literal in self.literals(name, None).items():
                for plan, low, high in self.leads(name, number)[1]:
                    leads[plan].append(Lead(written(name, literal), low, high))
        return [replace(self.rule(number)[1], leads=tuple(sorted(found))) for number, found in leads.items()]


def letters_of(index: str, text: str) -> str:
    """Write a text in the letters of an index: beyond ASCII each byte of it in UTF-8 is one, so that they are few."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1") if index == "beyond" else text


def written(index: str, literal: str) -> str:
    """Return a literal of an index as it is written."""
    return literal.encode("latin-1").decode("utf-8", "surrogatepass") if index == "beyond" else literal


def make_layout(
    digest: str, briefs: Sequence[Brief], plans: Sequence[Plan], *, signals: Iterable[str], vocabulary: Iterable[str]
) -> bytes:
    """Return the layout of a rule file, the same bytes for the same rules.

    briefs: for each plan, the short form of its rule. signals: words to report where they stand.
    """
    told = frozenset(signals)
    leads: dict[str, dict[str, list[Row]]] = {name: {} for name in INDEXES}
    leads["words"] = {signal: [] for signal in sorted(told)}
    for number, plan in enumerate(plans):
        for lead in plan.leads:
            index = "tokens" if plan.how == "tokens" else "words" if lead.literal.isascii() else "beyond"
            rows = leads[index].setdefault(letters_of(index, lead.literal), [])
            rows.append((number, lead.low, lead.high))
    # At each node of an automaton the commonest letters come first, and what is common lies together in memory.
    found = {
        name: dict(sorted(rows.items(), key=lambda row: (-likelihood(row[0][:_COMMON_CHARS]), row[0])))
        for name, rows in leads.items()
    }
    left_out = {way: [n for n, brief in enumerate(briefs) if way not in brief.direction] for way in Direction}
    head = {
        "version": VERSION,
        "digest": digest,
        "plans": len(plans),
        "firsts": [n for n, brief in enumerate(briefs) if n == 0 or brief.id != briefs[n - 1].id],
        "sizes": [len(found[name]) for name in INDEXES],
        "left_out": left_out,
        **{how: [number for number, plan in enumerate(plans) if plan.how == how] for how in ("digits", "unseen")},
        "before": [number for number, plan in enumerate(plans) if any(lead.high > 0 for lead in plan.leads)],
    }
    mute = frozenset(left_out[Direction.OUTBOUND])
    lines = [_line(head), *(_line(list(found[name])) for name in INDEXES)]
    lines += [b"".join(b"01"[is_led : is_led + 1] for is_led in _are_led(found[name], told, mute)) for name in INDEXES]
    lines.append(" ".join(sorted(set(vocabulary))).encode())
    lines += [_line([brief.row(), _plan_row(plan)]) for brief, plan in zip(briefs, plans, strict=True)]
    for name in INDEXES:
        lines += [_line([int(name == "words" and word in told), *rows]) for word, rows in found[name].items()]
    return _Lines.pack(lines)


def _are_led(found: dict[str, list[Row]], signals: frozenset[str], left_out: frozenset[int]) -> Iterator[bool]:
    """Tell of each literal whether it is a signal, or leads to a plan that is not left out."""
    for literal, rows in found.items():
        yield literal in signals or any(row[0] not in left_out for row in rows)


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _plan_row(plan: Plan) -> list[Any]:
    told = [plan.source, plan.how, plan.reach_chars, plan.run_chars, plan.run_digits, plan.first, plan.gate]
    return [*told, plan.alone, plan.holds_value]
