"""MCP over standard input and output, one message on each line. The only writer to stdout of the `mcp` command.

Reading and writing block, so each has a daemon thread. That works for pipes, terminals, files and /dev/null alike, and
a peer that sends nothing or reads nothing cannot keep the process from ending.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.lowlevel import EventLoopToken
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from gateway.mcp import jsonrpc
from gateway.mcp.jsonrpc import Batch, Invalid, Message
from gateway.mcp.server import McpServer, is_long
from gateway.signals import SignalReceiver

LINE_BYTES = 8 * 1024 * 1024
_TOO_LONG = f"Parse error: a message is at most {LINE_BYTES} bytes"
RUNNING_CALLS = 64
GRACE_SECONDS = 1.2  # clients kill what has not ended 2 seconds after the end of its input
_BUFFER_BYTES = 65_536
# Raised in a thread that outlives the event loop.
_LOOP_ENDED = (RuntimeError, CancelledError, anyio.BrokenResourceError, anyio.ClosedResourceError)


class _Output:
    """Writes lines from a daemon thread, in order. `send` returns when its line is written; the thread closes `fd`."""

    def __init__(self, fd: int, closed: anyio.Event) -> None:
        self._fd = fd
        self._closed = closed
        self._queue: queue.SimpleQueue[tuple[bytes, anyio.Event] | None] = queue.SimpleQueue()
        self._token = anyio.lowlevel.current_token()
        threading.Thread(target=self._work, name="mcp-stdout", daemon=True).start()

    async def send(self, line: bytes) -> None:
        written = anyio.Event()
        self._queue.put((line + b"\n", written))
        await written.wait()

    def stop(self) -> None:
        """End the thread when the queued lines are written."""
        self._queue.put(None)

    def _work(self) -> None:
        with suppress(*_LOOP_ENDED):
            try:
                while (item := self._queue.get()) is not None:
                    line, written = item
                    rest = memoryview(line)
                    while rest:
                        rest = rest[os.write(self._fd, rest) :]
                    anyio.from_thread.run_sync(written.set, token=self._token)
            except OSError:  # the peer has closed its end
                anyio.from_thread.run_sync(self._closed.set, token=self._token)
            finally:
                with suppress(OSError):
                    os.close(self._fd)


def _read(fd: int, lines: MemoryObjectSendStream[bytes | None], end: Callable[[], None], token: EventLoopToken) -> None:
    """Pass on the input from a daemon thread that closes `fd`. end: called at the end of the input."""
    with suppress(*_LOOP_ENDED):
        with suppress(OSError, ValueError):  # a closed terminal or file: the end of the input
            for line in _lines(fd):
                anyio.from_thread.run(lines.send, line, token=token)
        anyio.from_thread.run_sync(end, token=token)


def _lines(fd: int) -> Iterator[bytes | None]:
    """Yield lines without white space around them, except blank lines. None: the line is over the limit."""
    with open(fd, "rb", buffering=_BUFFER_BYTES) as file:
        while line := file.readline(LINE_BYTES + 1):
            if len(line) > LINE_BYTES and not line.endswith(b"\n"):
                yield None
                while line and not line.endswith(b"\n"):
                    line = file.readline(_BUFFER_BYTES)
            elif line := line.strip(b" \t\r\n"):
                yield line


def _own(fd: int) -> int:
    """Return another descriptor of the same file, or -1 if it is closed."""
    try:
        return os.dup(fd)
    except OSError:
        return -1


async def serve(
    server: McpServer,
    *,
    read_fd: int = 0,
    write_fd: int | None = None,
    signals: SignalReceiver | None = None,
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Serve one peer until its input ends, it closes its end, or a signal comes.

    Calls that run then are finished within `GRACE_SECONDS` or cancelled. Without `write_fd` the protocol takes standard
    output, and everything else that writes there goes to standard error. signals: each that arrives counts as the end
    of the input. ending: called when no more input is read, before running calls are waited for.
    """
    # Each thread has its own descriptor: if it outlives the event loop, the number cannot belong to another file.
    output_fd = _own(1 if write_fd is None else write_fd)
    if write_fd is None:
        os.dup2(2, 1)
    ended, closed = anyio.Event(), anyio.Event()
    give, take = anyio.create_memory_object_stream[bytes | None](1)

    def end() -> None:
        ending()
        give.close()
        ended.set()

    reader = (_own(read_fd), give, end, anyio.lowlevel.current_token())
    threading.Thread(target=_read, args=reader, name="mcp-stdin", daemon=True).start()
    async with give, take, anyio.create_task_group() as group:
        if signals is not None:
            group.start_soon(_end_on_signal, signals, end)
        group.start_soon(_cancel_when, closed, group, 0.0, ending)
        group.start_soon(_cancel_when, ended, group, GRACE_SECONDS)
        output = _Output(output_fd, closed)
        try:
            await _converse(server, output, take)
        finally:
            output.stop()
        group.cancel_scope.cancel()


async def _converse(server: McpServer, output: _Output, lines: MemoryObjectReceiveStream[bytes | None]) -> None:
    """Answer line by line. Tool calls run concurrently, all other messages in order."""
    slots = anyio.Semaphore(RUNNING_CALLS)

    async def respond(message: Message | Batch) -> None:
        answer = await server.answer(message, output.send)
        if answer is not None:
            await output.send(answer)

    async def call(message: Message | Batch) -> None:
        try:
            await respond(message)
        finally:
            slots.release()

    async with anyio.create_task_group() as calls:
        async for line in lines:
            message = Invalid(None, jsonrpc.PARSE_ERROR, _TOO_LONG) if line is None else jsonrpc.parse(line)
            if is_long(message):
                await slots.acquire()
                calls.start_soon(call, message)
            else:
                await respond(message)


async def _end_on_signal(signals: SignalReceiver, end: Callable[[], None]) -> None:
    while True:
        await anyio.wait_readable(signals.descriptor)
        signals.receive()
        end()


async def _cancel_when(
    event: anyio.Event, group: TaskGroup, seconds: float = 0.0, ending: Callable[[], None] = lambda: None
) -> None:
    """Cancel the calls that still run some seconds after an event."""
    await event.wait()
    ending()
    await anyio.sleep(seconds)
    group.cancel_scope.cancel()
