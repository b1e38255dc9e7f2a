"""The statistical second signal: a linear model over classes of words, and pairs of them. Trains and decides nothing.

Theory of operation. A text's words are its runs of letters in the normalized view. They are read in windows that
overlap by half, so that a short instruction is seen in a long document. A lexicon gives some words a class by what they
mean ("disregard" and "olvida" are of class `ignore`); every two words in a row that have none are a gap, and a single
one is left out. So a window becomes a row of marks, a byte each. Its margin is the sum of the weights of its distinct
classes and of its distinct pairs of classes at most REACH marks apart, over the root of the row's length, plus a
constant; the text's margin is the highest.

Hardly any window is added up: only those whose distinct words have enough heat, which is a small number each. That is
part of the model: it is trained, and its levels are set, with it. And where all words of thirteen windows together
have too little heat, no window is asked: most of a harmless text costs no more than being cut into words.

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
# Words in a window, and from one window to the next. A shorter rest belongs to the window before it.
WINDOW_WORDS = 36
STEP_WORDS = 18
# Windows in a passage, which are asked together.
PASSAGE_WINDOWS = 13
# Marks from the first to the second of a pair, at most.
REACH = 3
GAP = 255
# A window needs one more of heat for each so many words of its passage, up to a whole window: what many words share
# says less.
WORDS_A_HEAT = 12
MOST_CLASSES = 254
# A word has no more heat: the sum of a window's is one byte.
MOST_HEAT = 255 // WINDOW_WORDS
# The form of a weights file this code reads.
VERSION = 3

_PASSAGE_WORDS = (PASSAGE_WINDOWS + 1) * STEP_WORDS
_PIECE_CHARS = 32_768
_LONGEST_MATCHED = 5
_SHORT_MARKS = 8
# Weights are stored from 1 to 255; this one is nothing.
_NOTHING = 128
_PLAIN = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))
_RUN = re.compile("[a-z'\u0080-\U0010ffff]+")
_NONE = repeat(0)
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
    constant: what every margin begins with. heat: of each word that has some, at most MOST_HEAT.
    least_heat: of a window that is added up, if it had no words. hot: the words that have heat.
    levels: least margins for the severities low, medium and high, rising. slope, offset: of the logistic curve that
    makes a confidence of a margin.
    """

    classes: Mapping[bytes, int]
    table: bytes
    unit: float
    constant: float
    heat: Mapping[bytes, int]
    least_heat: int
    levels: tuple[float, float, float]
    slope: float
    offset: float
    hot: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Find the hot words."""
        object.__setattr__(self, "hot", frozenset(self.heat))


@dataclass(frozen=True, slots=True)
class Signal:
    """The window that most resembles an attack: its words, the number of the first in the text, and its marks."""

    margin: float
    start: int
    words: Sequence[bytes]
    marks: bytes


class _Mark(NamedTuple):
    """What a mark comes from: the numbers of its first and its last word, and the word, none for a gap."""

    first: int
    last: int
    word: bytes


def words_of(normalized: str) -> list[bytes]:
    """Cut a normalized text into words in UTF-8: runs of letters, apostrophes left out. Digits and signs are none."""
    return normalized.encode("utf-8", "surrogatepass").translate(_PLAIN, b"'").split()


def marks_of(words: Sequence[bytes], classes: Mapping[bytes, int]) -> bytes:
    """Return a byte for each word that has a class and for each two in a row that have none."""
    return bytes(map(classes.get, words, _NONE)).replace(b"\0\0", b"\xff").replace(b"\0", b"")


def windows_of(count: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of so many words that are looked at: of few words all."""
    for start in range(0, max(min(count, 1), count - STEP_WORDS), STEP_WORDS):
        yield start, min(count, start + WINDOW_WORDS)


