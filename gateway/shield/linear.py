"""The statistical second signal: a linear model over words, and pairs of words in a row. Trains and decides nothing.

Theory of operation. A text's words are its runs of letters in the normalized view. They are read in windows that
overlap by half, so that a short instruction is seen in a long document. Words become tokens: a frequent word is one of
its own; of the others a lexicon gives some a class by what they mean ("desatiende" and "overskrid" have one), which all
words of the class share; the rest are none. A window's margin is the sum of the weights of its distinct tokens and of
its distinct pairs of tokens in a row, over the root of the window's length, plus a constant; the text's margin is the
highest.

Hardly any window is added up: only those whose distinct words have enough heat, which is a small number each. That is
part of the model: it is trained, and its levels are set, with it. And where all words of seven windows together
have too little heat, no window is asked: most of a harmless text costs no more than being cut into words.

The weights are data (`linear.json`, written by `bench/detection/train.py`) and are read at the first use.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from operator import add

from gateway.shield import data_files
from gateway.shield.detections import Detection, Severity
from gateway.shield.normalize import View
from gateway.shield.scoring import MODEL_RULE

WEIGHTS_FILE = "gateway/shield/linear.json"
CATEGORY = "injection"
# Words in a window, and from one window to the next. A shorter rest belongs to the window before it.
WINDOW_WORDS = 36
STEP_WORDS = 18
# Windows in a passage, which are asked together.
PASSAGE_WINDOWS = 7
# A window needs one more of heat for each so many words of its passage: of many windows one is warm by chance.
WORDS_A_HEAT = 16
# A pair of tokens is a number: so many times the first, and the second. Tokens have numbers from 1 on.
SIDE = 1 << 16
# Stands for the categories that have no least margin of their own.
OTHER = "other"
# The form of a weights file this code reads.
VERSION = 5

_PASSAGE_WORDS = (PASSAGE_WINDOWS + 1) * STEP_WORDS
_PIECE_CHARS = 32_768
_LONGEST_MATCHED = 5
_SHORT_WORDS = 8
_PLAIN = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))
(_APOSTROPHE,) = b"'"
_RUN = re.compile("[a-z'\u0080-\U0010ffff]+")
_SEVERITIES = (Severity.LOW, Severity.MEDIUM, Severity.HIGH)
_DESCRIPTION = (
    "The wording as a whole resembles attacks on language models more than it resembles harmless texts. "
    "A hint from statistics, no proof: alone it never blocks."
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained model.

    tokens: the token of each word that has one, in UTF-8. table: the weight of each feature that has one: of a token,
    or of a pair of tokens in a row, SIDE * FIRST + SECOND. unit: what one of a weight is worth. constant: what every
    margin begins with. heat: of each word that has some.
    least_heat: of a window that is added up, if it had no words. hot: the words that have heat.
    levels: least margins for the severities low, medium and high, rising. doubts: margins of the words around a match
    below which it is doubted (`wording`), by its category, or OTHER. slope, offset: of the logistic curve that makes a
    confidence of a margin.
    """

    tokens: Mapping[bytes, int]
    table: Mapping[int, int]
    unit: float
    constant: float
    heat: Mapping[bytes, int]
    least_heat: int
    levels: tuple[float, float, float]
    doubts: Mapping[str, float]
    slope: float
    offset: float
    hot: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Find the hot words."""
        object.__setattr__(self, "hot", frozenset(self.heat))


@dataclass(frozen=True, slots=True)
class Signal:
    """The window that most resembles an attack: its words, and the number of the first in the text."""

    margin: float
    start: int
    words: Sequence[bytes]


def words_of(normalized: str) -> list[bytes]:
    """Cut a normalized text into words in UTF-8: runs of letters, apostrophes left out. Digits and signs are none."""
    raw = normalized.encode("utf-8", "surrogatepass")
    # To leave out what is not there costs as much again.
    return (raw.translate(_PLAIN, b"'") if _APOSTROPHE in raw else raw.translate(_PLAIN)).split()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def windows_of(count: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of so many words that are looked at: of few words all."""
    for start in range(0, max(min(count, 1), count - STEP_WORDS), STEP_WORDS):
        yield start, min(count, start + WINDOW_WORDS)


def passages_of(normalized: str) -> Iterable[tuple[int, list[bytes]]]:
    """Return the words of a normalized text in passages, and the number of each one's first word.

    The windows of a passage are windows of the text, and each is in one passage.
    """
    if len(normalized) > _PIECE_CHARS:
        return _passages_of_many(normalized)
    words = words_of(normalized)
    if len(words) <= _PASSAGE_WORDS:
        return ((0, words),)
    return [
        (place, words[place : place + _PASSAGE_WORDS])
        for place in range(0, max(1, len(words) - STEP_WORDS), PASSAGE_WINDOWS * STEP_WORDS)
    ]


