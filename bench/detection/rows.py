"""Labelled texts: one JSON object a line, gzipped. Reads them and says what is missing; judges nothing."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FILES = ("injection", "benign", "secrets", "pii")
NEEDED = """\
This bench needs a folder of labelled texts, given as --data DIR. It holds any of these files:

  injection.jsonl.gz   attacks          secrets.jsonl.gz   texts with and without secrets
  benign.jsonl.gz      harmless texts   pii.jsonl.gz       texts with and without personal data

One JSON object a line: {"id", "text", "label", "kind", "source", "lang"}. label: 1 for an attack or a leak, 0 for
neither. kind: such as injection, jailbreak, extraction, indirect, benign, benign_hard. source: where the text is from;
sources named obfuscated/NAME hold disguised copies of attacks. lang: such as en."""


class NoData(Exception):
    """The folder holds nothing to measure, or a line is no labelled text."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text of file `file`. is_attack: whether it must be found."""

    file: str
    id: str
    text: str
    is_attack: bool
    kind: str
    source: str
    lang: str

    @property
    def is_disguised(self) -> bool:
        """Tell whether the text is a disguised copy of a plain attack."""
        return self.is_attack and self.source.startswith("obfuscated/")


def read_rows(folder: Path) -> list[Row]:
    """Read every known file in `folder`.

    Raises:
        NoData: none is there, or a line is not what it must be.
    """
    rows = [row for name in FILES for row in _read(folder / f"{name}.jsonl.gz", name)]
    if not rows:
        raise NoData(f"there is no data in {folder}")
    return rows


def _read(path: Path, name: str) -> Iterator[Row]:
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from read_lines(lines, path.name, name)


def read_lines(lines: Iterable[str], name: str, file: str | None) -> Iterator[Row]:
    """Read the lines of the file `name`. file: of the rows; by their label if None.

    Raises:
        NoData: a line is not what it must be.
    """
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            is_attack = entry["label"] == 1
            yield Row(
                file=file or ("injection" if is_attack else "benign"),
                id=str(entry["id"]),
                text=entry["text"],
                is_attack=is_attack,
                kind=entry["kind"],
                source=entry["source"],
                lang=entry["lang"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise NoData(f"{name}, line {number}: no labelled text") from error
