"""Scan a text: its normalized view and every decoded one, rules over each, one detection a rule, one score."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from gateway.shield import decode, unshown
from gateway.shield.attack_model import CATEGORY, AttackModel, Read
from gateway.shield.detections import (
    MASKED_CATEGORIES,
    Detection,
    Direction,
    ScanResult,
    Severity,
    matched_of,
    record,
    redact_spans,
)
from gateway.shield.disguise import DISGUISES, Disguises
from gateway.shield.layout import Brief, Layout
from gateway.shield.local_rules import with_rules, written
from gateway.shield.matcher import BUDGET, Match, Matcher
from gateway.shield.normalize import Normalizer, View
from gateway.shield.rules import LOCAL, Rule, RuleSet, load_rules, try_rules
from gateway.shield.scoring import DEFAULT_POLICY, Policy, judge, nothing_found
from gateway.shield.shapes import Shapes
from gateway.shield.stream import HELD_POINTS, Openings, StreamScanner
from gateway.shield.views import Decoded

BUDGET_RULE = "scan-budget"
# How far decoding goes: its depth, how many texts, and how many characters of them for one text.
_DEEPEST = 3
_MOST_READINGS = 48
_ROOM_TIMES = 6
_ROOM_CHARS = 65_536
_MOST_SPANS = 1_000  # a rule that matches more often may stand anywhere
_MOST_OPENINGS = 16  # policies whose patterns are kept for streams
# A class is asked for its member at some length.
_INBOUND = Direction.INBOUND


@record
class _Place:
    """A span in the text as sent where a rule matched, and the view it matched in."""

    start: int
    end: int
    view: str


_Places = dict[Brief, list[_Place]]  # by rule


class _Reading:
    """A text to scan: the one that was sent, or one decoded from another reading."""

    __slots__ = ("_decoded", "_parent", "chain", "text")

    def __init__(self, text: str, decoded: Decoded | None, parent: "_Reading | None") -> None:
        self.text = text
        self._decoded = decoded
        self._parent = parent
        self.chain: tuple[str, ...] = (*parent.chain, decoded.name) if parent and decoded else ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Lead a span back to the text as sent."""
        if self._decoded is None or self._parent is None:
            return start, end
        return self._parent.span(*self._decoded.span(start, end))


@dataclass(slots=True, eq=False)
class _InUse:
    """A rule set at work and its overrides. A scan reads one from beginning to end, while `Shield` may get another."""

    ruleset: RuleSet
    matcher: Matcher
    disguises: Disguises
    disabled: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    briefs: dict[int, Brief] = field(default_factory=dict)
    openings: dict[tuple[object, ...], Openings] = field(default_factory=dict)

    def counted(self, number: int, direction: Direction, policy: Policy) -> Brief | None:
        """Return the rule of a plan as it counts in a direction; None if it does not."""
        brief = self.briefs.get(number)
        if brief is None:
            brief = self.ruleset.layout.rule(number)[0]
            if brief.id in self.severities:
                brief = replace(brief, severity=self.severities[brief.id])
            self.briefs[number] = brief
        counts = direction in brief.direction and _has(policy, brief.category) and brief.id not in self.disabled
        return brief if counts else None


