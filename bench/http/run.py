"""The speed of the server against peers: `python -m bench.http.run [--peers DIR] [--before CHECKOUT] [ARCHIVE]`.

Every server is started once, on one core; wrk and the mock upstream have another. In each round all servers of a part
are measured one after the other in a turning order, and every ratio is taken inside its round; printed are medians.
CPU per request is the steadiest figure on a busy machine; requests a second and times are printed beside it.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.http.load import LOAD_CORE, Sample, Shot, files_mb, find_wrk, joined, memory_mb, shoot
from bench.http.targets import (
    BARE,
    BEFORE,
    BEFORE_BARE,
    CHAT,
    COMPILED,
    DIRECT,
    H11,
    HEALTH,
    LITELLM,
    NGINX,
    OURS,
    OURS_BESIDE,
    OURS_LARGE,
    OURS_THREE,
    OURS_TWO,
    PORTKEY,
    SCAN,
    UNAUDITED,
    UNRECORDED,
    Field,
    Peers,
)

ROOT = Path(__file__).resolve().parents[2]
CONNECTIONS = 16
CROWD = 64
APART = "two servers side by side"
PARTS = ("before", "health", "scan", "chat", "latency", "large", "audit", "workers", "memory")
PARTS_OF_CHATS = ("before", "chat", "latency", "large", "audit")  # which need nginx, as the mock upstream
SETTLE_SECONDS = 16.0  # by then the first jobs are over, and what they took has been given back
WARM_REQUESTS, GROWTH_REQUESTS = 50_000, 200_000
LARGE_CHATS = 300_000
TEXTS = 12_000
Samples = dict[str, list[Sample]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    seconds: float
    warm_requests: int = WARM_REQUESTS
    growth_requests: int = GROWTH_REQUESTS
    large_chats: int = LARGE_CHATS


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    measure: str
    found: str
    goal: str = ""
    note: str = ""


def turns(names: Sequence[str], rounds: int) -> list[list[str]]:
    """Return the order of each round: another one begins each time."""
    return [[*names[number % len(names) :], *names[: number % len(names)]] for number in range(rounds)]


def measure(
    field: Field, names: Sequence[str], shots: dict[str, Shot], plan: Plan, *, connections: int, core: int | None
) -> Samples:
    """Measure servers round by round, after a second of warming up each with as many connections."""
    for name in names:
        shoot(shots[name], field.pids[name], connections=connections, seconds=1, core=core)
    samples: Samples = {name: [] for name in names}
    for order in turns(names, plan.rounds):
        for name in order:
            samples[name].append(
                shoot(shots[name], field.pids[name], connections=connections, seconds=plan.seconds, core=core)
            )
    for name in names:
        show(name, samples[name], connections)
    return samples


def compared(
    field: Field,
    path: str,
    names: Sequence[str],
    plan: Plan,
    *,
    connections: int = CONNECTIONS,
    is_anonymous: bool = False,
    core: int | None = LOAD_CORE,
) -> Samples:
    """Measure those of `names` that could be started. No two scans or chats have the same text."""
    there = [name for name in names if field.start(name)]
    shots = {name: field.shot(name, path, is_anonymous=is_anonymous) for name in there}
    return measure(field, there, shots, plan, connections=connections, core=core)


def show(name: str, samples: Sequence[Sample], connections: int) -> None:
    """Print the medians of one server."""
    rate, cpu, p50, p99 = (
        statistics.median(getattr(one, what) for one in samples) for what in ("rate", "cpu_us", "p50_us", "p99_us")
    )
    bad = sum(one.bad for one in samples)
    print(
        f"  {name:<38} {connections:>3} connections {rate:>8.0f}/s  cpu {cpu:>7.1f} us  p50 {p50 / 1e3:>6.2f} ms"
        f"  p99 {p99 / 1e3:>7.2f} ms" + (f"  BAD ANSWERS {bad}" if bad else ""),
        flush=True,
    )


def ratio(samples: Samples, over: str, under: str, what: str = "cpu_us") -> float | None:
    """Return the median of the ratios inside each round; None when one of the two is not there."""
    if over not in samples or under not in samples:
        return None
    pairs = zip(samples[over], samples[under], strict=True)
    return float(statistics.median(getattr(one, what) / getattr(other, what) for one, other in pairs))


def spread(samples: Samples, name: str) -> float:
    """Return the median of p99 against p50 in each round."""
    return float(statistics.median(one.p99_us / max(1, one.p50_us) for one in samples[name]))


def times(value: float | None) -> str:
    """Write a ratio."""
    return "not measured" if value is None else f"{value:.2f}x"


def faster(samples: Samples, peer: str, measure_name: str, goal: str = "") -> Line:
    """Return the line that compares a peer with us, by CPU; the requests a second stand beside it."""
    rate = ratio(samples, OURS, peer, "rate")
    return Line(measure_name, times(ratio(samples, peer, OURS)), goal, f"req/s {times(rate)}")


def before(field: Field, plan: Plan) -> list[Line]:
    """Compare with an older commit, without the shield and with it."""
    lines = []
    for path, goal in ((HEALTH, ""), (SCAN, "<= 1.25x"), (CHAT, "<= 1.4x")):
        name = path.rpartition("/")[2]
        samples = compared(field, path, (BARE, BEFORE_BARE), plan)
        lines.append(Line(f"{name} without the shield, CPU of before", times(ratio(samples, BARE, BEFORE_BARE)), goal))
        if path != HEALTH:
            samples = compared(field, path, (OURS, BEFORE), plan)
            lines.append(Line(f"{name} with all rules, CPU of before", times(ratio(samples, OURS, BEFORE))))
    return lines if BEFORE_BARE in field.pids else []


def health(field: Field, plan: Plan) -> list[Line]:
    """Compare the smallest answer: as a probe asks for it, and with a key that is checked and counted."""
    bare = compared(field, HEALTH, (OURS, H11, COMPILED), plan, is_anonymous=True)
    keyed = compared(field, HEALTH, (OURS, H11), plan)
    return [
        faster(bare, H11, f"health, {H11}"),
        faster(bare, COMPILED, f"health, {COMPILED}"),
        faster(keyed, H11, f"health with our key checked, {H11}"),
    ]


def scan(field: Field, plan: Plan) -> list[Line]:
    """Compare a scan of one kilobyte; the peers call the same shield."""
    samples = compared(field, SCAN, (OURS, H11, COMPILED), plan)
    if H11 in samples:
        said = json.loads(field.ask_peer(H11, "/shield"))
        print(f"  the peer's shield: rules {said['digest'][:12]}, matcher {said['matcher']}")
    return [
        faster(samples, H11, f"scan of 1 KB, {H11}", ">= 1x"),
        faster(samples, COMPILED, f"scan of 1 KB, {COMPILED}"),
    ]


def chat(field: Field, plan: Plan) -> list[Line]:
    """Compare a chat of one kilobyte. Starlette scans prompt and reply by the same shield; no peer records anything."""
    samples = compared(field, CHAT, (OURS, NGINX, H11, COMPILED, LITELLM, PORTKEY), plan)
    return [
        faster(samples, LITELLM, f"chat, {LITELLM}"),
        faster(samples, PORTKEY, f"chat, {PORTKEY}"),
        faster(samples, H11, f"chat, {H11} + aiohttp, which scans", ">= 1x"),
        faster(samples, COMPILED, f"chat, {COMPILED} + aiohttp, which scans"),
        Line("chat CPU, against nginx", times(ratio(samples, OURS, NGINX))),
    ]


def latency(field: Field, plan: Plan) -> list[Line]:
    """Measure what is added to the upstream's time, and the slow answers of a crowd beside the usual ones.

    A host that others use makes answers slow as well. How much of that there was is told by nginx as a plain proxy,
    which was asked in the same rounds.
    """
    one = compared(field, CHAT, (DIRECT, OURS, NGINX), plan, connections=1)
    crowd = compared(field, CHAT, (OURS, NGINX), plan, connections=CROWD)

    def added(name: str) -> str:
        pairs = zip(one[name], one[DIRECT], strict=True)
        return f"{statistics.median(ours.p50_us - direct.p50_us for ours, direct in pairs) / 1e3:.2f} ms"

    return [
        Line(
            "added p50 of one client, two scans included",
            added(OURS),
            "<= 1.5 ms and the scans",
            f"nginx adds {added(NGINX)}",
        ),
        Line(f"p99 against p50 at {CROWD} clients", times(spread(crowd, OURS)), "<= 5x"),
        Line(f"host: p99 against p50 of nginx at {CROWD} clients", times(spread(crowd, NGINX)), "", "no goal"),
    ]


def large(field: Field, plan: Plan) -> list[Line]:
    """Compare chats into a database that holds many of them with those into a fresh one."""
    field.start(OURS_LARGE)
    send(field, OURS_LARGE, CHAT, plan.large_chats)
    samples = compared(field, CHAT, (OURS, OURS_LARGE), plan)
    crowd = compared(field, CHAT, (OURS, OURS_LARGE), plan, connections=CROWD)
    among = f"among {plan.large_chats} chats"
    return [
        Line(f"chat CPU, {among}, against a fresh database", times(ratio(samples, OURS_LARGE, OURS))),
        Line(f"chat CPU at {CROWD} clients, {among}, fresh", times(ratio(crowd, OURS_LARGE, OURS))),
        Line(f"p99 against p50 at {CROWD} clients, {among}", times(spread(crowd, OURS_LARGE)), "<= 5x"),
    ]


def send(field: Field, name: str, path: str, requests: int) -> None:
    """Send at least so many requests to a server."""
    shot, pid = field.shot(name, path), field.pids[name]
    while requests > 0:
        requests -= shoot(shot, pid, connections=CONNECTIONS, seconds=10).requests


def audit(field: Field, plan: Plan) -> list[Line]:
    """Compare answers after the commit with those without an audit event, and those of which nothing is written."""
    samples = compared(field, CHAT, (OURS, UNAUDITED, UNRECORDED), plan)

    def line(other: str, goal: str = "") -> Line:
        rate, cpu = ratio(samples, OURS, other, "rate"), ratio(samples, other, OURS)
        return Line(f"answer after commit, {other.removeprefix('serve, ')}", times(rate), goal, f"cpu {times(cpu)}")

    return [line(UNAUDITED, ">= 0.6x"), line(UNRECORDED)]


def workers(field: Field, plan: Plan) -> list[Line]:
    """Compare two workers with one, by texts that are scanned every time.

    A core costs more when the other is busy as well, whatever runs there, so that two workers are also compared with
    two servers that share nothing, each with half of the connections.
    """
    names = (OURS, OURS_BESIDE, OURS_TWO)
    for name in names:
        field.start(name, has_all_cores=True)

    def at_once(*of: str) -> Sample:
        each = CROWD // len(of)
        shots = [(field.shot(name, SCAN), field.pids[name]) for name in of]
        with ThreadPoolExecutor(len(of)) as pool:
            found = list(pool.map(lambda one: shoot(*one, connections=each, seconds=plan.seconds, core=None), shots))
        return joined(found)

    groups = {OURS: (OURS,), APART: (OURS, OURS_BESIDE), OURS_TWO: (OURS_TWO,)}
    samples: Samples = {name: [] for name in groups}
    for of in groups.values():
        at_once(*of)  # to warm up
    one_mb, two_mb = (memory_mb(field.pids[name]) for name in (OURS, OURS_TWO))
    for order in turns(tuple(groups), plan.rounds):
        for name in order:
            samples[name].append(at_once(*groups[name]))
    for name in groups:
        show(name, samples[name], CROWD)
    thirds_mb = []
    for _ in range(plan.rounds):
        sizes_mb = []
        for name in (OURS_TWO, OURS_THREE):
            if name in field.pids:
                field.end(name)
            field.start(name, has_all_cores=True)
            shot = field.shot(name, SCAN)
            left = TEXTS
            while left > 0:  # wrk goes on until its time is over, though it sends no more
                left -= shoot(shot, field.pids[name], connections=CROWD, seconds=3, core=None, most=left).requests
            sizes_mb.append(memory_mb(field.pids[name]))
            field.end(name)
        thirds_mb.append(sizes_mb[1] - sizes_mb[0])
    apart = times(ratio(samples, OURS_TWO, APART))
    third = f"{statistics.median(thirds_mb):+.1f} MB"
    spread = f"median of {plan.rounds} pairs: {min(thirds_mb):+.1f} to {max(thirds_mb):+.1f}"
    return [
        Line("two workers: CPU per request, one process", times(ratio(samples, OURS_TWO, OURS)), "<= 1.1x"),
        Line("two workers: CPU per request, two servers side by side", apart),
        Line(f"memory of a third worker after {TEXTS:,} new texts in the group", third, "<= +25 MB", spread),
        Line("memory of two workers, beyond one process", f"{two_mb - one_mb:+.1f} MB", "", "supervisor included"),
    ]


def memory(field: Field, plan: Plan) -> list[Line]:
    """Measure memory before the first request, at once and settled, and how it grows under scans."""
    field.start(DIRECT)
    field.start(OURS)
    pid = field.pids[OURS]
    idle_mb = memory_mb(pid)
    time.sleep(SETTLE_SECONDS)
    settled_mb, settled_files_mb = memory_mb(pid), files_mb(pid)
    send(field, OURS, SCAN, plan.warm_requests)
    warm_mb, of_files_mb = memory_mb(pid), files_mb(pid)
    send(field, OURS, SCAN, plan.growth_requests)
    grown_mb = memory_mb(pid) - warm_mb
    of_files_mb = files_mb(pid) - of_files_mb
    settled = f"after {SETTLE_SECONDS:.0f} s, jobs and all; pages of files: {settled_files_mb:.1f}"
    note = f"after {plan.warm_requests}: {warm_mb:.1f} MB; pages of files, whose share others take: {of_files_mb:+.1f}"
    return [
        Line("memory, idle, at once", f"{idle_mb:.1f} MB", "<= 45 MB"),
        Line("memory, idle, settled", f"{settled_mb:.1f} MB", "<= 45 MB", settled),
        Line(f"growth over {plan.growth_requests} requests", f"{grown_mb:+.2f} MB", "<= 2 MB", note),
    ]


RUNS: dict[str, Callable[[Field, Plan], list[Line]]] = {
    "before": before,
    "health": health,
    "scan": scan,
    "chat": chat,
    "latency": latency,
    "large": large,
    "audit": audit,
    "workers": workers,
    "memory": memory,
}


def find_archive(given: str | None) -> Path:
    """Return the archive to measure; build one when none is named and none lies in the checkout."""
    path = Path(given) if given else ROOT / "gateway.pyz"
    if not given and not path.exists():
        subprocess.run([sys.executable, str(ROOT / "build_zipapp.py")], check=True, cwd=ROOT)
    return path.resolve()


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="The HTTP server of gateway.pyz against its peers.")
    parser.add_argument("archive", nargs="?", help="the archive; gateway.pyz of the checkout if left out")
    parser.add_argument("--before", metavar="CHECKOUT", help="an older commit, for the part `before`")
    parser.add_argument("--peers", default="peers", metavar="DIR", help="where the peers are installed (peers)")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each part (5)")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement (2)")
    parser.add_argument("--growth", type=int, default=GROWTH_REQUESTS, help="requests of the memory part (200000)")
    parser.add_argument("--large", type=int, default=LARGE_CHATS, help="chats there are in the large part (300000)")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    find_wrk()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/http: told to stop"))  # and stop what was started
    peers = Peers.find(Path(options.peers).resolve())
    print(peers.report(), flush=True)
    plan = Plan(options.rounds, options.seconds, min(WARM_REQUESTS, options.growth // 4), options.growth, options.large)
    lines: list[Line] = []
    archive = find_archive(options.archive)
    for part in [part for part in PARTS if part in wanted and (part != "before" or options.before)]:
        print(f"{part}:", flush=True)
        with tempfile.TemporaryDirectory() as work:
            field = Field(archive, peers, Path(work), options.before and Path(options.before).resolve())
            try:
                if field.start(DIRECT) or part not in PARTS_OF_CHATS:
                    lines += RUNS[part](field, plan)
                else:
                    print("  left out: without nginx there is no mock upstream")
            finally:
                field.stop()
    print("\n| measure | found | goal | beside |\n| --- | --- | --- | --- |")
    for line in lines:
        print(f"| {line.measure} | {line.found} | {line.goal} | {line.note} |")


if __name__ == "__main__":
    main()
