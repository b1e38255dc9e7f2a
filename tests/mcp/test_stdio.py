"""Lines over file descriptors: framing, garbage, the end of the input, signals, a peer that leaves."""

import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.mcp import stdio
from gateway.signals import STOPS, SignalReceiver

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
WAIT = b'{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait"}}'


class Pipes:
    """Both ends of a conversation over pipes."""

    def __init__(self) -> None:
        self.server_in, self.to_server = os.pipe()
        self.from_server, self.server_out = os.pipe()
        self._rest = b""

    def write(self, *lines: bytes) -> None:
        os.write(self.to_server, b"".join(line + b"\n" for line in lines))

    async def read(self) -> Any:
        """Return the next answer."""
        while b"\n" not in self._rest:
            with anyio.fail_after(60):
                await anyio.wait_readable(self.from_server)
            self._rest += os.read(self.from_server, 65_536)
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def end(self) -> None:
        os.close(self.to_server)
        self.to_server = -1

    def close(self) -> None:
        for fd in (self.server_in, self.to_server, self.from_server, self.server_out):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)


@contextlib.asynccontextmanager
async def conversation(peer: Any, signals: SignalReceiver | None = None) -> AsyncGenerator[Pipes, None]:
    """Serve over pipes; leaving the block waits for the server to end by itself."""
    pipes = Pipes()
    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def serve() -> None:
                    await stdio.serve(peer.server, read_fd=pipes.server_in, write_fd=pipes.server_out, signals=signals)

                group.start_soon(serve)
                yield pipes
    finally:
        pipes.close()


async def test_each_line_is_answered_by_one_line(peer: Any) -> None:
    async with conversation(peer) as pipes:
        pipes.write(PING, b"", PING.replace(b"1", b"2", 1).replace(b'"id":1', b'"id":2'))
        assert (await pipes.read())["id"] == 1
        pipes.end()


@pytest.mark.parametrize(
    "garbage",
    [b"hello", b'{"id":', b'{"a":"\xff"}', b"[" * 100_000, b'{"id":NaN}', b"9" * 6000, b'{"a":"\\ud800"}'],
    ids=["word", "cut", "utf-8", "brackets", "nan", "digits", "surrogate"],
)
async def test_a_line_that_does_not_parse_is_answered_and_survived(peer: Any, garbage: bytes) -> None:
    async with conversation(peer) as pipes:
        await anyio.to_thread.run_sync(pipes.write, garbage, PING)
        error = await pipes.read()
        assert (error["id"], error["error"]["code"]) == (None, -32700)
        assert await pipes.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        pipes.end()


async def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "LINE_BYTES", 1000)
    async with conversation(peer) as pipes:
        os.write(pipes.to_server, b"x" * 2000)
        error = await pipes.read()
        assert error["error"]["code"] == -32700
        pipes.write(b"x" * 100, PING)
        assert (await pipes.read())["id"] == 1
        pipes.end()


async def test_blank_lines_are_skipped_and_a_carriage_return_ends_a_line_too(peer: Any) -> None:
    async with conversation(peer) as pipes:
        pipes.write(b"", b" \t\r", PING + b"\r", b"", b"  " + PING.replace(b'"id":1', b'"id":2') + b" ")
        assert [(await pipes.read())["id"] for _ in range(2)] == [1, 2]
        pipes.end()


async def test_only_the_lines_over_the_limit_are_refused_each_once(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "LINE_BYTES", len(PING))
    async with conversation(peer) as pipes:
        pipes.write(b"x" * 50_000, PING, b"y" * (len(PING) + 1), PING + b" ", PING)
        assert [(await pipes.read())["id"] for _ in range(5)] == [None, 1, None, None, 1]
        os.write(pipes.to_server, b"z" * 50_000)
        pipes.end()
        assert (await pipes.read())["id"] is None


