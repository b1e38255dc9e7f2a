"""What a scan costs now against an earlier version, on real texts of 1 KB that never come twice.

    python3 bench/scan/before.py --before CHECKOUT --data FOLDER

FOLDER holds files `*.jsonl.gz` whose lines have a `text`; CHECKOUT is the earlier version, its plans built. Each
measurement is a process of its own, and the two versions take turns. Printed are microseconds of processor time a text,
and the ratio: of the first 300 prompts of a process, of the next 1,200, and of 1,500 replies.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[2]
CHARS = 1_024
FIRST, TEXTS = 300, 1_500
# Runs in each checkout, since the two have packages of one name.
_RUN = """
import json, sys, time
from gateway import shield
scanner = shield.load()
scanner.ready()
texts = json.load(open(sys.argv[1]))
def cost(part, direction):
    began = time.process_time()
    for text in part:
        scanner.scan(text, direction)
    return (time.process_time() - began) / len(part) * 1e6
first = int(sys.argv[2])
inbound, outbound = shield.Direction.INBOUND, shield.Direction.OUTBOUND
costs = [cost(texts[:first], inbound), cost(texts[first:], inbound)]
cost(texts[:first], outbound)
print(json.dumps([*costs, cost(texts[first:], outbound)]))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="checkout of the earlier version")
    parser.add_argument("--data", type=Path, required=True, help="folder of *.jsonl.gz")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_texts(options.data), file)
        file.flush()
        rounds = [(_costs(HERE, file.name), _costs(options.before, file.name)) for _ in range(options.rounds)]
    for number, name in enumerate((f"prompts, first {FIRST}", "prompts, warm", "replies, warm")):
        now, before = (median(costs[side][number] for costs in rounds) for side in (0, 1))
        ratios = sorted(one[number] / other[number] for one, other in rounds)
        print(f"{name:20} {now:8.0f} us  before {before:8.0f} us  {ratios[0]:.2f} to {ratios[-1]:.2f} x")


def _texts(folder: Path) -> list[str]:
    """Return texts of about 1 KB, none of them twice, in an order of chance that is always the same."""
    texts: set[str] = set()
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts.update(row["text"][:CHARS] for row in map(json.loads, file) if len(row.get("text", "")) >= CHARS)
    found = sorted(texts)
    random.Random(5).shuffle(found)
    if len(found) < TEXTS:
        raise SystemExit(f"{folder} holds {len(found)} texts of {CHARS} characters, and {TEXTS} are needed")
    return found[:TEXTS]


def _costs(checkout: Path, texts: str) -> list[float]:
    told = subprocess.run(
        [sys.executable, "-c", _RUN, texts, str(FIRST)], cwd=checkout, check=True, capture_output=True, text=True
    )
    costs: list[float] = json.loads(told.stdout)
    return costs


if __name__ == "__main__":
    main()
