"""Chats on PostgreSQL against chats on SQLite, in one run. One command: `python bench/store [CHATS]`.

Each engine serves the built-in model `echo`, with one worker and a new database, on this machine: first one chat after
another, then 16 callers at once. No text comes twice. A commit of PostgreSQL waits for the disk, as it does by default.
Both are measured in turn, three times, and the best and the worst of each are printed.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from postgres_server import find_programs, served  # noqa: E402

CALLERS = 16
ROUNDS = 3
WORDS = "river stone amber garden letter winter copper window bridge candle market harbor".split()


@contextmanager
def gateway(url: str) -> Iterator[tuple[int, str]]:
    """Serve on a database, SQLite where there is no address, and return the port and a key."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"GATEWAY_DATA_DIR": folder, "GATEWAY_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
        gateway = [sys.executable, "-m", "gateway"]
        words = ["keys", "create", "--name", "bench", "--scopes", "chat:completions", "--rate-limit", "10000000"]
        made = subprocess.run([*gateway, *words], env=env, capture_output=True, text=True, check=True)
        process = subprocess.Popen([*gateway, "serve", "--port", "0"], env=env, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "listening on" in line)
            yield int(re.search(r":(\d+)$", line.strip())[1]), re.search(r"svc_[0-9a-f]{40}", made.stdout)[0]  # type: ignore[index]
        finally:
            process.terminate()
            process.wait(30)


def chats(port: int, key: str, count: int) -> list[float]:
    """Send so many chats on one connection and return the time of each in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    for _ in range(count):
        text = " ".join(secrets.choice(WORDS) for _ in range(30)) + secrets.token_hex(4)
        body = json.dumps({"model": "echo", "messages": [{"role": "user", "content": text}]})
        begin = time.perf_counter()
        connection.request(
            "POST", "/api/v1/chat/completions", body, {"X-Service-Key": key, "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        times.append((time.perf_counter() - begin) * 1000)
        assert answer.status == 200, answer.status
    return times


def measure(url: str, count: int) -> tuple[float, float]:
    """Return the median time of a single caller's chats in milliseconds, and the chats a second of many callers."""
    with gateway(url) as (port, key):
        chats(port, key, 20)
        p50 = statistics.median(chats(port, key, count))
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            begin = time.perf_counter()
            list(callers.map(lambda _: chats(port, key, count // 4), range(CALLERS)))
            return p50, CALLERS * (count // 4) / (time.perf_counter() - begin)


def main() -> int:
    """Measure both and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chats", nargs="?", type=int, default=400)
    count = parser.parse_args().chats
    programs = find_programs()
    if programs is None:
        print("PostgreSQL is not installed")
        return 2
    found: dict[str, list[tuple[float, float]]] = {"SQLite": [], "PostgreSQL": []}
    with served(programs, fsync="on") as server:
        for _ in range(ROUNDS):
            found["SQLite"].append(measure("", count))
            found["PostgreSQL"].append(measure(server.new_database(), count))
    for name, rounds in found.items():
        p50s, rates = sorted(one for one, _ in rounds), sorted(one for _, one in rounds)
        times = f"one caller p50 {p50s[0]:.2f} to {p50s[-1]:.2f} ms"
        print(f"{name:10}  {times}   {CALLERS} callers {rates[0]:.0f} to {rates[-1]:.0f} chats/s")
    best = {name: (min(one for one, _ in rounds), max(one for _, one in rounds)) for name, rounds in found.items()}
    added, share = best["PostgreSQL"][0] - best["SQLite"][0], best["PostgreSQL"][1] / best["SQLite"][1]
    print(f"PostgreSQL adds {added:.2f} ms to the p50 and has {share:.2f} of the chats a second (best against best)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