async def test_others_are_answered_while_a_tool_runs_and_a_cancelled_one_is_not(peer: Any) -> None:
    async with conversation(peer) as pipes:
        pipes.write(WAIT, PING)
        assert (await pipes.read())["id"] == 1
        await peer.script.begun.wait()
        pipes.write(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}', PING)
        assert (await pipes.read())["id"] == 1
        pipes.end()
    assert peer.audit.events[-1][2] == "cancelled"


async def test_what_runs_at_the_end_of_the_input_is_finished(peer: Any) -> None:
    async with conversation(peer) as pipes:
        pipes.write(WAIT)
        pipes.end()
        await peer.script.begun.wait()
        peer.script.may_end.set()
        assert (await pipes.read())["id"] == "w"


async def test_what_does_not_finish_after_the_end_is_cancelled(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "GRACE_SECONDS", 0.01)
    async with conversation(peer) as pipes:
        pipes.write(WAIT)
        await peer.script.begun.wait()
        pipes.end()
    assert peer.audit.events[-1][2] == "cancelled"


async def test_the_last_line_needs_no_line_break(peer: Any) -> None:
    async with conversation(peer) as pipes:
        os.write(pipes.to_server, PING)
        pipes.end()
        assert (await pipes.read())["id"] == 1


async def test_a_file_can_be_the_input(peer: Any, tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(PING + b"\n" + PING)
    with asked.open("rb") as source, answered.open("wb") as target, anyio.fail_after(60):
        await stdio.serve(peer.server, read_fd=source.fileno(), write_fd=target.fileno())
    assert answered.read_bytes().count(b"\n") == 2


async def test_no_input_at_all_is_the_end(peer: Any) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    with anyio.fail_after(60):
        await stdio.serve(peer.server, read_fd=nothing, write_fd=nothing)
    os.close(nothing)


async def test_a_closed_input_is_the_end(peer: Any) -> None:
    closed, nothing = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    os.close(closed)
    with anyio.fail_after(60):
        await stdio.serve(peer.server, read_fd=closed, write_fd=nothing)
    os.close(nothing)


async def test_a_peer_that_reads_no_more_ends_the_conversation(peer: Any) -> None:
    async with conversation(peer) as pipes:
        os.close(pipes.from_server)
        pipes.from_server = -1
        pipes.write(PING, PING)


@pytest.mark.parametrize("number", STOPS)
async def test_a_signal_is_the_end_of_the_input_however_often_it_comes(peer: Any, number: signal.Signals) -> None:
    before = {one: signal.getsignal(one) for one in STOPS}
    signals = SignalReceiver(STOPS)
    try:
        async with conversation(peer, signals) as pipes:
            pipes.write(PING)
            await pipes.read()
            for _ in range(3):
                os.kill(os.getpid(), number)
                await anyio.sleep(0.01)
    finally:
        for one, action in before.items():
            signal.signal(one, action)
        signals.close()


async def test_a_message_is_written_whole_however_slowly_it_is_read(peer: Any) -> None:
    text = "x" * 300_000
    message = {
        "jsonrpc": "2.0",
        "id": 5,
        "method": "tools/call",
        "params": {"name": "say", "arguments": {"text": text}},
    }
    async with conversation(peer) as pipes:
        await anyio.to_thread.run_sync(pipes.write, json.dumps(message).encode())
        reply = await pipes.read()
        assert "result" in reply, reply
        assert reply["result"]["content"][0]["text"] == text
        pipes.end()


async def test_standard_output_belongs_to_the_protocol_alone(peer: Any, tmp_path: Path) -> None:
    """Whatever else writes to it while the server runs ends on standard error."""
    (tmp_path / "in").write_bytes(PING)
    source = os.open(tmp_path / "in", os.O_RDONLY)
    target = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    saved = os.dup(1)
    os.dup2(target, 1)
    try:
        with anyio.fail_after(60):
            await stdio.serve(peer.server, read_fd=source)
        os.write(1, b"a stray line\n")
    finally:
        os.dup2(saved, 1)
        for fd in (source, target, saved):
            os.close(fd)
    assert (tmp_path / "out").read_bytes() == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
