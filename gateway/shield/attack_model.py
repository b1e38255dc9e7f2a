"""One score for the wording of a text: a linear model over words, and over pairs of words. Trains and decides nothing.

Theory of operation. A normalized text is cut into tokens: words, signs, and single characters of scripts without blanks
between words. The features of a text are its distinct tokens, its distinct pairs of tokens in a row, and its distinct
pairs with one token between. Its margin is the sum of their weights over a power of their number, plus a constant, plus
the weights of the rules that matched, less a part that grows with the logarithm of its length. A long text is read in
parts that overlap a little, and has the highest margin of them, so that harmless text around an attack thins it out
less and a scan needs little memory.

Python runs only a few lines a part; sets of pairs come from `zip`, and the sum is a `map` over `dict.get`.

The weights are data (`attack-model.json`), written by `python -m training.train`, and are read at the first use.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import NamedTuple

from gateway.shield import data_files
from gateway.shield.detections import Detection, Severity
from gateway.shield.scoring import MODEL_RULE, MODEL_SAYS

WEIGHTS_FILE = "gateway/shield/attack-model.json"
CATEGORY = "injection"
# The form of a weights file that this code reads.
VERSION = 1
PART_TOKENS = 512
STEP_TOKENS = 448
EXPONENT = 0.4
# Stand beside the features of a part, so that a few words alone are no sure sign.
EXTRA_FEATURES = 30
# Chosen on families that were left out of training. About as long are most attacks.
_LENGTH_WEIGHT, _USUAL_TOKENS = 0.4, 64
_MOST_PHRASES = 5
_PIECE_CHARS = 65_536
# Characters of scripts without blanks between words: Thai, Lao, Burmese, Khmer, kana, ideographs.
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)
_SIGNS = ".,:;!?\"()[]<>{}/|=#*`'-_~@$%&+\\"
_SAME_DIGIT = str.maketrans("123456789", "000000000")
_DESCRIPTION = "The wording resembles attacks on language models. What weighed most: "

Pair = tuple[str, str]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Features:
    """The distinct features of a part of a text. skips: pairs with one token between."""

    words: set[str]
    pairs: set[Pair]
    skips: set[Pair]

    def scale(self) -> float:
        """Return what the sum of the weights is multiplied by: a long part has more features of any kind."""
        return float((len(self.words) + len(self.pairs) + len(self.skips) + EXTRA_FEATURES) ** -EXPONENT)


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained model.

    words, pairs, skips: the weight of each feature that has one, as a whole number of `unit`. rules: what each rule
    that matched adds to the margin. constant: of every margin. review_at, block_at: the margins from which a text asks
    for a review and is blocked.
    """

    words: Mapping[str, int]
    pairs: Mapping[Pair, int]
    skips: Mapping[Pair, int]
    rules: Mapping[str, float]
    unit: float
    constant: float
    review_at: float
    block_at: float


class Read(NamedTuple):
    """The highest margin of a normalized text, and the half-open span of the piece of it that has this margin."""

    margin: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """A feature that speaks for an attack, and its half-open span in the normalized text."""

    weight: int
    start: int
    end: int


def tokens_of(normalized: str) -> list[str]:
    """Cut a normalized text into tokens. Every digit is a 0."""
    text = normalized.translate(_SAME_DIGIT)
    if not text.isascii():
        text = _ALONE.sub(r" \g<0> ", text)
    for sign in _SIGNS:
        if sign in text:
            text = text.replace(sign, f" {sign} ")
    return text.split()


def features_of(tokens: Sequence[str]) -> Features:
    """Return the features of tokens in a row."""
    return Features(set(tokens), set(pairwise(tokens)), set(zip(tokens, tokens[2:], strict=False)))


def length_penalty(tokens: int) -> float:
    """Return what the margin of a part of so many tokens loses: most attacks are short, and a long part has more of
    everything, so that of long texts more reached a margin by chance.
    """
    return _LENGTH_WEIGHT * math.log(tokens / _USUAL_TOKENS + 0.25)


