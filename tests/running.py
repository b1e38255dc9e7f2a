"""A gateway process started from the archive, and one HTTP call to it. For the tests that need the real thing."""

import contextlib
import fcntl
import http.client
import io
import json
import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from gateway.bundle import NativeReport
from gateway.cli import main as cli

ROOT = Path(__file__).resolve().parents[1]
READY = re.compile(r"listening on (https?)://(127\.0\.0\.1|\[::1\]):(\d+)")
START_SECONDS = 30
Done = subprocess.CompletedProcess[str]


def free_port() -> int:
    """Return a port of this host that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@dataclass
class Answer:
    """One HTTP answer. headers: lower-case names, the last value of each."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


@dataclass
class Process:
    """A running program whose stderr is read to the end, so that it never blocks on it."""

    popen: subprocess.Popen
    lines: list[str] = field(default_factory=list)

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Return the first match of `pattern` on stderr, from the start."""
        for line in iter(lambda: self._queue.get(timeout=3 * START_SECONDS), None):
            if found := pattern.search(line):
                return found
        raise AssertionError("the process ended:\n" + "".join(self.lines))

    def __post_init__(self) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.lines.append(line)
            self._queue.put(line)
        self._queue.put(None)

    def stop(self) -> int:
        """Ask it to stop as an operator would and return its exit code."""
        if self.popen.poll() is None:
            self.popen.terminate()
        try:
            return self.popen.wait(START_SECONDS)
        finally:
            self.popen.kill()
            self.popen.wait()
            self._thread.join(5)
            for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
                if pipe is not None:
                    pipe.close()


@dataclass
class Served:
    """A gateway that answers, and a key that may do everything."""

    process: Process
    port: int
    key: str
    data_dir: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: object = None, *, key: str | None = "", headers: dict | None = None
    ) -> Answer:
        """Send one request. key: "" for the first key, None for no key. body: bytes as they are, else as JSON."""
        sent = dict(headers or {})
        chosen = self.key if key == "" else key
        if chosen is not None:
            sent.setdefault("X-Service-Key", chosen)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def make_key(self, scopes: str = "", rate_limit: int = 100_000) -> None:
        """Speak with a new key from now on, which may do everything unless `scopes` says less. Needs RBAC off."""
        body = {"name": "test", "scopes": (scopes or ALL_SCOPES).split(","), "rate_limit": rate_limit}
        made = self.ask("POST", "/api/config/api-keys", body, key=None)
        assert made.status == 201, made.body
        self.key = made.json["data"]["key"]

    def command(self, *arguments: object, stdin: str | bytes = b"") -> Done:
        """Run a command beside the server, on its data folder."""
        return command(*arguments, "--data-dir", self.data_dir, stdin=stdin)

    def scan(self, text: str, **more: object) -> Answer:
        return self.ask("POST", "/api/v1/shield/scan", {"text": text, **more})

    def chat(self, content: object, **more: object) -> Answer:
        request = {"model": "test-model", "messages": [{"role": "user", "content": content}], **more}
        return self.ask("POST", "/api/v1/chat/completions", request)


def environment(**more: str) -> dict[str, str]:
    """Return an environment without the developer's own settings."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in os.environ}
    return kept | more


def until(condition: Callable[[], object]) -> None:
    """Ask again and again until `condition` is true.

    The limit leaves a busy host its time, and ends before a silent worker or a hanging upstream is given up.
    """
    end = time.monotonic() + 1.5 * START_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def tell(upstream: str, path: str, value: object = None) -> Any:
    """Speak to the scripted upstream beside the gateway, and return its answer."""
    data = None if value is None else json.dumps(value).encode()
    with urllib.request.urlopen(urllib.request.Request(upstream + path, data), timeout=10) as reply:
        return json.load(reply)


@contextlib.contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Let one process of a test run at a time past this file."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def launch(command: list[str], **more: Any) -> Process:
    """Start a program away from this folder. more: as for `subprocess.Popen`, before what is usual."""
    usual: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": environment(),
        "cwd": "/",
    }
    return Process(subprocess.Popen(command, **(usual | more)))


def start(archive: Path, data_dir: Path, *flags: str, **settings: str) -> Served:
    """Start `serve` on a free port and wait until it can answer.

    A busy host may keep a request waiting for longer than the default allows, so it is not refused for that.
    """
    patient = {"GATEWAY_MAX_WAIT_SECONDS": "45"} | settings
    command = [sys.executable, "-I", str(archive), "serve", "--port", "0", "--data-dir", str(data_dir), *flags]
    process = launch(command, env=environment(**patient))
    try:
        port = int(process.wait_for(READY)[3])
    except BaseException:
        process.stop()
        raise
    first = data_dir / "first-credentials.txt"
    text = first.read_text() if first.exists() else "".join(process.lines)
    found = re.search(r"api_key: (svc_[0-9a-f]{40})", text)
    return Served(process, port, found[1] if found else "", data_dir)


def command(*arguments: object, stdin: str | bytes = b"", folder: Path = ROOT, **settings: str) -> Done:
    """Run one command of the gateway in this process, with these settings and no others.

    It takes a twentieth of the time of a process. The archive itself runs where the process is what is tested.
    """
    raw = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words = list(map(str, arguments))
    with (
        mock.patch.dict(os.environ, environment(**settings), clear=True),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder),
    ):
        try:
            code = cli.run(cli.read(words), NativeReport("installed", None, ()))
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(words, code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def run(
    archive: Path, *arguments: object, stdin: str = "", flags: Sequence[str] = ("-I", "-S"), **settings: str
) -> Done:
    """Run the archive in a process of its own, with these settings and no others."""
    words = [sys.executable, *flags, str(archive), *map(str, arguments)]
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, env=environment(**settings), cwd="/", timeout=60
    )


def make_key(data_dir: Path, scopes: str, rate_limit: int = 100_000, **settings: str) -> str:
    """Create a key by the command line and return it."""
    words = ("keys", "create", "--name", "test", "--scopes", scopes, "--rate-limit", rate_limit)
    done = command(*words, "--data-dir", data_dir, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def speak_mcp(*words: str, **settings: str) -> subprocess.Popen[str]:
    """Start a program that speaks MCP on its standard streams, and introduce a client."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment(**settings), cwd="/"
    )
    answer = ask_mcp(process, 1, "initialize", **hello)
    assert "result" in answer, answer
    return process


def tell_mcp(process: subprocess.Popen[str], **message: object) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


def ask_mcp(process: subprocess.Popen[str], number: int, method: str, **params: object) -> dict:
    """Send a request and return its answer."""
    tell_mcp(process, id=number, method=method, params=params)
    assert process.stdout
    return json.loads(process.stdout.readline())


ALL_SCOPES = "shield:scan,shield:read,agents:read,alerts:read,audit:read,fleet:read,chat:completions"
