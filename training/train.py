"""Train the attack model:

    python -m training.train

reads the texts of `training.corpus`, writes `gateway/shield/attack-model.json`, and takes a few minutes on one core. It
needs `training/requirements.txt` in an environment of its own. The same texts and rules give the same weights.

Theory of operation. A logistic regression is fitted to all texts outside the test folds. A text weighs less, the more
texts its source has, and attacks weigh as much as harmless texts. Only the features that weigh most are kept, and the
regression is fitted again to those. The margins from which the shield asks for a review and blocks come from texts that
no model has seen: all families are cut into five groups, and each group is judged by a model trained on the others.
"""

import argparse
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from gateway.shield.attack_model import VERSION, WEIGHTS_FILE
from training.corpus import OTHERS, Row, digests, read_rows
from training.features import RULE_VALUE, Examples, make_examples

TARGET = Path(__file__).resolve().parents[1] / WEIGHTS_FILE
LEFT_OUT = Path(__file__).with_name("left-out.json")
GROUPS = 5
KEPT_FEATURES = 20_000
# Of plain harmless texts, which make no use of the words of attacks, and of those that do.
REVIEW_SHARE, BLOCK_SHARE = 0.004, 0.0005
TRIGGER_REVIEW_SHARE = 0.029
PLAIN = "benign"
_STRENGTH = 10.0  # of the fit: the inverse of the regularization
_LARGEST = 127
_FEW_TEXTS = 10  # a family of fewer attacks has no figure of its own


@dataclass(frozen=True, slots=True)
class Fitted:
    """A regression. features, rules: the weight of each column of `Examples`."""

    features: np.ndarray
    rules: np.ndarray
    constant: float

    def margins(self, examples: Examples) -> np.ndarray:
        """Return the margin of each text: the highest of its parts, and the rules that matched it."""
        of_texts = np.full(examples.wholes.shape[0], -np.inf)
        np.maximum.at(of_texts, examples.part_texts, examples.parts @ self.features - examples.penalties)
        return np.asarray(of_texts + examples.rules @ self.rules + self.constant)


def weigh(rows: Sequence[Row], chosen: np.ndarray) -> np.ndarray:
    """Return what each text weighs in a fit to the chosen ones."""
    counts = Counter((row.is_attack, row.source) for row, is_chosen in zip(rows, chosen, strict=True) if is_chosen)
    weights = np.array([counts[row.is_attack, row.source] ** -0.5 if is_chosen else 0.0
                        for row, is_chosen in zip(rows, chosen, strict=True)])  # fmt: skip
    is_attack = np.array([row.is_attack for row in rows])
    for label in (is_attack, ~is_attack):
        weights[label] *= chosen.sum() / 2 / weights[label].sum()
    return weights


def fit(examples: Examples, rows: Sequence[Row], chosen: np.ndarray) -> Fitted:
    """Fit the model to the chosen texts. Long harmless texts count as a whole and in parts, as a scan reads them."""
    is_attack = np.array([row.is_attack for row in rows])
    weights = weigh(rows, chosen)
    texts = np.flatnonzero(chosen)
    counts = np.bincount(examples.part_texts, minlength=len(rows))
    parts = np.flatnonzero(chosen[examples.part_texts] & ~is_attack[examples.part_texts]
                           & (counts[examples.part_texts] > 1))  # fmt: skip
    of_parts = examples.part_texts[parts]
    features = sp.vstack([examples.wholes[texts], examples.parts[parts]]).tocsr()
    rules = sp.vstack([examples.rules[texts], examples.rules[of_parts]]).tocsr()
    labels = np.r_[is_attack[texts], is_attack[of_parts]]
    sample = np.r_[weights[texts], weights[of_parts] / counts[of_parts]]

    def regress(columns: np.ndarray) -> Fitted:
        model = LogisticRegression(C=_STRENGTH, max_iter=2000, tol=1e-5)
        model.fit(sp.hstack([features[:, columns], rules]).tocsr(), labels, sample_weight=sample)
        of_features = np.zeros(features.shape[1])
        of_features[columns] = model.coef_[0][: len(columns)]
        return Fitted(of_features, model.coef_[0][len(columns) :], float(model.intercept_[0]))

    first = regress(np.arange(features.shape[1]))
    worth = np.abs(first.features) * np.sqrt(np.asarray((features > 0).sum(0)).ravel())
    return regress(np.sort(np.argsort(-worth, kind="stable")[:KEPT_FEATURES]))


