"""Labelled texts that were written for this project: rounds, the validation suite, harmless texts from templates.

The rounds are those of README.md, each written before anything was mended by it; `written.jsonl` holds them.
"""

import hashlib
from pathlib import Path

from bench.detection.harmless import harmless_texts
from bench.detection.rows import Row, read_lines
from gateway.shield import Direction
from gateway.shield.suite import SUITE_FILE, Expectation, load_suite

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = Path(__file__).with_name("written.jsonl")
SUITE = "suite"
HARMLESS = "harmless"
# Whether a text holds a secret or a number is not told by its wording.
_OTHER_CATEGORIES = ("secret", "pii", "financial")


def own_rows() -> list[Row]:
    """Return them all: a round is a source, as `written/4`; texts from templates are a file of their own."""
    with WRITTEN.open(encoding="utf-8") as lines:
        rows = list(read_lines(lines, WRITTEN.name, None))
    for case in load_suite():
        is_plain = case.obfuscation is None and case.direction is Direction.INBOUND
        if is_plain and case.category not in _OTHER_CATEGORIES:
            is_attack = case.expect is not Expectation.PASSES
            file = "injection" if is_attack else "benign"
            kind = case.category if is_attack else "benign_hard"
            rows.append(Row(file, case.id, case.text, is_attack, kind, SUITE, case.language))
    rows += [Row(HARMLESS, "", text, False, "benign_hard", HARMLESS, "en") for text in harmless_texts()]
    return rows


def own_digests() -> dict[str, str]:
    """Return the SHA-256 of the files they are read from."""
    paths = (WRITTEN, ROOT / SUITE_FILE)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
