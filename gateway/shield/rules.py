"""The rules of the shield: the file, checked field by field, as records. Runs no rule."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, overload

from gateway.shield.detections import CATEGORIES, Direction, Severity
from gateway.shield.disguise import signals
from gateway.shield.layout import Brief, Layout, make_layout
from gateway.shield.normalize import Normalizer
from gateway.shield.patterns import PatternError
from gateway.shield.plan import Plan, plan_rule, table_names
from gateway.shield.trial import try_pattern
from gateway.shield.validators import VALIDATORS
from gateway.shield.words import vocabulary_of

LOCAL = "local:"
"""How the ids of an operator's own rules begin."""
_ID = re.compile(r"(?:local:)?[a-z0-9]{1,40}(?:-[a-z0-9]{1,40}){0,11}")
_TABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REQUIRED = ("id", "name", "category", "severity", "confidence", "description", "direction", "match", "pass")
_OPTIONAL = ("view", "literals", "pattern", "patterns", "validator", "standards", "tags")
VIEWS = ("normalized", "text")
_Origin = tuple[str | None, tuple[tuple[str, ...], ...], tuple[str, ...], str]


class RuleError(ValueError):
    """A rule file is not what it must be.

    rule: id of the rule, or its place in the file, or empty when the file itself is wrong. field: its field.
    """

    def __init__(self, rule: str, field: str, reason: str) -> None:
        super().__init__(f"{rule or 'rules'}: {field}: {reason}" if field else f"{rule or 'rules'}: {reason}")
        self.rule = rule
        self.field = field
        self.reason = reason

    def within(self, path: str) -> "RuleError":
        """Return the same error with the name of the file in front."""
        return RuleError(f"{path}: {self.rule}" if self.rule else path, self.field, self.reason)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it stands in the file.

    confidence: 0 to 1. view: ``normalized`` or ``text``. patterns: further ones by name, such as a language. validator:
    names of checks joined by ``+``, each with an argument after ``:`` where it takes one, or None. match, passes: texts
    it must and must not match.
    """

    id: str
    name: str
    category: str
    severity: Severity
    confidence: float
    description: str
    direction: frozenset[Direction]
    view: str
    literals: tuple[str, ...]
    pattern: str | None
    patterns: Mapping[str, str]
    validator: str | None
    standards: tuple[str, ...]
    tags: tuple[str, ...]
    match: tuple[str, ...]
    passes: tuple[str, ...]

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Every pattern, each of which is planned and run by itself; None stands for the literals alone."""
        return tuple(filter(None, (self.pattern, *self.patterns.values()))) or (None,)


class _File(NamedTuple):
    rules: tuple[Rule, ...]
    tables: dict[str, list[str]]


class Rules(Sequence[Rule]):
    """The rules of a file, in its order. The file is read when the first of them is asked for."""

    __slots__ = ("_count", "_file", "_source")

    def __init__(self, source: Callable[[], bytes], count: int, file: _File | None = None) -> None:
        """source: returns the file. file: what stands there, where it was read before."""
        self._source = source
        self._count = count
        self._file = file

    @property
    def source(self) -> bytes:
        """The rule file."""
        return self._source()

    @property
    def tables(self) -> dict[str, list[str]]:
        """The words for which a name stands in patterns."""
        return self._read().tables

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Rule: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Rule]: ...
    def __getitem__(self, place: int | slice) -> Rule | Sequence[Rule]:
        return self._read().rules[place]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self[:])

    def _read(self) -> _File:
        if self._file is None:
            self._file = read_document(self._source())
        return self._file


class RuleSet:
    """Every rule of a file and how it is run.

    rules: in the file's order. layout: all that a start needs of them. digest: SHA-256 of the file, 64 lowercase hex
    digits.
    """

    __slots__ = ("digest", "layout", "packed", "rules")

    def __init__(self, rules: Rules, packed: bytes, layout: Layout) -> None:
        self.rules = rules
        self.packed = packed
        self.layout = layout
        self.digest = layout.digest

    @property
    def plans(self) -> tuple[Plan, ...]:
        """How each pattern of each rule is run."""
        return tuple(self.layout.plans())


