"""What a gateway holds after texts of all kinds: `python -m bench.http.kinds DIR [ARCHIVE]`.

DIR holds `benign.jsonl.gz`, harmless texts one a line as {"text": ...}. Of one process and of groups it prints the
memory before the first text and after the last, and what each worker then has for itself alone. The texts of `run` are
one text in ever another order; here each leads to rules of its own.
"""

import argparse
import gzip
import json
import random
import re
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from bench.http.load import memory_mb, tree
from bench.http.run import find_archive
from bench.http.targets import OURS, OURS_THREE, OURS_TWO, SCAN, Field, Peers

TEXTS = 9_000
_MOST_CHARS = 6_000
_CLIENTS = 12
_SETTLE_SECONDS = 8.0
_OWN = re.compile(r"^Private_(?:Clean|Dirty):\s+(\d+)", re.MULTILINE)


def texts(folder: Path, count: int) -> list[str]:
    """Return so many texts, the same each time and of all kinds."""
    with gzip.open(folder / "benign.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [text for line in lines if len(text := json.loads(line)["text"]) < _MOST_CHARS]
    random.Random(1).shuffle(found)
    return found[:count]


def send(url: str, key: str, some: Iterator[str]) -> None:
    """Have texts scanned one after the other, over one connection."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port)
    for text in some:
        body = json.dumps({"text": text, "direction": "inbound"})
        connection.request("POST", place.path, body, {"Content-Type": "application/json", "X-Service-Key": key})
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"bench/http: the gateway answers {answer.status}")
        answer.read()
    connection.close()


def own_mb(pid: int) -> float:
    """Return what a process has for itself alone, in MB."""
    return sum(map(int, _OWN.findall(Path(f"/proc/{pid}/smaps_rollup").read_text()))) * 1024 / 1e6


def main() -> None:
    """Measure and print a line for each number of processes."""
    parser = argparse.ArgumentParser(description="The memory of gateway.pyz after texts of all kinds.")
    parser.add_argument("data", type=Path, help="folder with benign.jsonl.gz")
    parser.add_argument("archive", nargs="?", help="the archive; gateway.pyz of the checkout if left out")
    parser.add_argument("--texts", type=int, default=TEXTS, help=f"how many ({TEXTS})")
    options = parser.parse_args()
    all_kinds = texts(options.data, options.texts)
    archive = find_archive(options.archive)
    for name in (OURS, OURS_TWO, OURS_THREE):
        with tempfile.TemporaryDirectory() as work:
            field = Field(archive, Peers.find(Path(work)), Path(work))
            try:
                field.start(name, has_all_cores=True)
                pid, shot = field.pids[name], field.shot(name, SCAN)
                time.sleep(_SETTLE_SECONDS)
                before_mb = memory_mb(pid)
                key = (shot.keys or Path()).read_text().split()[0]
                parts = [iter(all_kinds[number::_CLIENTS]) for number in range(_CLIENTS)]
                with ThreadPoolExecutor(_CLIENTS) as clients:
                    list(clients.map(partial(send, shot.url, key), parts))
                own = ", ".join(f"{own_mb(one):.1f}" for one in tree(pid) if one != pid) or f"{own_mb(pid):.1f}"
                after_mb = memory_mb(pid)
                print(f"{name}: {before_mb:.1f} MB before, {after_mb:.1f} after {len(all_kinds):,} texts; own: {own}")
            finally:
                field.stop()


if __name__ == "__main__":
    main()