def parts_of(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the parts of a text; a short text is one."""
    for start in range(0, max(1, len(tokens) - (PART_TOKENS - STEP_TOKENS)), STEP_TOKENS):
        yield tokens[start : start + PART_TOKENS]


def read_weights(raw: bytes) -> Weights:
    """Read a weights file.

    Raises:
        ValueError: it is of another version, or no weights file.
    """
    try:
        entry = json.loads(raw)
        if entry["version"] != VERSION:
            raise ValueError(f"version {entry['version']} of the weights is not {VERSION}")
        weights = Weights(
            words={word: int(weight) for weight, row in entry["words"].items() for word in row.split()},
            pairs=_read_pairs(entry["pairs"]),
            skips=_read_pairs(entry["skips"]),
            rules={rule: float(weight) for rule, weight in entry["rules"].items()},
            unit=float(entry["unit"]),
            constant=float(entry["constant"]),
            review_at=float(entry["review_at"]),
            block_at=float(entry["block_at"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no weights file") from error
    if not all(map(math.isfinite, (weights.unit, weights.constant, weights.review_at, weights.block_at))):
        raise ValueError("a number of the weights is not finite")
    return weights


def _read_pairs(rows: Mapping[str, str]) -> dict[Pair, int]:
    pairs: dict[Pair, int] = {}
    for weight, row in rows.items():
        words = iter(row.split())
        pairs.update(zip(zip(words, words, strict=True), repeat(int(weight))))
    return pairs


class AttackModel:
    """Tells how much a text resembles attacks. Immutable in effect: threads may share it."""

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

    def read(self, normalized: str) -> Read:
        """Return the highest margin of the parts of a normalized text, without the rules, and about where it is."""
        weights = self.weights
        words, pairs, skips = weights.words.get, weights.pairs.get, weights.skips.get
        best, start, end = Read(-math.inf, 0, 0), 0, 0
        for piece in _pieces(normalized):
            start, end = end, end + len(piece)
            for part in parts_of(tokens_of(piece)):
                found = features_of(part)
                total = (
                    sum(map(words, found.words, repeat(0)))
                    + sum(map(pairs, found.pairs, repeat(0)))
                    + sum(map(skips, found.skips, repeat(0)))
                )
                margin = weights.constant + weights.unit * total * found.scale() - length_penalty(len(part))
                best = max(best, Read(margin, start, end))
        return best

    def detect(
        self, normalized: str, read: Read, rules: Sequence[str], place: Callable[[int, int], Span | None]
    ) -> Detection | None:
        """Return the detection for a text that was read, with the rules that matched it; None below a review.

        place: leads a span in the normalized text back to the text as sent; None if it must not be repeated.
        """
        weights = self.weights
        margin = read.margin + sum(map(weights.rules.get, rules, repeat(0.0)))
        if margin < weights.review_at:
            return None
        phrases = [
            (normalized[phrase.start : phrase.end], span)
            for phrase in self._phrases(normalized, read)
            if (span := place(phrase.start, phrase.end))
        ]
        weighty = sorted((rule for rule in rules if weights.rules.get(rule, 0.0) > 0), key=weights.rules.__getitem__)
        named = [f'"{words}"' for words, _ in phrases]
        named += [f"the rule {rule}" for rule in weighty[: -_MOST_PHRASES - 1 : -1]]
        spans = sorted({span for _, span in phrases})
        (matched, (start, end)), *_ = phrases or [("", (0, 0))]
        return Detection(
            rule=MODEL_RULE,
            name=MODEL_SAYS[0],
            category=CATEGORY,
            severity=Severity.CRITICAL if margin >= weights.block_at else Severity.HIGH,
            description=f"{_DESCRIPTION}{', '.join(named) or 'many small signs'}.",
            matched=matched,
            confidence=round(1 / (1 + math.exp(-min(margin, 50.0))), 3),
            score=0,
            count=max(1, len(spans)),
            start=start,
            end=end,
            view="normalized",
            standards=("OWASP LLM01:2025", "MITRE ATLAS AML.T0051"),
            spans=tuple(spans) if len(spans) > 1 else (),
        )

    def _phrases(self, normalized: str, read: Read) -> list[Phrase]:
        """Return the features that speak most for an attack, strongest first, none in another."""
        weights = self.weights
        found: dict[object, Phrase] = {}
        before: list[tuple[str, int, int]] = []
        for token, start, end in _placed(normalized, read):
            before = [*before[-2:], (token, start, end)]
            keys: list[tuple[object, int, int]] = [(token, weights.words.get(token, 0), start)]
            if len(before) > 1:
                first, begin, _ = before[-2]
                keys.append(((first, token), weights.pairs.get((first, token), 0), begin))
            if len(before) > 2:
                first, begin, _ = before[-3]
                keys.append((("", first, token), weights.skips.get((first, token), 0), begin))
            for key, weight, begin in keys:
                if weight > 0 and key not in found:
                    found[key] = Phrase(weight, begin, end)
        chosen: list[Phrase] = []
        for phrase in sorted(found.values(), key=lambda one: (-one.weight, one.start)):
            if all(phrase.end <= other.start or other.end <= phrase.start for other in chosen):
                chosen.append(phrase)
            if len(chosen) == _MOST_PHRASES:
                break
        return chosen


def _placed(normalized: str, read: Read) -> Iterator[tuple[str, int, int]]:
    """Yield the tokens of a piece of a normalized text with their half-open spans."""
    piece = normalized[read.start : read.end]
    text, place = piece.translate(_SAME_DIGIT), 0
    for token in tokens_of(piece):
        start = text.index(token, place)
        place = start + len(token)
        yield token, read.start + start, read.start + place


def _pieces(normalized: str) -> Iterator[str]:
    """Cut a long text at blanks, so that a scan needs little memory at a time."""
    place, length = 0, len(normalized)
    while length - place > _PIECE_CHARS:
        end = normalized.rfind(" ", place, place + _PIECE_CHARS) + 1 or place + _PIECE_CHARS
        yield normalized[place:end]
        place = end
    yield normalized[place:]
