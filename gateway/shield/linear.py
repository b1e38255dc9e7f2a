"""The statistical second signal: a linear model over classes of words, and pairs of them. Trains and decides nothing.

Theory of operation. A text's words are its runs of letters in the normalized view. A lexicon gives some words a class
by what they mean ("disregard" and "olvida" are of class `ignore`); every two words in a row that have none are a gap,
and a single one is left out. So a text becomes a row of marks, a byte each, which all is done in C. The marks are read
in windows that overlap by half, so that a short instruction is seen in a long document. A window's margin is the sum of
the weights of its distinct classes and of its distinct pairs of classes at most REACH marks apart, over the root of the
window's length, plus a constant; the text's margin is the highest. Most windows are never added up: only those whose
distinct classes have enough heat, which is a sum of few small numbers. That is part of the model: it is trained, and
its levels are set, with it.

The weights are data (`linear.json`, written by `bench/detection/train.py`) and are read at the first use.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from gateway.shield.detections import Detection, Severity
from gateway.shield.normalize import View
from gateway.shield.scoring import MODEL_RULE

WEIGHTS_FILE = "linear.json"
CATEGORY = "injection"
# Marks in a window, and from one window to the next. A shorter rest belongs to the window before it.
WINDOW_MARKS = 20
STEP_MARKS = 10
# Marks from the first to the second of a pair, at most.
REACH = 3
GAP = 255
# A window needs one more of heat for each so many marks: what many words share says less.
MARKS_A_HEAT = 7
MOST_CLASSES = 254
# The form of a weights file this code reads.
VERSION = 2

# Of so many marks so many windows are added up, those with the most heat: the time is bounded.
_PART_MARKS = 5_120
_MOST_WINDOWS = 256
_PIECE_CHARS = 32_768
_LONGEST_MATCHED = 5
_SHORT_MARKS = 8
# A text of no more characters is asked for its heat before it is made into marks.
_FEW_CHARS = 400
# A class has no more heat: a window's sum is one byte.
_MOST_HEAT = 255 // WINDOW_MARKS
# Weights are stored from 1 to 255; this one is nothing.
_NOTHING = 128
_PLAIN = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))
_RUN = re.compile("[a-z'\u0080-\U0010ffff]+")
_NO_CLASS = repeat(0)
_SEVERITIES = (Severity.LOW, Severity.MEDIUM, Severity.HIGH)
_DESCRIPTION = (
    "The wording as a whole resembles attacks on language models more than it resembles harmless texts. "
    "A hint from statistics, no proof: alone it never blocks."
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained model. Classes have numbers from 1 on.

    classes: the class of each word that has one, in UTF-8. table: 256 rows of 256 bytes; row FIRST holds at SECOND the
    weight of that pair, and row 0 at SECOND that of a class alone; each plus 128. unit: what one of a weight is worth.
    constant: what every margin begins with. heat: of each class, at most 12, as a table to translate marks by.
    least_heat: of a window that is added up. hot: the words whose classes have heat.
    levels: least margins for the severities low, medium and high, rising. slope, offset: of the logistic curve that
    makes a confidence of a margin.
    """

    classes: Mapping[bytes, int]
    table: bytes
    unit: float
    constant: float
    heat: bytes
    least_heat: int
    levels: tuple[float, float, float]
    slope: float
    offset: float
    hot: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Find the hot words."""
        hot = frozenset(word for word, number in self.classes.items() if self.heat[number])
        object.__setattr__(self, "hot", hot)


@dataclass(frozen=True, slots=True)
class Signal:
    """The window that most resembles an attack: its marks, and its half-open span of marks in the text."""

    margin: float
    start: int
    end: int
    marks: bytes


class _Mark(NamedTuple):
    """Where a mark comes from: a half-open span of characters, and the word, none for a gap."""

    start: int
    end: int
    word: str


def words_of(normalized: str) -> list[bytes]:
    """Cut a normalized text into words in UTF-8: runs of letters, apostrophes left out. Digits and signs are none."""
    return normalized.encode("utf-8", "surrogatepass").translate(_PLAIN, b"'").split()


def marks_of(words: Sequence[bytes], classes: Mapping[bytes, int]) -> bytes:
    """Return a byte for each word that has a class and for each two in a row that have none."""
    return bytes(map(classes.get, words, _NO_CLASS)).replace(b"\0\0", b"\xff").replace(b"\0", b"")


def windows_of(count: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of so many marks that are looked at, at least one."""
    for start in range(0, max(0, count - STEP_MARKS - 1) + 1, STEP_MARKS):
        yield start, min(count, start + WINDOW_MARKS)


