"""Texts as rows of a sparse matrix: the features that the attack model sees of each, and the rules that matched it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gateway.shield import Direction, Shield, load_rules
from gateway.shield.attack_model import features_of, length_penalty, parts_of, tokens_of
from gateway.shield.data_files import RULES_FILE, read
from gateway.shield.normalize import Normalizer
from training.corpus import Row

# Of a longer text, these are read. A feature needs as many texts to be one.
_MOST_CHARS = 24_000
_LEAST_TEXTS = 3
# What a rule that matched stands for in its column. A feature of a text of 100 tokens stands for about a tenth.
RULE_VALUE = 0.3
# Rules of other kinds tell nothing of the wording.
_OTHER_CATEGORIES = frozenset({"secret", "pii", "financial"})

Feature = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """All texts as the model sees them.

    wholes: a row for each text. parts: a row for each part of each text, as a scan reads it. part_texts, penalties: of
    which text each part is, and what its margin loses for its length. names: the features of
    their columns: ("w", word), ("p", first, second) or ("s", first, second). rules, rule_names: the same of rules.
    """

    wholes: sp.csr_matrix
    parts: sp.csr_matrix
    part_texts: np.ndarray
    penalties: np.ndarray
    names: list[Feature]
    rules: sp.csr_matrix
    rule_names: list[str]


def make_examples(rows: Sequence[Row]) -> Examples:
    """Read all texts. A column stands for a feature that enough texts outside the test folds have."""
    normalize = Normalizer().normalize
    tokens = [tokens_of(normalize(row.text[:_MOST_CHARS]).text) for row in rows]
    counts: Counter[Feature] = Counter()
    for row, of_row in zip(rows, tokens, strict=True):
        if not row.is_test:
            counts.update(_named(of_row))
    names = [name for name, count in counts.items() if count >= _LEAST_TEXTS]
    numbers = {name: number for number, name in enumerate(names)}
    wholes = _Rows(numbers)
    parts = _Rows(numbers)
    part_texts: list[int] = []
    penalties: list[float] = []
    for text, of_row in enumerate(tokens):
        wholes.add(of_row)
        for part in parts_of(of_row):
            parts.add(part)
            part_texts.append(text)
            penalties.append(length_penalty(len(part)))
    rules, rule_names = _rules_of(rows)
    texts, losses = np.array(part_texts), np.array(penalties)
    return Examples(wholes.matrix(), parts.matrix(), texts, losses, names, rules, rule_names)


def _named(tokens: Sequence[str]) -> Iterator[Feature]:
    found = features_of(tokens)
    for word in found.words:
        yield ("w", word)
    for first, second in found.pairs:
        yield ("p", first, second)
    for first, second in found.skips:
        yield ("s", first, second)


class _Rows:
    """Collects the rows of a matrix."""

    def __init__(self, numbers: dict[Feature, int]) -> None:
        self._numbers = numbers
        self._columns: list[np.ndarray] = []
        self._scales: list[float] = []

    def add(self, tokens: Sequence[str]) -> None:
        known = [number for name in _named(tokens) if (number := self._numbers.get(name)) is not None]
        self._columns.append(np.array(sorted(known), np.int32))
        self._scales.append(features_of(tokens).scale())

    def matrix(self) -> sp.csr_matrix:
        lengths = np.array([len(columns) for columns in self._columns])
        values = np.repeat(np.array(self._scales, np.float32), lengths)
        shape = (len(lengths), len(self._numbers))
        return sp.csr_matrix((values, np.concatenate(self._columns), np.r_[0, np.cumsum(lengths)]), shape=shape)


def _rules_of(rows: Sequence[Row]) -> tuple[sp.csr_matrix, list[str]]:
    shield = Shield(load_rules(read(RULES_FILE)))
    matched = [
        sorted(
            found.rule
            for found in shield.scan(row.text[:_MOST_CHARS], Direction.INBOUND).detections
            if found.category not in _OTHER_CATEGORIES
        )
        for row in rows
    ]
    counts = Counter(rule for row, of_row in zip(rows, matched, strict=True) if not row.is_test for rule in of_row)
    names = [rule for rule, count in counts.items() if count >= _LEAST_TEXTS]
    numbers = {rule: number for number, rule in enumerate(names)}
    columns = [[numbers[rule] for rule in of_row if rule in numbers] for of_row in matched]
    lengths = [len(of_row) for of_row in columns]
    flat = np.array([number for of_row in columns for number in of_row], np.int32)
    values = np.full(len(flat), RULE_VALUE, np.float32)
    return sp.csr_matrix((values, flat, np.r_[0, np.cumsum(lengths)]), shape=(len(rows), len(names))), names