def left_out_margins(examples: Examples, rows: Sequence[Row]) -> np.ndarray:
    """Return the margin of each text by a model that has seen none of its family; not a number for test texts."""
    margins = np.full(len(rows), np.nan)
    group = np.array([zlib.crc32(row.family.encode()) % GROUPS for row in rows])
    is_train = np.array([not row.is_test for row in rows])
    for number in range(GROUPS):
        is_out = is_train & (group == number)
        margins[is_out] = fit(examples, rows, is_train & (group != number)).margins(examples)[is_out]
        print(f"left out: group {number + 1} of {GROUPS}", flush=True)
    return margins


def level_at(margins: np.ndarray, share: float) -> float:
    """Return the margin that only this share of `margins` lies above."""
    return float(np.sort(margins)[::-1][int(share * len(margins))])


def describe(rows: Sequence[Row], margins: np.ndarray, level: float) -> dict[str, Any]:
    """Return what was found of each family of attacks that was left out, and the mean over families."""
    found: dict[str, list[bool]] = {}
    flagged: dict[str, list[bool]] = {}
    for row, margin in zip(rows, margins, strict=True):
        if not row.is_test:
            by = row.family if row.is_attack else "plain" if row.kind == PLAIN else "with trigger words"
            (found if row.is_attack else flagged).setdefault(by, []).append(bool(margin >= level))
    large = {family: hits for family, hits in found.items() if len(hits) >= _FEW_TEXTS}
    return {
        "found_mean": round(float(np.mean([np.mean(hits) for hits in large.values()])), 4),
        "found": {family: [sum(hits), len(hits)] for family, hits in sorted(large.items())},
        "flagged": {family: [sum(hits), len(hits)] for family, hits in sorted(flagged.items())},
    }


def pack(fitted: Fitted, examples: Examples, levels: tuple[float, float], about: dict[str, Any]) -> dict[str, Any]:
    """Return the weights file: weights as whole numbers of one unit, features grouped by their weight."""
    unit = float(np.quantile(np.abs(fitted.features[fitted.features != 0]), 0.9995)) / _LARGEST
    whole = np.clip(np.rint(fitted.features / unit), -_LARGEST, _LARGEST).astype(int)
    groups: dict[str, dict[int, list[str]]] = {"w": {}, "p": {}, "s": {}}
    for number in np.flatnonzero(whole):
        kind, *words = examples.names[number]
        groups[kind].setdefault(int(whole[number]), []).append(" ".join(words))
    packed = {
        kind: {str(weight): " ".join(sorted(words)) for weight, words in sorted(rows.items())}
        for kind, rows in groups.items()
    }
    return {
        "version": VERSION,
        "about": about,
        "unit": round(unit, 6),
        "constant": round(fitted.constant, 4),
        "review_at": round(levels[0], 4),
        "block_at": round(levels[1], 4),
        "rules": {name: round(float(weight) * RULE_VALUE, 3)
                  for name, weight in sorted(zip(examples.rule_names, fitted.rules, strict=True))},
        "words": packed["w"],
        "pairs": packed["p"],
        "skips": packed["s"],
    }  # fmt: skip


def main() -> None:
    """Train, and write the weights and the figures of left-out families."""
    parser = argparse.ArgumentParser(prog="python -m training.train")
    parser.add_argument("--data", type=Path, default=OTHERS, help="folder of the texts of others")
    options = parser.parse_args()
    rows = read_rows(options.data)
    examples = make_examples(rows)
    print(f"{len(rows)} texts, {len(examples.names)} features, {len(examples.rule_names)} rules", flush=True)
    margins = left_out_margins(examples, rows)
    is_harmless = np.array([not row.is_attack and not row.is_test for row in rows])
    is_plain = is_harmless & np.array([row.kind == PLAIN for row in rows])
    review_levels = (
        level_at(margins[is_plain], REVIEW_SHARE),
        level_at(margins[is_harmless & ~is_plain], TRIGGER_REVIEW_SHARE),
    )
    levels = max(review_levels), level_at(margins[is_plain], BLOCK_SHARE)
    fitted = fit(examples, rows, np.array([not row.is_test for row in rows]))
    about = {"texts": digests(options.data), "rows": int(sum(not row.is_test for row in rows))}
    TARGET.write_text(json.dumps(pack(fitted, examples, levels, about), ensure_ascii=False, indent=1) + "\n", "utf-8")
    LEFT_OUT.write_text(json.dumps(describe(rows, margins, levels[0]), indent=1) + "\n", "utf-8")
    print(f"wrote {TARGET.name} and {LEFT_OUT.name}: review at {levels[0]:.2f}, block at {levels[1]:.2f}")


if __name__ == "__main__":
    main()