def pairs_of(marks: bytes) -> set[int]:
    """Return the distinct pairs of classes that stand near one another, and each class alone after 0.

    A pair is a number: 256 times the first, and the second. Gaps are in none.
    """
    pairs = {
        first << 8 | second
        for place, first in enumerate(marks, 1)
        if first != GAP
        for second in marks[place : place + REACH]
        if second != GAP
    }
    pairs.update(marks)
    pairs.discard(GAP)
    return pairs


def share_of(count: int) -> float:
    """Return what each pair of a window of so many marks counts for: long windows hold more of them."""
    return math.sqrt(_SHORT_MARKS / (count + _SHORT_MARKS))


def hot_windows(marks: bytes, heat: bytes, least: int) -> list[tuple[int, int]]:
    """Return the windows whose distinct classes have enough heat, the more the longer; of many, the hottest."""
    count = len(marks)
    heats = marks.translate(heat)
    # A sum of all marks is never less than that of the distinct ones, and costs less.
    sums = _sums(heats)[: count - STEP_MARKS : STEP_MARKS] if count > WINDOW_MARKS else [sum(heats)]
    found = []
    for start, most in zip(range(0, count, STEP_MARKS), sums, strict=False):
        if most < least:
            continue
        window = marks[start : start + WINDOW_MARKS]
        need = least + len(window) // MARKS_A_HEAT
        if most >= need and (warmth := _warmth(window, heat)) >= need:
            found.append((-warmth, start, start + len(window)))
    if len(found) > _MOST_WINDOWS:
        found = sorted(found)[:_MOST_WINDOWS]
    return [(start, end) for _, start, end in found]


def _sums(heats: bytes) -> bytes:
    """Return, for each place, the sum of the WINDOW_MARKS bytes from there on: of 2, 4, 8, 16 and of 16 and 4.

    One large number is all places at once, as no sum is more than a byte.
    """
    row = int.from_bytes(heats, "little")
    row += row >> 8
    row = four = row + (row >> 16)
    row += row >> 32
    row += row >> 64
    row += four >> 128
    return row.to_bytes(len(heats), "little")


def _warmth(marks: bytes, heat: bytes) -> int:
    return sum(bytes(set(marks)).translate(heat))


