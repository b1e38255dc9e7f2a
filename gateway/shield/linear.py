"""The statistical second signal: a linear model over words, their pairs and triples. Trains nothing, decides nothing.

Theory of operation. A text's words are its runs of letters in the normalized view. They are read in windows of
WINDOW_WORDS words that overlap by half, so that a short instruction is seen in a long document. A window's margin is
the sum of the weights of its distinct n-grams, over the root of the window's length, plus a constant; the text's margin
is the highest. Most windows are never added up: only those with LEAST_HOT distinct words that speak strongly for an
attack, and most texts have no such window. That is part of the model: it is trained, and its levels are set, with it.

The weights are data (`linear.json`, written by `bench/detection/train.py`) and are read at the first use.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat

from gateway.shield.detections import Detection, Severity
from gateway.shield.normalize import View
from gateway.shield.scoring import MODEL_RULE

WEIGHTS_FILE = "linear.json"
CATEGORY = "injection"
# Words in a window, and from one window to the next. A shorter rest belongs to the window before it.
WINDOW_WORDS = 64
STEP_WORDS = 32
LEAST_HOT = 3
# The form of a weights file this code reads.
VERSION = 1

# So many windows of one piece of a text are added up, those with the most hot words: the time is bounded.
_MOST_WINDOWS = 256
_PIECE_CHARS = 32_768
_LONGEST_MATCHED = 5
_SHORT_WORDS = 8
_WORD_CHARS = 6
_PLAIN = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))
_RUN = re.compile("[a-z'\u0080-\U0010ffff]+")
_NO_WEIGHT = repeat(0)
_SEVERITIES = (Severity.LOW, Severity.MEDIUM, Severity.HIGH)
_DESCRIPTION = (
    "The wording as a whole resembles attacks on language models more than it resembles harmless texts. "
    "A hint from statistics, no proof: alone it never blocks."
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained model.

    features: weight of each n-gram, words joined by one blank; -127 to 127. unit: what one of a weight is worth.
    constant: what every margin begins with. hot: the words without which no window is added up.
    levels: least margins for the severities low, medium and high, rising. slope, offset: of the logistic curve that
    makes a confidence of a margin.
    """

    features: Mapping[str, int]
    unit: float
    constant: float
    hot: frozenset[str]
    levels: tuple[float, float, float]
    slope: float
    offset: float


@dataclass(frozen=True, slots=True)
class Signal:
    """The window that most resembles an attack. start, end: half-open span of words. words: of that window."""

    margin: float
    start: int
    end: int
    words: tuple[str, ...]


def words_of(normalized: str) -> list[str]:
    """Cut a normalized text into words: runs of letters, apostrophes left out. Digits and signs are none."""
    raw = normalized.encode("utf-8", "surrogatepass").translate(_PLAIN, b"'")
    return raw.decode("utf-8", "surrogatepass").split()