def load_rules(
    raw: bytes,
    *,
    plans: bytes | None = None,
    known: RuleSet | None = None,
    planned: Sequence[Sequence[Plan]] = (),
) -> RuleSet:
    """Read a rule file and plan its rules.

    plans: the `packed` of a rule set; used if it was made from this very rule file, which then was found right and
    is not read again. known: other
    rules; what is the same there is not planned again, which takes 15 ms a rule. planned: what `plan_share` returned
    for each share of this very file, if it was planned so. Does not run the rules' own examples.

    Raises:
        RuleError: the file is not JSON, or some rule's field is missing, unknown or wrong.
    """
    digest = hashlib.sha256(raw).hexdigest()
    ready = read_plans(plans, digest) if plans else None
    if plans and ready:
        return RuleSet(Rules(lambda: raw, len(ready.firsts)), plans, ready)
    file = read_document(raw)
    sources = _sources(file.rules)
    if planned:
        each = [planned[number % len(planned)][number // len(planned)] for number in range(len(sources))]
    else:
        origins = [_origin(rule, source, file.tables) for rule, source in sources]
        before = _planned(known, frozenset(origins)) if known else {}
        fold = Normalizer()
        pairs = zip(sources, origins, strict=True)
        each = [before.get(origin) or _plan(*source, file.tables, fold) for source, origin in pairs]
    packed = make_layout(
        digest,
        [_brief(rule) for rule, _ in sources],
        each,
        signals=signals(),
        vocabulary=vocabulary_of(plan.source for plan in each),
    )
    return RuleSet(Rules(lambda: raw, len(file.rules), file), packed, Layout(packed))


def plan_share(raw: bytes, share: int, shares: int) -> list[Plan]:
    """Plan every pattern of a file whose place has the remainder `share` when it is divided by `shares`.

    Raises:
        RuleError: as `load_rules`, of these rules.
    """
    file, fold = read_document(raw), Normalizer()
    return [_plan(rule, source, file.tables, fold) for rule, source in _sources(file.rules)[share::shares]]


def planned_rules(plans: bytes, *, source: Callable[[], bytes], digest: str | None = None) -> RuleSet | None:
    """Return the rules of which the `packed` of a rule set is, or None when this program did not make it.

    source: returns the rule file. It is read when somebody asks for what only stands there. digest: its SHA-256; None
    when it is known to be the file that was planned.
    """
    ready = read_plans(plans, digest)
    return RuleSet(Rules(source, len(ready.firsts)), plans, ready) if ready else None


def read_plans(packed: bytes, digest: str | None) -> Layout | None:
    """Return what was worked out ahead if it was made from the rule file with this SHA-256 (None: any), else None.

    The bytes are trusted as the program itself is: they are made when that is built.
    """
    try:
        layout = Layout(packed)
    except (ValueError, LookupError, TypeError, zlib.error):
        return None
    return layout if digest in (None, layout.digest) else None


def read_document(raw: bytes) -> _File:
    """Return the rules and tables of a rule file, checked field by field but not planned.

    Raises:
        RuleError: as `load_rules`.
    """
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RuleError("", "", f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("version") != 1:
        raise RuleError("", "version", "must be 1")
    for field in document:
        if field not in ("version", "tables", "rules"):
            raise RuleError("", field, "is not known")
    tables = _tables(document.get("tables", {}))
    entries = document.get("rules")
    if not isinstance(entries, list) or not entries:
        raise RuleError("", "rules", "must be a list of at least one rule")
    rules = tuple(_rule(entry, place) for place, entry in enumerate(entries))
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise RuleError(rule.id, "id", "is given twice")
        seen.add(rule.id)
    return _File(rules, tables)


def _brief(rule: Rule) -> Brief:
    return Brief(**{field.name: getattr(rule, field.name) for field in fields(Brief)})


def try_rules(ruleset: RuleSet, known: RuleSet | None = None, *, prefix: str = "") -> None:
    """Time every rule's regex on its worst cases. Takes milliseconds a rule: for a file that is new, not at each start.

    known: other rules, whose regexes were timed before. prefix: how the ids of the rules to time begin.

    Raises:
        RuleError: some regex takes too long.
    """
    tried = {known.layout.rule(number)[1].source for number in range(known.layout.count)} if known else ()
    for number in range(ruleset.layout.count):
        brief, plan = ruleset.layout.rule(number)
        if plan.source in tried or not brief.id.startswith(prefix):
            continue
        try:
            try_pattern(plan.source)
        except PatternError as error:
            raise RuleError(brief.id, "pattern", str(error)) from error


def _tables(value: object) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise RuleError("", "tables", "must be an object of word lists")
    for name, words in value.items():
        if not _TABLE.fullmatch(name):
            raise RuleError("", f"tables.{name}", "must be named by letters, digits, _ and -")
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise RuleError("", f"tables.{name}", "must be a list of words")
    return value


def _planned(ruleset: RuleSet, wanted: frozenset[_Origin]) -> dict[_Origin, Plan]:
    """Return the plans of those rules that are wanted; where there is none, the others' are not read for it."""
    tables = ruleset.rules.tables
    origins = [_origin(rule, source, tables) for rule, source in _sources(ruleset.rules)]
    return dict(zip(origins, ruleset.plans, strict=True)) if wanted.intersection(origins) else {}


def _sources(rules: Iterable[Rule]) -> list[tuple[Rule, str | None]]:
    return [(rule, source) for rule in rules for source in rule.sources]


def _origin(rule: Rule, source: str | None, tables: dict[str, list[str]]) -> _Origin:
    """Return all that the plan of a rule's pattern comes of."""
    words = tuple((name, *tables.get(name, ())) for name in table_names(source or ""))
    return source, words, rule.literals, rule.view


def _plan(rule: Rule, source: str | None, tables: dict[str, list[str]], fold: Normalizer) -> Plan:
    try:
        return plan_rule(source, rule.literals, is_normalized=rule.view == "normalized", tables=tables, fold=fold)
    except PatternError as error:
        names = (name for name, pattern in rule.patterns.items() if pattern == source != rule.pattern)
        field = "literals" if source is None else next((f"patterns.{name}" for name in names), "pattern")
        raise RuleError(rule.id, field, str(error)) from error


def _rule(entry: object, place: int) -> Rule:
    if not isinstance(entry, dict):
        raise RuleError(f"rules[{place}]", "", "must be an object")
    name = entry.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise RuleError(f"rules[{place}]", "id", "must be lower-case words joined by -")
    for field in _REQUIRED:
        if field not in entry:
            raise RuleError(name, field, "is missing")
    for field in entry:
        if field not in _REQUIRED and field not in _OPTIONAL:
            raise RuleError(name, field, "is not known")
    confidence = entry["confidence"]
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise RuleError(name, "confidence", "must be a number from 0 to 1")
    literals = _words(entry, "literals", name)
    for literal in literals:
        if len(literal) < 2 and literal != "@" or not literal.strip():
            raise RuleError(name, "literals", f"{literal!r} is too short: two characters at least")
    pattern = _text(entry, "pattern", name) if "pattern" in entry else None
    patterns = _patterns(entry, name)
    if pattern is None and not patterns and not literals:
        raise RuleError(name, "pattern", "is missing, and so are literals")
    directions = _words(entry, "direction", name)
    if not directions:
        raise RuleError(name, "direction", "must name inbound, outbound or both")
    for field in ("match", "pass"):
        if not _words(entry, field, name):
            raise RuleError(name, field, "must hold an example")
    return Rule(
        id=name,
        name=_text(entry, "name", name),
        category=_choice(entry["category"], CATEGORIES, "category", name),
        severity=Severity(_choice(entry["severity"], tuple(Severity), "severity", name)),
        confidence=float(confidence),
        description=_text(entry, "description", name),
        direction=frozenset(Direction(_choice(word, tuple(Direction), "direction", name)) for word in directions),
        view=_choice(entry.get("view", "normalized"), VIEWS, "view", name),
        literals=literals,
        pattern=pattern,
        patterns=patterns,
        validator=_validator(entry, name),
        standards=_words(entry, "standards", name),
        tags=_words(entry, "tags", name),
        match=_words(entry, "match", name),
        passes=_words(entry, "pass", name),
    )


def _choice(value: object, choices: tuple[str, ...], field: str, rule: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise RuleError(rule, field, f"must be one of {', '.join(choices)}")
    return value


def _text(entry: dict[str, object], field: str, rule: str) -> str:
    value = entry[field]
    if not isinstance(value, str) or not value.strip():
        raise RuleError(rule, field, "must be a text")
    return value


def _words(entry: dict[str, object], field: str, rule: str) -> tuple[str, ...]:
    value = entry.get(field, [])
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise RuleError(rule, field, "must be a list of texts")
    return tuple(value)


def _patterns(entry: dict[str, object], rule: str) -> dict[str, str]:
    value = entry.get("patterns", {})
    if not isinstance(value, dict) or not all(isinstance(one, str) and one.strip() for one in value.values()):
        raise RuleError(rule, "patterns", "must be an object of regexes by name")
    for name in value:
        if not _TABLE.fullmatch(name):
            raise RuleError(rule, f"patterns.{name}", "must be named by letters, digits, _ and -")
    return value


def _validator(entry: dict[str, object], rule: str) -> str | None:
    if "validator" not in entry:
        return None
    value = _text(entry, "validator", rule)
    for part in value.split("+"):
        name, _, argument = part.partition(":")
        if name not in VALIDATORS:
            raise RuleError(rule, "validator", f"there is no check {part!r}")
        try:
            VALIDATORS[name]("1234567890", argument)
        except (ValueError, ArithmeticError):
            raise RuleError(rule, "validator", f"the figures of {part!r} cannot be read") from None
    return value