class Shield:
    """A rule set, ready to scan. Threads may share it; only `override` and `adopt` change what it finds."""

    __slots__ = ("_in_use", "_model", "_normalizer")

    def __init__(
        self,
        ruleset: RuleSet,
        *,
        native: bool | None = None,
        model: AttackModel | None = None,
    ) -> None:
        """Put a rule set to work.

        native: True for the C matcher, False for the one in Python, None for the first that is there.
        model: what scores the wording of inbound texts, or None for rules alone.
        """
        self._model = model
        self._normalizer = Normalizer()
        disguises = Disguises(ruleset.layout.vocabulary)
        self._in_use = _InUse(ruleset, Matcher(ruleset.layout, native=native), disguises)

    def override(self, *, disabled: Collection[str], severities: Mapping[str, Severity]) -> None:
        """From the next scan on, leave out the rules of some ids, and count others as of another severity."""
        now = self._in_use
        self._in_use = _InUse(now.ruleset, now.matcher, now.disguises, frozenset(disabled), dict(severities))

    def adopt(self, other: "Shield") -> None:
        """From the next scan on, use the rules of another shield, overridden as they are there."""
        self._in_use = other._in_use

    @property
    def rules(self) -> Sequence[Rule]:
        """Every rule, in the file's order."""
        return self._in_use.ruleset.rules

    @property
    def source(self) -> bytes:
        """The rule file, with local rules merged."""
        return self._in_use.ruleset.rules.source

    @property
    def local_count(self) -> int:
        """How many of the rules are an operator's own, on top of a whole set."""
        return sum(self.layout.rule(number)[0].id.startswith(LOCAL) for number in self.layout.firsts)

    @property
    def digest(self) -> str:
        """SHA-256 of the rule file."""
        return self._in_use.ruleset.digest

    def ready(self) -> None:
        """Do now what the first scan would do: put the words of the rules into the automaton."""
        self._in_use.matcher.ready()

    @property
    def matcher(self) -> str:
        """``native`` or ``python``: which automaton runs."""
        return self._in_use.matcher.kind

    @property
    def layout(self) -> Layout:
        """How its rules are run."""
        return self._in_use.ruleset.layout

    def counted(self, direction: Direction, policy: Policy) -> Iterator[tuple[int, Brief]]:
        """Yield every rule that counts in a direction, by the number of its first plan, as it counts now."""
        now = self._in_use
        for number in now.ruleset.layout.firsts:
            if (brief := now.counted(number, direction, policy)) is not None:
                yield number, brief

    def scan(self, text: str, direction: Direction, policy: Policy = DEFAULT_POLICY) -> ScanResult:
        """Scan one text. Any `str` will do; the time is bounded by its length.

        Does not wait, does not keep the text.
        """
        now = self._in_use
        places: _Places = {}
        is_cut_short = False
        room = _ROOM_TIMES * len(text) + _ROOM_CHARS
        readings = [_Reading(text, None, None)]
        model = self._model if direction is _INBOUND and _has(policy, CATEGORY) else None
        closest: tuple[Read, _Reading, View] | None = None  # the reading that resembles attacks most
        for reading in readings:
            view = self._normalizer.normalize(reading.text)
            shapes = Shapes(reading.text)
            if reading.chain:
                # Letters moved about make secrets of anything: leet alone would turn half of all identifiers into one.
                # What was decoded or moved about is read again and again: each reading has half the text's budget.
                matches = now.matcher.scan(
                    view,
                    shapes,
                    direction=direction,
                    with_text_rules=DISGUISES.isdisjoint(reading.chain),
                    budget=BUDGET // 2,
                )
            else:
                matches = now.matcher.scan(view, shapes, direction=direction)
            found, signals, is_short = matches
            is_cut_short |= is_short
            if found:
                _keep(places, found, reading, now, direction, policy)
            if model is not None:
                read = model.read(view.text)
                if closest is None or read.margin > closest[0].margin:
                    closest = read, reading, view
            if len(reading.chain) == _DEEPEST:
                continue
            for decoded in _decoded(reading, shapes, view, now.disguises, signals):
                room -= len(decoded.text)
                if room < 0 or len(readings) == _MOST_READINGS:
                    is_cut_short = True
                    break
                readings.append(_Reading(decoded.text, decoded, reading))
        hidden = _hidden(places)
        detections = [_detection(rule, found, text, hidden) for rule, found in places.items()]
        if model is not None and closest is not None:
            detections += _resembling(model, closest, detections, hidden)
        if is_cut_short:
            detections.append(_over_budget(text))
        if not detections:
            return nothing_found(policy)
        return judge(detections, policy, redacted=_redacted(places, text, policy))

    def stream(self, policy: Policy | None = DEFAULT_POLICY) -> StreamScanner:
        """Return what reads one reply piece by piece, and lets out what can be no part of a match that blocks.

        policy: None to hold nothing but unfinished words.
        """
        if policy is None:
            return StreamScanner(None, self._normalizer.normalize, partial(self.scan, direction=Direction.OUTBOUND))
        actions = tuple(sorted(policy.category_actions.items()))
        key = policy.categories, actions, min(policy.block_at, HELD_POINTS)
        now = self._in_use
        openings = now.openings.get(key)
        if openings is None:
            if len(now.openings) >= _MOST_OPENINGS:
                now.openings = {}
            counted = lambda number: now.counted(number, Direction.OUTBOUND, policy)  # noqa: E731
            openings = now.openings[key] = Openings(now.ruleset.layout, now.matcher, policy, counted)
        scan = partial(self.scan, direction=Direction.OUTBOUND, policy=policy)
        return StreamScanner(openings, self._normalizer.normalize, scan)


