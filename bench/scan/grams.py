"""Count the pieces of ordinary text that the planner of rules goes by: `python bench/scan/grams.py --data DIR`.

DIR holds `benign.jsonl.gz`, harmless texts one a line as {"text": ...}. To them come the sources of the standard
library, those left out that `texts.py` takes its code and prose from. Writes `gateway/shield/grams.json`.
"""

import argparse
import gzip
import hashlib
import json
import math
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from gateway.shield.literals import (  # noqa: E402
    CUT_OFF,
    GRAMS_FILE,
    squash_digits,
)
from gateway.shield.normalize import Normalizer  # noqa: E402

TEXTS = "benign.jsonl.gz"
_LEFT_OUT = (
    "subprocess",
    "json",
    "random",
    "textwrap",
    "inspect",
    "pydoc_data",
    "test",
    "idlelib",
    "lib2to3",
    "site-p",
)
_MOST_SOURCE_CHARS = 6_000_000


def texts(data: Path) -> Iterator[str]:
    """Yield harmless texts, then sources."""
    with gzip.open(data / TEXTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]
    left = _MOST_SOURCE_CHARS
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        name = str(path.relative_to(library))
        if not name.startswith(_LEFT_OUT) and "/tests/" not in name:
            source = path.read_text("utf-8", "replace")[:40_000]
            left -= len(source)
            if left < 0:
                return
            yield source


def main() -> None:
    """Count and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    fold = Normalizer()
    chars = 0
    counts: dict[int, Counter[str]] = {size: Counter() for size in CUT_OFF}
    for text in texts(options.data):
        read = squash_digits(f" {fold.normalize(text).text} ")
        chars += len(read)
        for size, counted in counts.items():
            counted.update(map("".join, zip(*(read[at:] for at in range(size)), strict=False)))
    pieces: dict[str, dict[str, str]] = {}
    for size, counted in counts.items():
        classes: dict[int, list[str]] = {}
        for piece, count in counted.items():
            if count >= CUT_OFF[size] * chars and piece.isascii() and piece.isprintable():
                classes.setdefault(round(-2 * math.log2(count / chars)), []).append(piece)
        pieces[str(size)] = {str(kind): "".join(sorted(classes[kind])) for kind in sorted(classes)}
    provenance = {
        "command": "python bench/scan/grams.py --data DIR",
        "data_sha256": hashlib.sha256((options.data / TEXTS).read_bytes()).hexdigest(),
        "sources": f"the standard library of Python {sys.version.split()[0]}",
        "characters": chars,
    }
    target = ROOT / GRAMS_FILE
    target.write_text(json.dumps({"provenance": provenance, "pieces": pieces}, indent=1) + "\n", encoding="utf-8")
    print(f"{chars} characters read, {target.stat().st_size} bytes written")


if __name__ == "__main__":
    main()
