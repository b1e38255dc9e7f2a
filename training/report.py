"""Print what the shield finds in texts that neither its rules nor its model have seen:

    python -m training.report [--developer FOLDER ...] [--round FILE ...]

The shield scans with its own rules and the weights beside them. `--developer` names folders of code and documents, by
default the packages of this Python. `--round` names files of labelled texts, one JSON object a line with `text` and
`label` (1 for an attack); they are counted, and no text is printed. The figures of left-out families were measured when
the weights were trained. Nothing that was trained on is counted.
"""

import argparse
import json
import random
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gateway.shield import Direction, Shield, load
from training import numbers
from training.corpus import OTHERS, Row, labelled, read_rows
from training.secrets import shares

LEFT_OUT = Path(__file__).with_name("left-out.json")
REVIEW_SCORE, BLOCK_SCORE = 25, 60
CHUNK_CHARS = 2_000
MOST_CHUNKS = 10_000
LONG_DOCUMENTS = 100
_ENDINGS = (".py", ".md", ".rst", ".txt", ".json", ".toml", ".cfg", ".js", ".html", ".css", ".c", ".h", ".pyi")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m training.report", description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=OTHERS, help="folder of the texts of others")
    parser.add_argument("--developer", type=Path, nargs="*", default=[Path(sysconfig.get_path("purelib"))])
    parser.add_argument("--round", type=Path, nargs="*", default=[], help="files of texts that nobody has read")
    options = parser.parse_args()
    shield = load()
    print(f"{'':<44}{'texts':>7}{'flagged':>10}{'blocked':>10}")
    tests = [row for row in read_rows(options.data) if row.is_test]
    attacks = [row for row in tests if row.is_attack]
    harmless = [row for row in tests if not row.is_attack]
    tell(shield, "test folds: attacks", texts_of(attacks))
    tell(shield, "test folds: harmless", texts_of(harmless))
    tell(shield, "  of these, plain", texts_of(row for row in harmless if row.kind == "benign"))
    tell(shield, "  of these, with trigger words", texts_of(row for row in harmless if row.kind != "benign"))
    tell(shield, "test folds: attacks inside documents", inside(attacks, harmless))
    tell(shield, "developer content", chunks(options.developer))
    for path in options.round:
        rows = list(labelled(path))
        tell(shield, f"{path.stem}: attacks", texts_of(row for row in rows if row.is_attack))
        tell(shield, f"{path.stem}: harmless", texts_of(row for row in rows if not row.is_attack))
    for name, (seen, count) in zip(
        ("secrets of well-known vendors", "secret look-alikes"), shares(shield, 1), strict=True
    ):
        print(f"{name:<44}{count:>7}{seen / count:>10.2%}", flush=True)
    numbers.report(shield, seed=1)
    left_out = json.loads(LEFT_OUT.read_text("utf-8"))
    for kind, (flagged, count) in left_out["flagged"].items():
        print(f"{'left out: harmless, ' + kind:<44}{count:>7}{flagged / count:>10.2%}")
    print(f"\nfamilies left out, mean over {len(left_out['found'])} families: {left_out['found_mean']:.1%} found")
    for family, (found, count) in sorted(left_out["found"].items(), key=lambda one: one[1][0] / one[1][1]):
        print(f"  {family:<42}{count:>7}{found / count:>10.1%}")


def tell(shield: Shield, name: str, texts: Iterable[str]) -> None:
    """Scan texts and print one line: how many there are, and the shares that are flagged and blocked."""
    scores = [shield.scan(text, Direction.INBOUND).score for text in texts]
    count = max(1, len(scores))
    flagged, blocked = (sum(score >= least for score in scores) / count for least in (REVIEW_SCORE, BLOCK_SCORE))
    print(f"{name:<44}{len(scores):>7}{flagged:>10.2%}{blocked:>10.2%}", flush=True)


def texts_of(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the texts of rows."""
    return (row.text for row in rows)


def inside(attacks: Sequence[Row], harmless: Sequence[Row]) -> Iterator[str]:
    """Yield each attack in a document: between two lines of a long harmless text, the same one at each run."""
    documents = sorted((row.text for row in harmless), key=len)[-LONG_DOCUMENTS:]
    choice = random.Random(1)
    for row in attacks:
        lines = choice.choice(documents).splitlines()
        place = choice.randrange(len(lines) + 1)
        yield "\n".join([*lines[:place], row.text, *lines[place:]])


def chunks(folders: Iterable[Path]) -> Iterator[str]:
    """Yield pieces of the files in some folders, an even choice of them if there are many."""
    found: list[str] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in _ENDINGS and path.is_file():
                text = path.read_text("utf-8", errors="replace")
                found += [text[start : start + CHUNK_CHARS] for start in range(0, len(text), CHUNK_CHARS)]
    step = max(1, len(found) // MOST_CHUNKS)
    return iter(found[::step][:MOST_CHUNKS])


if __name__ == "__main__":
    main()
