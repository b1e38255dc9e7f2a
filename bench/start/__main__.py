"""Cold start of the archive against the bare interpreter. One command: `python bench/start [ARCHIVE]`.

Two questions. How long until `--version` is printed, against `python -c pass`? How long from the start of the process
to the first 200 on /api/v1/health, against the smallest asyncio server that answers one? Cases take turns, so that
each ratio is of neighbours in time; printed are medians. CPU is what the process itself used, which a busy machine
sways less. Where `litellm` is installed (PATH or --litellm), its proxy is started too, until it says that it lives.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")
BARE = """
import asyncio, sys
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
    await writer.drain()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("listening on http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], file=sys.stderr, flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
PEER = """
model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: none}}]
general_settings: {master_key: sk-%s}
"""
SERVE_GOAL = "1 s"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one start took. rss_bytes: the most memory the process ever had."""

    wall_ms: float
    cpu_ms: float
    rss_bytes: int


def spawn(command: list[str], stderr: int) -> int:
    """Start a program with nothing but a PATH and return its process id."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, nothing, 1)]
        actions.append((os.POSIX_SPAWN_DUP2, stderr if stderr >= 0 else nothing, 2))
        return os.posix_spawn(command[0], command, {"PATH": os.environ.get("PATH", "")}, file_actions=actions)
    finally:
        os.close(nothing)


def finish(pid: int, began: float) -> Taken:
    """Wait for the end of a program and return what it took. The clock stopped before if `began` is negative."""
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - began if began >= 0 else -began
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"bench/start: a program ended with {os.WEXITSTATUS(status)}; run it by hand to see why")
    scale = 1 if sys.platform == "darwin" else 1024
    return Taken(wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss * scale)


def run_to_end(command: list[str]) -> Taken:
    """Run a program that ends by itself."""
    began = time.perf_counter()
    return finish(spawn(command, -1), began)


def run_to_first_answer(command: list[str]) -> Taken:
    """Start a server, wait for its ready line, ask for /api/v1/health, and kill it once the 200 is there."""
    read_end, write_end = os.pipe()
    began = time.perf_counter()
    pid = spawn(command, write_end)
    os.close(write_end)
    said = b""
    while not (found := READY.search(said)):
        if not (more := os.read(read_end, 4096)):
            sys.exit(f"bench/start: the server ended: {said.decode(errors='replace')[-500:]}")
        said += more
    with socket.create_connection(("127.0.0.1", int(found[1])), timeout=30) as connection:
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        head = connection.recv(4096)
    wall = time.perf_counter() - began
    os.kill(pid, signal.SIGKILL)
    os.close(read_end)
    if b" 200 " not in head[:16]:
        sys.exit(f"bench/start: no 200 but {head[:80]!r}")
    return finish(pid, -wall)


def run_peer(program: str) -> Taken:
    """Start LiteLLM's proxy with one made-up model, wait for the first 200 on its liveness path, and kill it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text(PEER % os.urandom(32).hex())
        began = time.perf_counter()
        pid = spawn([program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)], -1)
        while not lives(port):
            if os.waitpid(pid, os.WNOHANG)[0] or time.perf_counter() - began > 180:
                sys.exit(f"bench/start: {program} did not start; run it by hand to see why")
            time.sleep(0.02)
        wall = time.perf_counter() - began
        os.kill(pid, signal.SIGKILL)
        return finish(pid, -wall)


def lives(port: int) -> bool:
    """Tell whether LiteLLM answers 200."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"GET /health/liveliness HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            return b" 200 " in connection.recv(4096)[:16]
    except OSError:
        return False


def compare(cases: dict[str, list[str]], run: Callable[[list[str]], Taken], rounds: int) -> None:
    """Run all cases in turn and print a line for each. The first case is the measure of the others."""
    taken: dict[str, list[Taken]] = {name: [] for name in cases}
    for name in cases:
        run(cases[name])  # once for the page cache
    for _ in range(rounds):
        for name, command in cases.items():
            taken[name].append(run(command))
    base = next(iter(taken.values()))
    for name, rows in taken.items():
        pairs = list(zip(rows, base, strict=True))
        wall, cpu = (
            statistics.median(getattr(row, what) / getattr(first, what) for row, first in pairs)
            for what in ("wall_ms", "cpu_ms")
        )
        print(
            f"{name:<28} wall {statistics.median(row.wall_ms for row in rows):7.1f} ms ({wall:4.2f}x)"
            f"  cpu {statistics.median(row.cpu_ms for row in rows):7.1f} ms ({cpu:4.2f}x)"
            f"  memory {max(row.rss_bytes for row in rows) / 2**20:5.1f} MiB"
            + (f"  goal {SERVE_GOAL}" if name.startswith("gateway serve") else "")
        )


def find_archive(given: str | None) -> Path:
    """Return the archive to measure; build one when none is named and none lies in the checkout."""
    path = Path(given) if given else ROOT / "gateway.pyz"
    if not given and not path.exists():
        subprocess.run([sys.executable, str(ROOT / "build_zipapp.py")], check=True)
    return path.resolve()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Cold start of gateway.pyz against the bare interpreter.")
    parser.add_argument("archive", nargs="?", help="the archive; gateway.pyz of the checkout if left out")
    parser.add_argument("--rounds", type=int, default=15, help="starts of each case (15)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to start everything with")
    parser.add_argument("--litellm", default=shutil.which("litellm"), help="LiteLLM's program, to compare with")
    options = parser.parse_args()
    archive = str(find_archive(options.archive))
    python = [os.path.realpath(shutil.which(options.python) or options.python), "-I", "-S"]
    print(f"{archive}: {os.path.getsize(archive) / 1e6:.2f} MB, {options.rounds} starts each, medians")
    compare(
        {"python -c pass": [*python, "-c", "pass"], "gateway --version": [*python, archive, "--version"]},
        run_to_end,
        options.rounds,
    )
    with tempfile.TemporaryDirectory() as folder:
        serve = [*python, archive, "serve", "--port", "0", "--data-dir"]
        run_to_first_answer([*serve, folder])  # makes the database and the first credentials
        compare(
            {
                "bare asyncio server": [*python, "-c", BARE],
                "gateway serve": [*serve, folder],
                "gateway serve, in memory": [*serve, ":memory:"],
            },
            run_to_first_answer,
            options.rounds,
        )
        if options.litellm:
            run_peer(options.litellm)
            rows = [(run_peer(options.litellm), run_to_first_answer([*serve, folder])) for _ in range(2)]
            wall, cpu = (
                statistics.median(getattr(peer, what) / getattr(ours, what) for peer, ours in rows)
                for what in ("wall_ms", "cpu_ms")
            )
            taken = f"wall {rows[0][0].wall_ms:.0f} ms, cpu {rows[0][0].cpu_ms:.0f} ms"
            print(f"litellm proxy: {taken}; gateway serve takes 1/{wall:.1f} of it, cpu 1/{cpu:.1f}, goal 1/30")


if __name__ == "__main__":
    main()
