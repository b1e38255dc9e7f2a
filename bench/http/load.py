"""Load one server with wrk, and say what it cost: requests, times, CPU and memory of its processes. Linux only."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SERVER_CORE, LOAD_CORE = 0, 1
_RESULT = re.compile(r"^RESULT (.*)$", re.MULTILINE)
_PSS, _PSS_OF_FILES = (re.compile(rf"^{name}:\s+(\d+)", re.MULTILINE) for name in ("Pss", "Pss_File"))


@dataclass(frozen=True, slots=True)
class Shot:
    """What one URL is asked for. body, keys: files, None for none. headers: as wrk.lua reads them.

    text: file of the part of the body that is another one in every request; None to send the same again and again.
    """

    url: str
    body: Path | None = None
    keys: Path | None = None
    headers: str = ""
    text: Path | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement. cpu_us: of the server, for one request. bad: answers other than 2xx and 3xx, and lost ones."""

    requests: int
    rate: float
    cpu_us: float
    p50_us: int
    p99_us: int
    bad: int


def find_wrk() -> str:
    """Return where wrk is, or end and say that it is needed."""
    return shutil.which("wrk") or sys.exit("bench/http: wrk is needed to make the load (Debian package wrk)")


@contextlib.contextmanager
def on_core(number: int | None) -> Iterator[None]:
    """Let what is started meanwhile run on one core alone, if there are several. None: on all of them."""
    before = os.sched_getaffinity(0)
    if number is not None and len(before) > 1:
        os.sched_setaffinity(0, {sorted(before)[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def shoot(
    shot: Shot, pid: int, *, connections: int, seconds: float, core: int | None = LOAD_CORE, most: int | None = None
) -> Sample:
    """Send requests one after the other over each of `connections` for some seconds; `pid` is the server.

    most: how many answers are enough, None to go on until time is over.
    """
    environment = os.environ | {
        "BENCH_BODY": str(shot.body or ""),
        "BENCH_KEYS": str(shot.keys or ""),
        "BENCH_HEADERS": shot.headers,
        "BENCH_TEXT": str(shot.text or ""),
        "BENCH_MOST": str(most or ""),
    }
    command = [find_wrk(), "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "20s", "--latency"]
    before = cpu_us(pid)
    with on_core(core):
        ended = subprocess.run(
            [*command, "-s", str(HERE / "wrk.lua"), shot.url], env=environment, capture_output=True, text=True
        )
    used_us = cpu_us(pid) - before
    found = _RESULT.search(ended.stdout)
    if found is None:
        sys.exit(f"bench/http: wrk ended without a result: {ended.stderr or ended.stdout}")
    result = json.loads(found[1])
    requests = max(1, result["requests"])
    rate = requests / max(1, result["took_us"]) * 1e6
    return Sample(requests, rate, used_us / requests, result["p50_us"], result["p99_us"], result["bad"])


def joined(samples: Sequence[Sample]) -> Sample:
    """Return what servers that were measured at the same time are together; their times are the worst of them."""
    requests = sum(one.requests for one in samples)
    return Sample(
        requests,
        sum(one.rate for one in samples),
        sum(one.cpu_us * one.requests for one in samples) / requests,
        max(one.p50_us for one in samples),
        max(one.p99_us for one in samples),
        sum(one.bad for one in samples),
    )


def ask(shot: Shot) -> tuple[int, bytes]:
    """Send one request and return status and body. Raises OSError when nobody answers well."""
    request = urllib.request.Request(shot.url, data=shot.body.read_bytes() if shot.body else None)
    request.add_header("Content-Type", "application/json")
    for field in filter(None, shot.headers.split("|")):
        name, _, value = field.partition(":")
        request.add_header(name, value.strip())
    if shot.keys:
        request.add_header("X-Service-Key", shot.keys.read_text().split()[0])
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=20) as answer:
        return answer.status, answer.read()


def tree(pid: int) -> list[int]:
    """Return `pid` and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                parent = int(Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def cpu_us(pid: int) -> float:
    """Return the processor time of all threads of a tree, which a busy machine sways less than the clock."""
    total_ns = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                total_ns += int(Path(f"/proc/{one}/task/{thread}/schedstat").read_text().split()[0])
    return total_ns / 1000


def memory_mb(pid: int) -> float:
    """Return the proportional set size of a tree in MB: pages that several share are counted once in all."""
    return _sum_mb(pid, _PSS)


def files_mb(pid: int) -> float:
    """Return how much of that is pages of files. Whoever else maps them, such as another Python, takes a share."""
    return _sum_mb(pid, _PSS_OF_FILES)


def _sum_mb(pid: int, field: re.Pattern[str]) -> float:
    total_kb = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            found = field.search(Path(f"/proc/{one}/smaps_rollup").read_text())
            total_kb += int(found[1]) if found else 0
    return total_kb * 1024 / 1e6