def _passages_of_many(normalized: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the same for a text of several pieces."""
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


def features_of(words: Sequence[bytes], tokens: Mapping[bytes, int]) -> set[int]:
    """Return the features of a window: its distinct tokens, and its distinct pairs of tokens in a row."""
    row = list(map(tokens.get, words))
    features = {SIDE * first + second for first, second in pairwise(row) if first and second}
    features.update(filter(None, row))
    return features


def share_of(count: int) -> float:
    """Return what each feature of a window of so many words counts for: long windows hold more of them."""
    return math.sqrt(_SHORT_WORDS / (count + _SHORT_WORDS))


def hot_windows(
    words: Sequence[bytes], hot: frozenset[bytes], heat: Mapping[bytes, int], need: int
) -> list[tuple[int, int]]:
    """Return the windows of a passage whose distinct words have so much heat. hot: the words that have some."""
    warmth = heat.__getitem__
    found = hot.intersection(words)
    if sum(map(warmth, found)) < need:
        return []
    if len(words) <= WINDOW_WORDS:
        return [(0, len(words))]
    # A window is two steps. What both say together is never less than what they say as one, and costs less.
    steps = [found.intersection(words[start : start + STEP_WORDS]) for start in range(0, len(words), STEP_WORDS)]
    sums = [sum(map(warmth, step)) for step in steps]
    if max(map(add, sums, sums[1:]), default=need) < need:
        return []
    return [
        (start, end)
        for number, (start, end) in enumerate(windows_of(len(words)))
        if sum(sums[number : number + 2]) >= need
        and sum(map(warmth, steps[number].union(*steps[number + 1 : number + 2]))) >= need
    ]


def read_weights(raw: bytes) -> Weights:
    """Read a weights file.

    Raises:
        ValueError: it is of another version or no weights file.
    """
    try:
        entry = json.loads(raw)
        if entry["version"] != VERSION:
            raise ValueError(f"version {entry['version']} of the weights is not {VERSION}")
        heat = {word: int(warmth) for warmth, words in entry["heat"].items() for word in words.encode().split(b",")}
        same = {word: word for word in heat}
        tokens = {
            same.get(word, word): number
            for number, words in enumerate(entry["tokens"].encode().split(b","), 1)
            for word in words.split()
        }
        table = {number: int(weight) for number, weight in enumerate(entry["alone"].split(","), 1)}
        for first, row in entry["pairs"].items():
            for pair in row.split(","):
                second, weight = pair.split()
                table[SIDE * int(first) + int(second)] = int(weight)
        low, medium, high = entry["levels"]
        return Weights(
            tokens=tokens,
            table=table,
            unit=float(entry["unit"]),
            constant=float(entry["constant"]),
            heat=heat,
            least_heat=int(entry["least_heat"]),
            levels=(float(low), float(medium), float(high)),
            doubts={category: float(least) for category, least in entry["doubts"].items()},
            slope=float(entry["slope"]),
            offset=float(entry["offset"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no weights file") from error


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
            self._weights = read_weights(data_files.read(WEIGHTS_FILE))
        return self._weights

    def signal(self, normalized: str) -> Signal | None:
        """Return the strongest window of a normalized text, or None when no window is worth adding up."""
        weights = self._weights or self.weights
        best: Signal | None = None
        for first, words in passages_of(normalized):
            need = weights.least_heat + len(words) // WORDS_A_HEAT
            for start, end in hot_windows(words, weights.hot, weights.heat, need):
                window = words[start:end]
                margin = margin_of(window, weights)
                if best is None or margin > best.margin:
                    best = Signal(margin, first + start, window)
        return best

    def detect(self, view: View) -> Detection | None:
        """Return the detection for a normalized text, its span in `view.source`; None below the lowest level."""
        signal = self.signal(view.text)
        if signal is None or signal.margin < self.weights.levels[0]:
            return None
        weights = self.weights
        severity = _SEVERITIES[sum(signal.margin >= level for level in weights.levels) - 1]
        # A window that was added up has hot words: it is told from the first to the last of them.
        hot = [number for number, word in enumerate(signal.words, signal.start) if word in weights.hot]
        begin, _ = _span_of(view.text, hot[0])
        _, end = _span_of(view.text, hot[-1])
        start, end = view.span(begin, end)
        return Detection(
            rule=MODEL_RULE,
            name="Resembles known attacks",
            category=CATEGORY,
            severity=severity,
            description=_DESCRIPTION,
            matched=", ".join(strongest(signal.words, weights)),
            confidence=round(1 / (1 + math.exp(-weights.slope * signal.margin - weights.offset)), 3),
            score=0,
            count=1,
            start=start,
            end=end,
            view="normalized",
            standards=("OWASP LLM01:2025", "MITRE ATLAS AML.T0051"),
        )


def margin_of(words: Sequence[bytes], weights: Weights) -> float:
    """Add up one window."""
    total = sum(map(weights.table.get, features_of(words, weights.tokens), repeat(0)))
    return total * weights.unit * share_of(len(words)) + weights.constant


def strongest(words: Sequence[bytes], weights: Weights) -> list[str]:
    """Return the words and pairs of a window that speak most for an attack, the strongest first, each once."""
    weight_of, row = weights.table.get, list(map(weights.tokens.get, words))
    ranked = [(-weight, place, 1) for place, token in enumerate(row) if token and (weight := weight_of(token, 0)) > 0]
    for place, (first, second) in enumerate(pairwise(row)):
        if first and second and (weight := weight_of(SIDE * first + second, 0)) > 0:
            ranked.append((-weight, place, 2))
    chosen: list[str] = []
    named: set[bytes] = set()
    for _, place, count in sorted(ranked):
        if len(chosen) == _LONGEST_MATCHED:
            break
        told = words[place : place + count]
        if not named.issuperset(told):
            named.update(told)
            chosen.append(b" ".join(told).decode("utf-8", "surrogatepass"))
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
        raw = _utf8(piece)
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
