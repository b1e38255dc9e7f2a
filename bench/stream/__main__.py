"""What a stream costs beside a proxy that passes everything on: `python -m bench.stream ARCHIVE`.

A scripted upstream sends prose that never comes twice, in pieces of four letters. The gateway and a pass-through proxy,
which reads nothing, stand in front of it in turns. Printed are the time to the first letters, how many letters are held
back, processor time a chunk, and the memory of many streams at once.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

WORDS = (
    "harbour island ferry morning pier market people weather winter boat island quiet paper letter garden street "
    "window house river bridge school table bread coffee evening story friend journey mountain forest village road "
    "summer water light stone wood music train station book voice answer question reason number colour"
).split()
PIECE_CHARS = 4
_END = b"0\r\n\r\n"


def prose(dice: random.Random, chars: int) -> str:
    """Return sentences of common words, another text at each call."""
    said, length = [], 0
    while length < chars:
        sentence = " ".join(dice.choices(WORDS, k=dice.randrange(5, 14))).capitalize() + ". "
        said.append(sentence)
        length += len(sentence)
    return "".join(said)[:chars]


class Upstream:
    """Streams prose. pause_seconds: between two chunks."""

    def __init__(self) -> None:
        self.chars, self.pause_seconds = 1_000, 0.0
        self._dice = random.Random(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                await self._answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the gateway, or this measurement, is over
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        text = prose(self._dice, self.chars)
        for begin in range(0, len(text), PIECE_CHARS):
            writer.write(_event({"content": text[begin : begin + PIECE_CHARS]}))
            if self.pause_seconds:
                await writer.drain()
                await asyncio.sleep(self.pause_seconds)
        writer.write(_event({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n" + _END)
        await writer.drain()


def _event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    raw = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(raw), raw)


class Proxy:
    """Passes every byte on, and reads none."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65_536):
                    target.write(data)
                    await target.drain()
            except ConnectionError:
                pass
            finally:
                target.close()

        await asyncio.gather(pass_on(reader, back), pass_on(there, writer))


async def chat(port: int, key: str) -> AsyncIterator[tuple[float, int]]:
    """Stream one chat; yield the time and the number of letters of each piece."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    head = f"POST /api/v2/chat/completions HTTP/1.1\r\nHost: x\r\nX-Service-Key: {key}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)
    async for line in reader:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                if said := choice["delta"].get("content"):
                    yield time.perf_counter(), len(said)
        elif line.startswith(b"data: [DONE]"):
            break
    writer.close()


async def first_seconds(port: int, key: str, rounds: int) -> float:
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        is_first = True
        async for at, _ in chat(port, key):
            if is_first:
                found.append(at - begun)
            is_first = False
    return statistics.median(found)


async def held_chars(port: int, key: str, upstream: Upstream, rounds: int) -> tuple[float, int]:
    """Return how many letters the gateway holds on average and at most, as the upstream sends them at a steady pace."""
    held: list[int] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        got = 0
        async for at, chars in chat(port, key):
            sent = min(upstream.chars, PIECE_CHARS * (1 + int((at - begun) / upstream.pause_seconds)))
            held.append(max(0, sent - got))
            got += chars
    return statistics.mean(held) / 2, max(held)


async def all_of(port: int, key: str, many: int) -> float:
    """Stream many chats at once; return the seconds until all have ended."""

    async def one() -> None:
        async for _ in chat(port, key):
            pass

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(many)))
    return time.perf_counter() - begun


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def memory_kb(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    found = re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)
    assert found
    return int(found[1])


async def measure(archive: Path) -> None:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    passing = await asyncio.start_server(Proxy(port).serve, "127.0.0.1", 0)
    beside = passing.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        gateway, ours, key = await asyncio.to_thread(_start, archive, folder, port)
        try:
            await all_of(ours, key, 20)
            before = cpu_seconds(gateway.pid)
            upstream.chars = 4_000
            for _ in range(40):
                await all_of(ours, key, 1)
            chunks = 40 * upstream.chars / PIECE_CHARS
            cost_us = (cpu_seconds(gateway.pid) - before) / chunks * 1e6
            print(f"processor time a chunk of {PIECE_CHARS} letters: {cost_us:.0f} us", flush=True)
            upstream.chars, upstream.pause_seconds = 600, 0.02
            passed, held = [await first_seconds(one, key, 9) for one in (beside, ours)]
            print(f"first letters: {held * 1e3:.0f} ms, passed on {passed * 1e3:.0f} ms, at 50 chunks a second")
            mean, most = await held_chars(ours, key, upstream, 5)
            print(f"held back: {mean:.0f} letters on average, {most} at most")
            upstream.chars = 2_000
            before = cpu_seconds(gateway.pid)
            seconds = await all_of(ours, key, 200)
            print(f"200 streams at 50 chunks a second: {(cpu_seconds(gateway.pid) - before) / seconds:.2f} of one core")
            idle = memory_kb(gateway.pid)
            upstream.chars, upstream.pause_seconds = 400, 0.2
            waiting = asyncio.create_task(all_of(ours, key, 1_000))
            await asyncio.sleep(12)
            print(f"1,000 streams at once: {(memory_kb(gateway.pid) - idle) / 1_000:.0f} KB each")
            await waiting
        finally:
            gateway.terminate()
            gateway.wait(40)


def _start(archive: Path, folder: str, upstream: int) -> tuple["subprocess.Popen[str]", int, str]:
    command = [sys.executable, str(archive), "serve", "--port", "0", "--data-dir", folder, "--max-wait-seconds", "60"]
    command += ["--upstream-url", f"http://127.0.0.1:{upstream}/v1"]
    gateway = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert gateway.stderr
    port = next(int(found[1]) for line in gateway.stderr if (found := re.search(r"listening on \S+:(\d+)", line)))
    making = [sys.executable, str(archive), "keys", "create", "--data-dir", folder, "--name", "bench"]
    making += ["--scopes", "chat:completions", "--rate-limit", "100000"]
    return gateway, port, subprocess.run(making, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.stream")
    parser.add_argument("archive", type=Path)
    asyncio.run(measure(parser.parse_args().archive))


if __name__ == "__main__":
    main()
