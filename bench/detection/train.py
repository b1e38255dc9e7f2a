"""Trains the shield's linear model on labelled texts: python -m bench.detection.train --data DIR --out FILE

Standard library only, and the same weights for the same texts. The levels are set on sources left out of training, so
that the medium one, which asks for review, flags at most BENIGN_SHARE of plain and HARD_SHARE of hard harmless texts.
With --leave-one-out nothing is written: the figures on sources left out are printed, with the rules and without.
"""

import argparse
import hashlib
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.detection.fitting import HARMLESS, Corpus, Fit, Text, build, margins, read_harmless, read_texts, train
from bench.detection.rows import FILES, NEEDED, NoData, Row, read_rows
from gateway.shield import Direction, Severity, load
from gateway.shield.linear import VERSION, WINDOW_WORDS, Weights
from gateway.shield.scoring import MODEL_POINTS, MODEL_RULE

BENIGN_SHARE = 0.003
HARD_SHARE = 0.02
# The low level may flag so many times as many; the high level so many times fewer.
LOW_TIMES = 4
HIGH_TIMES = 0.2


def leave_out(texts: Sequence[Text], folds: int = 6) -> list[frozenset[str]]:
    """Deal the families into groups that are left out together, attacks and harmless texts evenly."""
    attacks = Counter(text.family for text in texts if text.is_attack)
    harmless = Counter(text.family for text in texts if not text.is_attack and text.family not in attacks)
    groups: list[set[str]] = [set() for _ in range(folds)]
    for counts in (attacks, harmless):
        ranked = sorted(counts, key=lambda family: (-counts[family], family))
        for place, family in enumerate(ranked):
            groups[place % folds].add(family)
    # What was disguised is authored: it goes where that goes.
    for group in groups:
        if "authored" in group:
            for other in groups:
                other.discard("obfuscated")
            group.add("obfuscated")
    return [frozenset(group - {HARMLESS}) for group in groups]


def left_out_margins(corpus: Corpus) -> dict[int, float]:
    """Return the margin of each text under a model that has seen nothing of its family."""
    found: dict[int, float] = {}
    for group in leave_out(corpus.texts):
        found.update(margins(corpus, train(corpus, group), group))
    return found


def levels_of(corpus: Corpus, found: dict[int, float]) -> tuple[float, float, float]:
    """Return the least margins of the three levels: those at which few enough harmless texts are flagged."""
    plain, hard = (
        sorted(
            (
                found.get(number, -math.inf)
                for number, text in enumerate(corpus.texts)
                if not text.is_attack and text.is_hard is is_hard and text.file in ("benign", "injection")
            ),
            reverse=True,
        )
        for is_hard in (False, True)
    )

    def level(times: float) -> float:
        limits = [
            group[int(len(group) * share * times)]
            for group, share in ((plain, BENIGN_SHARE), (hard, HARD_SHARE))
            if group
        ]
        return max([0.01, *(limit + 0.001 for limit in limits if limit > -math.inf)])

    return level(LOW_TIMES), level(1), level(HIGH_TIMES)


def curve_of(corpus: Corpus, found: dict[int, float]) -> tuple[float, float]:
    """Fit confidence = 1 / (1 + exp(-slope * margin - offset)) to texts left out, both classes weighing the same."""
    pairs = [(margin, corpus.texts[number].is_attack) for number, margin in sorted(found.items())]
    attacks = sum(is_attack for _, is_attack in pairs)
    parts = (0.5 / max(1, len(pairs) - attacks), 0.5 / max(1, attacks))
    slope, offset = 1.0, 0.0
    for _ in range(400):
        along = across = 0.0
        for margin, is_attack in pairs:
            slip = parts[is_attack] * (1 / (1 + math.exp(-max(-30.0, slope * margin + offset))) - is_attack)
            along += slip * margin
            across += slip
        slope, offset = max(0.05, slope - 0.5 * along), offset - 0.5 * across
    return slope, offset


def weights_of(fit: Fit, levels: tuple[float, float, float], curve: tuple[float, float]) -> Weights:
    """Put a model and its levels together."""
    return Weights(
        features=fit.features,
        unit=fit.unit,
        constant=fit.constant,
        hot=fit.hot,
        levels=levels,
        slope=curve[0],
        offset=curve[1],
    )


def write_weights(weights: Weights, provenance: dict[str, object]) -> bytes:
    """Write a weights file, the same bytes for the same model."""
    by_weight: dict[int, list[str]] = defaultdict(list)
    for gram, weight in weights.features.items():
        by_weight[weight].append(gram)
    entry = {
        "version": VERSION,
        "provenance": provenance,
        "window_words": WINDOW_WORDS,
        "unit": float(f"{weights.unit:.9g}"),
        "constant": float(f"{weights.constant:.9g}"),
        "levels": [round(level, 4) for level in weights.levels],
        "slope": round(weights.slope, 4),
        "offset": round(weights.offset, 4),
        "hot": ",".join(sorted(weights.hot)),
        "features": {str(weight): ",".join(sorted(by_weight[weight])) for weight in sorted(by_weight)},
    }
    return json.dumps(entry, indent=1, ensure_ascii=True).encode("ascii") + b"\n"