def windows_of(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of words that are looked at, at least one."""
    last = max(0, len(words) - STEP_WORDS - 1)
    for start in range(0, last + 1, STEP_WORDS):
        yield start, min(len(words), start + WINDOW_WORDS)


def grams_of(words: Sequence[str]) -> set[str]:
    """Return the distinct words, pairs and triples, each joined by blanks."""
    grams = set(words)
    grams.update(map(" ".join, zip(words, words[1:], strict=False)))
    grams.update(map(" ".join, zip(words, words[1:], words[2:], strict=False)))
    return grams


def share_of(words: Sequence[str]) -> float:
    """Return what each n-gram of a window counts for: long windows hold more of them, and long words are many."""
    length = max(len(words), sum(map(len, words)) / _WORD_CHARS)
    return math.sqrt(_SHORT_WORDS / (length + _SHORT_WORDS))


def read_weights(raw: bytes) -> Weights:
    """Read a weights file.

    Raises:
        ValueError: it is of another version or no weights file.
    """
    try:
        entry = json.loads(raw)
        if entry["version"] != VERSION:
            raise ValueError(f"version {entry['version']} of the weights is not {VERSION}")
        features: dict[str, int] = {}
        for weight, grams in entry["features"].items():
            features.update(dict.fromkeys(grams.split(","), int(weight)))
        low, medium, high = entry["levels"]
        return Weights(
            features=features,
            unit=float(entry["unit"]),
            constant=float(entry["constant"]),
            hot=frozenset(entry["hot"].split(",")),
            levels=(float(low), float(medium), float(high)),
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
            self._weights = read_weights(_read_beside(WEIGHTS_FILE))
        return self._weights

    def signal(self, normalized: str) -> Signal | None:
        """Return the strongest window of a normalized text, or None when no window is worth adding up."""
        best: Signal | None = None
        done = 0
        words: list[str] = []
        for piece, is_last in _pieces(normalized):
            words += words_of(piece)
            best = self._stronger(best, words, done, is_last=is_last)
            # The windows that begin later begin where these end, as if the text had come in one piece.
            seen = max(0, len(words) - WINDOW_WORDS) // STEP_WORDS * STEP_WORDS
            done += seen
            words = words[seen:]
        return best

    def _stronger(self, best: Signal | None, words: Sequence[str], before: int, *, is_last: bool) -> Signal | None:
        """Add up the windows of some words, of which `before` others stand in front; only the last may be shorter."""
        weights = self.weights
        if len(words) <= WINDOW_WORDS and len(weights.hot.intersection(words)) < LEAST_HOT:
            return best
        for start, end in hot_windows(words, weights.hot):
            if end - start < WINDOW_WORDS and not is_last:
                continue
            window = words[start:end]
            total = sum(map(weights.features.get, grams_of(window), _NO_WEIGHT))
            margin = total * weights.unit * share_of(window) + weights.constant
            if best is None or margin > best.margin:
                best = Signal(margin, before + start, before + end, tuple(window))
        return best

    def detect(self, view: View) -> Detection | None:
        """Return the detection for a normalized text, its span in `view.source`; None below the lowest level."""
        signal = self.signal(view.text)
        weights = self.weights
        if signal is None or signal.margin < weights.levels[0]:
            return None
        severity = _SEVERITIES[sum(signal.margin >= level for level in weights.levels) - 1]
        start, end = view.span(*_chars_of(view.text, signal.start, signal.end))
        return Detection(
            rule=MODEL_RULE,
            name="Resembles known attacks",
            category=CATEGORY,
            severity=severity,
            description=_DESCRIPTION,
            matched=", ".join(self.strongest(signal.words)),
            confidence=round(1 / (1 + math.exp(-weights.slope * signal.margin - weights.offset)), 3),
            score=0,
            count=1,
            start=start,
            end=end,
            view="normalized",
            standards=("OWASP LLM01:2025", "MITRE ATLAS AML.T0051"),
        )

    def strongest(self, words: Sequence[str]) -> list[str]:
        """Return the n-grams of a window that speak most for an attack, none inside another, the strongest first."""
        features = self.weights.features
        known = sorted((-weight, gram) for gram in grams_of(words) if (weight := features.get(gram, 0)) > 0)
        chosen: list[str] = []
        for _, gram in known:
            if not any(f" {gram} " in f" {other} " or f" {other} " in f" {gram} " for other in chosen):
                chosen.append(gram)
            if len(chosen) == _LONGEST_MATCHED:
                break
        return chosen


def hot_windows(words: Sequence[str], hot: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the windows that hold enough distinct hot words."""
    if len(words) <= WINDOW_WORDS:
        yield 0, len(words)
        return
    blocks: dict[int, set[str]] = {}
    for place in compress(range(len(words)), map(hot.__contains__, words)):
        blocks.setdefault(place // STEP_WORDS, set()).add(words[place])
    counted: list[tuple[int, int]] = []
    none: set[str] = set()
    for block in range((len(words) - 1) // STEP_WORDS):
        here, after = blocks.get(block, none), blocks.get(block + 1, none)
        if len(here) + len(after) >= LEAST_HOT and (count := len(here | after)) >= LEAST_HOT:
            counted.append((-count, block * STEP_WORDS))
    if len(counted) > _MOST_WINDOWS:
        counted = sorted(counted)[:_MOST_WINDOWS]
    for _, start in counted:
        yield start, min(len(words), start + WINDOW_WORDS)


def _pieces(normalized: str) -> Iterator[tuple[str, bool]]:
    """Cut a long text at blanks, so that another thread never waits for long; tell which piece is the last."""
    place, length = 0, len(normalized)
    while length - place > _PIECE_CHARS:
        end = normalized.rfind(" ", place, place + _PIECE_CHARS) + 1 or place + _PIECE_CHARS
        yield normalized[place:end], False
        place = end
    yield normalized[place:], True


def _chars_of(normalized: str, start: int, end: int) -> tuple[int, int]:
    """Return the half-open span of characters of a non-empty span of words."""
    first = last = (0, 0)
    number = 0
    for run in _RUN.finditer(normalized):
        if not run[0].strip("'"):
            continue
        if number == start:
            first = run.span()
        number += 1
        if number == end:
            last = run.span()
            break
    return first[0], last[1]


def _read_beside(name: str) -> bytes:
    """Read a file that lies beside this module, in a folder or in an archive.

    Raises:
        OSError: there is no such file.
    """
    read = getattr(__spec__.loader, "get_data", None)
    if read is None:
        raise FileNotFoundError(name)
    return bytes(read(os.path.join(os.path.dirname(__file__), name)))