def extended(base: Shield, rules: Sequence[Mapping[str, object]]) -> Shield:
    """Return a shield with the rules of `base` and others. Takes about a second. Raises RuleError."""
    known = base._in_use.ruleset
    more = load_rules(with_rules(base.source, rules), known=known)
    try_rules(more, known, prefix=LOCAL)
    return Shield(more, model=base._model)


def trial(base: Shield, rule: Mapping[str, object]) -> Shield:
    """Return a shield of one rule that reads texts as `base` does. Takes milliseconds. Raises RuleError."""
    known = base._in_use.ruleset
    only = load_rules(written(known.rules.tables, [rule]))
    try_rules(only)
    one = Shield(only)
    one._in_use.disguises = Disguises(lambda: known.layout.vocabulary() + only.layout.vocabulary())
    return one


def _decoded(
    reading: _Reading, shapes: Shapes, view: View, disguises: Disguises, signals: frozenset[str]
) -> list[Decoded]:
    found = decode.decodings(shapes, view.others) + unshown.readings(shapes)
    found += disguises.readings(shapes, signals, reading.chain)
    return [decoded for decoded in found if decoded.text != reading.text] if found else found


def _keep(
    places: _Places,
    matches: Sequence[Match],
    reading: _Reading,
    now: _InUse,
    direction: Direction,
    policy: Policy,
) -> None:
    for match in matches:
        rule = now.counted(match.rule, direction, policy)
        if rule is not None:
            start, end = reading.span(match.start, match.end)
            places.setdefault(rule, []).append(_Place(start, end, ">".join(reading.chain) or rule.view))


def _hidden(places: _Places) -> list[_Place]:
    """Return where secrets stand, which no rule's match may repeat."""
    return [place for rule, found in places.items() if rule.category in MASKED_CATEGORIES for place in found]


def _detection(rule: Brief, places: list[_Place], text: str, hidden: list[_Place]) -> Detection:
    first = places[0]
    shown = text[first.start : first.end]
    if rule.category not in MASKED_CATEGORIES and hidden:
        inside = [
            (max(place.start - first.start, 0), min(place.end, first.end) - first.start)
            for place in hidden
            if place.start < first.end and first.start < place.end
        ]
        shown = redact_spans(shown, inside) or shown
    spans = {(place.start, place.end) for place in places} if len(places) > 1 else set()
    is_told = len(spans) <= _MOST_SPANS
    return Detection(  # by position, since so many names take as long again
        rule.id,
        rule.name,
        rule.category,
        rule.severity,
        rule.description,
        matched_of(shown, rule.category),
        rule.confidence,
        0,
        len(spans) or 1,
        first.start,
        first.end,
        first.view,
        rule.standards,
        spans=tuple(sorted(spans)) if is_told else (),
        is_spread=not is_told,
    )


def _redacted(places: _Places, text: str, policy: Policy) -> str | None:
    spans = []
    for rule, found in places.items():
        if rule.category in MASKED_CATEGORIES or policy.category_actions.get(rule.category) == "redact":
            spans += [(place.start, place.end) for place in found]
    return redact_spans(text, spans)


def _resembling(
    model: AttackModel,
    closest: tuple[Read, _Reading, View],
    detections: Sequence[Detection],
    hidden: Sequence[_Place],
) -> Iterator[Detection]:
    """Yield the model's detection, if there is one. hidden: where secrets stand, which it must not repeat."""
    read, reading, view = closest
    rules = [one.rule for one in detections]

    def place(start: int, end: int) -> tuple[int, int] | None:
        first, last = reading.span(*view.span(start, end))
        is_secret = any(one.start < last and first < one.end for one in hidden)
        return None if is_secret else (first, last)

    found = model.detect(view.text, read, rules, place)
    if found is not None and reading.chain:
        yield replace(found, view=">".join(reading.chain))
    elif found is not None:
        yield replace(found, matched=reading.text[found.start : found.end])


def _has(policy: Policy, category: str) -> bool:
    return policy.categories is None or category in policy.categories


def _over_budget(text: str) -> Detection:
    return Detection(
        rule=BUDGET_RULE,
        name="Scan budget exceeded",
        category="encoding",
        severity=Severity.HIGH,
        description="The text holds so many beginnings of matches that not all of them could be tried.",
        matched="",
        confidence=1.0,
        score=0,
        count=1,
        start=0,
        end=len(text),
        view="text",
    )
