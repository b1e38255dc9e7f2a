"""The labelled texts that the attack model is trained on and measured with. Reads them and judges nothing.

There are two places. `training/texts` holds what was written for this project. Another folder, by default
`../shared/data/detection`, holds texts of others, which stay where they are.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.shield import Direction
from gateway.shield.detections import MASKED_CATEGORIES
from gateway.shield.suite import Expectation, load_suite

OWN = Path(__file__).with_name("texts")
OTHERS = Path(__file__).resolve().parents[2] / "shared" / "data" / "detection"
OTHER_FILES = ("attacks-more", "harmless", "injection", "benign")
# Texts of one author under several names: they are left out together.
_SAME_FAMILY = {"fastapi": "authored", "obfuscated": "authored"}


class NoTexts(Exception):
    """A folder lacks a file, or a line is no labelled text."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text.

    family: its source without what stands behind a slash; texts of a family are left out together. is_test: it belongs
    to a test fold, so nothing is trained on it.
    """

    text: str
    is_attack: bool
    kind: str
    source: str
    family: str
    lang: str
    is_test: bool


def read_rows(others: Path = OTHERS) -> list[Row]:
    """Read all texts, always in the same order.

    Raises:
        NoTexts: a file is missing, or a line is not what it must be.
    """
    rows = [row for name in OTHER_FILES for row in labelled(others / f"{name}.jsonl.gz")]
    rows += labelled(OWN / "written.jsonl.gz")
    for path in sorted(OWN.glob("pairs-*.jsonl.gz")):
        name = _name(path)
        for entry in _lines(path):
            rows.append(_row(entry["attack"], True, entry["technique"], name, entry["lang"]))
            rows.append(_row(entry["twin"], False, "twin", name, entry["lang"]))
    for path in sorted(OWN.glob("harmless-*.jsonl.gz")):
        rows += [_row(entry["text"], False, entry["kind"], _name(path), entry["lang"]) for entry in _lines(path)]
    return rows + list(_suite())


def digests(others: Path = OTHERS) -> dict[str, str]:
    """Return the SHA-256 of every file of texts, by its name.

    Raises:
        NoTexts: a file is missing.
    """
    paths = [others / f"{name}.jsonl.gz" for name in OTHER_FILES] + sorted(OWN.glob("*.jsonl.gz"))
    try:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    except OSError as error:
        raise NoTexts(f"{error.filename} cannot be read: {error.strerror}") from error


def _suite() -> Iterator[Row]:
    """Yield the plain cases of the validation suite; those of secrets and numbers say nothing of the wording."""
    for case in load_suite():
        if not case.obfuscation and case.direction is Direction.INBOUND and case.category not in MASKED_CATEGORIES:
            is_attack = case.expect is not Expectation.PASSES
            yield _row(case.text, is_attack, case.category, "suite", case.language)


def _name(path: Path) -> str:
    return path.name.split(".")[0]


def labelled(path: Path) -> Iterator[Row]:
    """Yield the rows of a file of labelled texts.

    Raises:
        NoTexts: it cannot be read, or a line is not what it must be.
    """
    for entry in _lines(path):
        kind, source, lang = (entry.get(name, "") for name in ("kind", "source", "lang"))
        yield _row(entry["text"], entry["label"] == 1, kind, source, lang, is_test=entry.get("fold") == "test")


def _row(text: str, is_attack: bool, kind: str, source: str, lang: str, *, is_test: bool = False) -> Row:
    family = source.split("/")[0]
    return Row(text, is_attack, kind, source, _SAME_FAMILY.get(family, family), lang, is_test)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except (OSError, ValueError) as error:
        raise NoTexts(f"{path} cannot be read: {error}") from error