def passages_of(normalized: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the words of a normalized text in passages, and the number of each one's first word.

    The windows of a passage are windows of the text, and each is in one passage.
    """
    words: list[bytes] = []
    first = 0
    for piece in _pieces(normalized):
        words += words_of(piece)
        place = 0
        while len(words) - place > _PASSAGE_WORDS:
            yield first + place, words[place : place + _PASSAGE_WORDS]
            place += PASSAGE_WINDOWS * STEP_WORDS
        first += place
        del words[:place]
    yield first, words


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


def hot_windows(
    words: Sequence[bytes], hot: frozenset[bytes], heat: Mapping[bytes, int], least: int
) -> list[tuple[int, int]]:
    """Return the windows of a passage whose distinct words have enough heat. hot: the words that have some."""
    warm = {word: heat[word] for word in hot.intersection(words)}
    need = least + min(len(words), WINDOW_WORDS) // WORDS_A_HEAT
    if sum(warm.values()) < need:
        return []
    found = []
    # A sum of all words is never less than that of the distinct ones, and costs less.
    sums = _sums(bytes(map(warm.get, words, _NONE)))
    for number, most in enumerate(sums[: max(1, len(words) - STEP_WORDS) : STEP_WORDS]):
        if most >= need:
            start = number * STEP_WORDS
            window = words[start : start + WINDOW_WORDS]
            if sum(map(warm.__getitem__, warm.keys() & window)) >= need:
                found.append((start, start + len(window)))
    return found


def _sums(heats: bytes) -> bytes:
    """Return, for each place, the sum of the WINDOW_WORDS bytes from there on: of 2, 4, 8, 16, 32, and of 32 and 4.

    One large number is all places at once, as no sum is more than a byte.
    """
    row = int.from_bytes(heats, "little")
    row += row >> 8
    row = four = row + (row >> 16)
    row += row >> 32
    row += row >> 64
    row += row >> 128
    row += four >> 256
    return row.to_bytes(len(heats), "little")


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
        heat: dict[bytes, int] = {}
        for number, tiers in enumerate(entry["classes"].values(), 1):
            for warmth, words in enumerate(tiers):
                told = words.encode().split(b",") if words else []
                classes.update(dict.fromkeys(told, number))
                heat.update(dict.fromkeys(told if warmth else [], warmth))
        alone = map(int, entry["alone"].split(","))
        rows = [_row(alone), *(_row(map(int, weights.split(","))) for weights in entry["pairs"].values())]
        low, medium, high = entry["levels"]
        if max(heat.values(), default=0) > MOST_HEAT:
            raise ValueError(f"a word of the weights has more heat than {MOST_HEAT}")
        return Weights(
            classes=classes,
            table=b"".join(rows).ljust(1 << 16, bytes([_NOTHING])),
            unit=float(entry["unit"]),
            constant=float(entry["constant"]),
            heat=heat,
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
        best: Signal | None = None
        for first, words in passages_of(normalized):
            for start, end in hot_windows(words, weights.hot, weights.heat, weights.least_heat):
                window = words[start:end]
                marks = marks_of(window, weights.classes)
                margin = margin_of(marks, weights)
                if best is None or margin > best.margin:
                    best = Signal(margin, first + start, window, marks)
        return best

    def detect(self, view: View) -> Detection | None:
        """Return the detection for a normalized text, its span in `view.source`; None below the lowest level."""
        signal = self.signal(view.text)
        weights = self.weights
        if signal is None or signal.margin < weights.levels[0]:
            return None
        severity = _SEVERITIES[sum(signal.margin >= level for level in weights.levels) - 1]
        origins = list(_marks_in(signal.words, weights.classes))
        begin, _ = _span_of(view.text, signal.start + origins[0].first)
        _, end = _span_of(view.text, signal.start + origins[-1].last)
        start, end = view.span(begin, end)
        return Detection(
            rule=MODEL_RULE,
            name="Resembles known attacks",
            category=CATEGORY,
            severity=severity,
            description=_DESCRIPTION,
            matched=", ".join(strongest(signal.marks, [_said(origin.word) for origin in origins], weights)),
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
    table = weights.table
    ranked: list[tuple[int, int, tuple[str, ...]]] = []
    for place, mark in enumerate(marks):
        if mark == GAP:
            continue
        if table[mark] > _NOTHING:
            ranked.append((-table[mark], place, (words[place],)))
        for other, second in enumerate(marks[place + 1 : place + REACH + 1], place + 1):
            if second != GAP and table[mark << 8 | second] > _NOTHING:
                ranked.append((-table[mark << 8 | second], place, (words[place], words[other])))
    chosen: list[str] = []
    named: set[str] = set()
    for _, _, pair in sorted(ranked):
        if len(chosen) == _LONGEST_MATCHED:
            break
        if not named.issuperset(pair):
            named.update(pair)
            chosen.append(" ".join(pair))
    return chosen


def _pieces(normalized: str) -> Iterator[str]:
    """Cut a long text at blanks, so that another thread never waits for long."""
    place, length = 0, len(normalized)
    while length - place > _PIECE_CHARS:
        end = normalized.rfind(" ", place, place + _PIECE_CHARS) + 1 or place + _PIECE_CHARS
        yield normalized[place:end]
        place = end
    yield normalized[place:]


def _span_of(normalized: str, number: int) -> tuple[int, int]:
    """Return where the word of a number stands, as `words_of` counts them, with the apostrophes around it."""
    offset = 0
    for piece in _pieces(normalized):
        raw = piece.encode("utf-8", "surrogatepass")
        plain = raw.translate(_PLAIN, b"'")
        # What is left of the piece when so many words were cut off begins with the one that is asked for.
        words = plain.split(None, number)
        if len(words) > number:
            begin = place = len(plain) - len(words[number])
            while (later := place + raw.count(b"'", 0, begin)) > begin:
                begin = later
            run = _RUN.match(piece, len(raw[:begin].decode("utf-8", "surrogatepass")))
            assert run is not None
            return offset + run.start(), offset + run.end()
        number -= len(words)
        offset += len(piece)
    raise IndexError(number)


def _marks_in(words: Sequence[bytes], classes: Mapping[bytes, int]) -> Iterator[_Mark]:
    """Yield what the marks of some words come from, as `marks_of`."""
    idle = -1
    for number, word in enumerate(words):
        if word in classes:
            yield _Mark(number, number, word)
            idle = -1
        elif idle < 0:
            idle = number
        else:
            yield _Mark(idle, number, b"")
            idle = -1


def _said(word: bytes) -> str:
    return word.decode("utf-8", "surrogatepass")


def _read_beside(name: str) -> bytes:
    """Read a file that lies beside this module, in a folder or in an archive.

    Raises:
        OSError: there is no such file.
    """
    read = getattr(__spec__.loader, "get_data", None)
    if read is None:
        raise FileNotFoundError(name)
    return bytes(read(os.path.join(os.path.dirname(__file__), name)))