def read_weights(raw: bytes) -> Weights:
    """Read a weights file.

    Raises:
        ValueError: it is of another version or no weights file.
    """
    try:
        entry = json.loads(raw)
        if entry["version"] != VERSION:
            raise ValueError(f"version {entry['version']} of the weights is not {VERSION}")
        classes: dict[bytes, int] = {}
        for number, words in enumerate(entry["classes"].values(), 1):
            classes.update(dict.fromkeys(words.encode().split(b","), number))
        alone = map(int, entry["alone"].split(","))
        rows = [_row(alone), *(_row(map(int, weights.split(","))) for weights in entry["pairs"].values())]
        low, medium, high = entry["levels"]
        heat = bytes([0, *map(int, entry["heat"].split(","))])
        if max(heat) > _MOST_HEAT:
            raise ValueError(f"a class of the weights has more heat than {_MOST_HEAT}")
        return Weights(
            classes=classes,
            table=b"".join(rows).ljust(1 << 16, bytes([_NOTHING])),
            unit=float(entry["unit"]),
            constant=float(entry["constant"]),
            heat=heat.ljust(256, b"\0"),
            least_heat=int(entry["least_heat"]),
            levels=(float(low), float(medium), float(high)),
            slope=float(entry["slope"]),
            offset=float(entry["offset"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no weights file") from error


def _row(weights: Iterator[int]) -> bytes:
    return bytes([_NOTHING, *(weight + _NOTHING for weight in weights)]).ljust(256, bytes([_NOTHING]))


class LinearModel:
    """Says how much a text resembles attacks. Immutable in effect: threads may share it."""

    __slots__ = ("_weights",)

    def __init__(self, weights: Weights | None = None) -> None:
        """weights: those of the bundled file if not given, read at the first use."""
        self._weights = weights

    @property
    def weights(self) -> Weights:
        """The weights, read now if they were not."""
        if self._weights is None:
            self._weights = read_weights(_read_beside(WEIGHTS_FILE))
        return self._weights

    def signal(self, normalized: str) -> Signal | None:
        """Return the strongest window of a normalized text, or None when no window is worth adding up."""
        weights = self.weights
        if len(normalized) <= _FEW_CHARS:
            words = words_of(normalized)
            if not _may_be_warm(words, weights):
                return None
            marks = marks_of(words, weights.classes)
        else:
            marks = b"".join([marks_of(words_of(piece), weights.classes) for piece in _pieces(normalized)])
        best = None
        margin = -math.inf
        for first in range(0, max(1, len(marks) - STEP_MARKS), _PART_MARKS):
            part = marks[first : first + _PART_MARKS + STEP_MARKS]
            for start, end in hot_windows(part, weights.heat, weights.least_heat):
                if (found := margin_of(part[start:end], weights)) > margin:
                    best, margin = (first + start, first + end), found
        return Signal(margin, *best, marks[slice(*best)]) if best else None

    def detect(self, view: View) -> Detection | None:
        """Return the detection for a normalized text, its span in `view.source`; None below the lowest level."""
        signal = self.signal(view.text)
        weights = self.weights
        if signal is None or signal.margin < weights.levels[0]:
            return None
        severity = _SEVERITIES[sum(signal.margin >= level for level in weights.levels) - 1]
        places = _places(view.text, signal.start, signal.end, weights.classes)
        start, end = view.span(places[0].start, places[-1].end)
        return Detection(
            rule=MODEL_RULE,
            name="Resembles known attacks",
            category=CATEGORY,
            severity=severity,
            description=_DESCRIPTION,
            matched=", ".join(strongest(signal.marks, [place.word for place in places], weights)),
            confidence=round(1 / (1 + math.exp(-weights.slope * signal.margin - weights.offset)), 3),
            score=0,
            count=1,
            start=start,
            end=end,
            view="normalized",
            standards=("OWASP LLM01:2025", "MITRE ATLAS AML.T0051"),
        )


def margin_of(marks: bytes, weights: Weights) -> float:
    """Add up one window."""
    table = weights.table
    pairs = pairs_of(marks)
    total = sum([table[pair] for pair in pairs]) - _NOTHING * len(pairs)
    return total * weights.unit * share_of(len(marks)) + weights.constant


def strongest(marks: bytes, words: Sequence[str], weights: Weights) -> list[str]:
    """Return the words and pairs of a window that speak most for an attack, the strongest first, each once."""
    ranked: list[tuple[int, int, tuple[str, ...]]] = []
    for place, mark in enumerate(marks):
        if mark == GAP:
            continue
        ranked.append((-weights.table[mark], place, (words[place],)))
        ranked += [
            (-weights.table[256 * mark + marks[other]], place, (words[place], words[other]))
            for other in range(place + 1, min(len(marks), place + REACH + 1))
            if marks[other] != GAP
        ]
    chosen: list[str] = []
    named: set[str] = set()
    for weight, _, pair in sorted(ranked):
        if weight >= -_NOTHING or len(chosen) == _LONGEST_MATCHED:
            break
        if not named.issuperset(pair):
            named.update(pair)
            chosen.append(" ".join(pair))
    return chosen


def _may_be_warm(words: Sequence[bytes], weights: Weights) -> bool:
    """Whether all words together have the heat of a window. There are at least half as many marks as words."""
    need = weights.least_heat + min(STEP_MARKS, len(words) // 2) // MARKS_A_HEAT
    classes = map(weights.classes.__getitem__, weights.hot.intersection(words))
    return sum(map(weights.heat.__getitem__, classes)) >= need


def _pieces(normalized: str) -> Iterator[str]:
    """Cut a long text at blanks, so that another thread never waits for long."""
    place, length = 0, len(normalized)
    while length - place > _PIECE_CHARS:
        end = normalized.rfind(" ", place, place + _PIECE_CHARS) + 1 or place + _PIECE_CHARS
        yield normalized[place:end]
        place = end
    yield normalized[place:]


def _places(normalized: str, start: int, end: int, classes: Mapping[bytes, int]) -> list[_Mark]:
    """Return where the marks of a half-open span stand."""
    found: list[_Mark] = []
    number = offset = 0
    for piece in _pieces(normalized):
        count = len(marks_of(words_of(piece), classes))
        if number + count > start:
            found += list(_marks_in(piece, offset, classes))[max(0, start - number) : end - number]
        number += count
        offset += len(piece)
        if number >= end:
            break
    return found


def _marks_in(piece: str, offset: int, classes: Mapping[bytes, int]) -> Iterator[_Mark]:
    """Yield the marks of one piece with their places; as `marks_of`, only slower."""
    idle = -1
    for run in _RUN.finditer(piece):
        word = run[0].replace("'", "")
        if word.encode("utf-8", "surrogatepass") in classes:
            yield _Mark(offset + run.start(), offset + run.end(), word)
            idle = -1
        elif word and idle < 0:
            idle = run.start()
        elif word:
            yield _Mark(offset + idle, offset + run.end(), "")
            idle = -1


def _read_beside(name: str) -> bytes:
    """Read a file that lies beside this module, in a folder or in an archive.

    Raises:
        OSError: there is no such file.
    """
    read = getattr(__spec__.loader, "get_data", None)
    if read is None:
        raise FileNotFoundError(name)
    return bytes(read(os.path.join(os.path.dirname(__file__), name)))
