"""Gateways with data folders of their own on one database, as on several hosts."""

import contextlib
import http.client
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from network import Network, within
from running import READY, Answer, Served, command, environment, launch, until

from gateway.clock import Clock
from gateway.store import store
from gateway.store.sqlite import SqliteDatabase

# Starts the archive on a host whose clock is wrong by some seconds.
CLOCK = """
import runpy, sys, time
real = time.time_ns
time.time_ns = lambda: real() + {} * 10**9
time.time = lambda: time.time_ns() / 1e9
sys.argv[0] = {!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def share(monkeypatch: pytest.MonkeyPatch, file: Path, clock: Clock) -> None:
    """Let every store that is opened from now on use the database `file`, whose clock is `clock`."""

    class SharedDatabase(SqliteDatabase):
        """A file that has the place of a database server."""

        is_shared = True

        def __init__(self, path: str, **more: Any) -> None:
            super().__init__(str(file), **(more | {"clock": clock}))

    file.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(store, "SqliteDatabase", SharedDatabase)


@dataclass
class Distant(Served):
    """A gateway on a host of a network."""

    host: str = ""

    def ask(self, *words: Any, **more: Any) -> Answer:
        with within(self.host):
            return super().ask(*words, **more)


@dataclass
class Hosts:
    """Gateways with data folders of their own on one database, each on its own host if there is a network."""

    archive: Path
    folder: Path
    url: str
    network: Network | None
    gateways: list[Distant] = field(default_factory=list)

    @property
    def database(self) -> str:
        return urlsplit(self.url).path[1:]

    @property
    def shared(self) -> dict[str, str]:
        return {"GATEWAY_DATABASE_URL": self.url, "GATEWAY_SEAL_KEY_FILE": str(self.folder / "seal")}

    def start(self, *, clock_seconds: int = 0, archive: Path | None = None) -> Distant:
        """Start one more gateway. clock_seconds: how far its clock is wrong. archive: another one than the others'."""
        seal, data = self.folder / "seal", self.folder / f"host{len(self.gateways)}"
        if not seal.exists():
            seal.write_text(secrets.token_hex(32))
            seal.chmod(0o600)
        program = str(archive or self.archive)
        words = [program] if not clock_seconds else ["-c", CLOCK.format(clock_seconds, program)]
        host = self.network.host() if self.network else ""
        where = ["ip", "netns", "exec", host] if host else []
        one = [*where, sys.executable, "-I", *words, "serve", "--port", "0", "--data-dir", str(data)]
        process = launch(one, env=environment(GATEWAY_MAX_WAIT_SECONDS="45", **self.shared))
        served = Distant(process, 0, self.gateways[0].key if self.gateways else "", data, host)
        self.gateways.append(served)
        served.port = int(process.wait_for(READY)[3])
        if not served.key:
            served.make_key()
        return served

    def make_key(self, **fields: object) -> str:
        """Make a key on the first gateway."""
        body = {"name": "one", "scopes": ["chat:completions", "shield:scan"], "rate_limit": 100_000, **fields}
        return str(post(self.gateways[0], "/api/config/api-keys", body)["key"])

    def chain_is_whole(self) -> bool:
        done = command("audit", "verify", "--data-dir", self.gateways[0].data_dir, **self.shared)
        assert "the chain is whole" in done.stdout, (done.stdout, done.stderr)
        return True

    def recorded(self, path: str, live: Served) -> Counter[str]:
        """Return how often each request is in a table of the database, through the API of a gateway."""
        found: Counter[str] = Counter()
        cursor: str | None = ""
        while cursor is not None:
            asked = f"{path}{cursor and '&cursor='}{cursor}"
            # The first answer may tell of a connection that the test has cut.
            until(lambda asked=asked: "data" in live.ask("GET", asked).json)
            page = live.ask("GET", asked).json
            found.update(one["request_id"] for one in page["data"])
            cursor = page["page"]["next"]
        return found


def post(gateway: Served, path: str, body: object, method: str = "POST") -> dict:
    """Change something through the internal API, which must accept it, and return the data of the answer."""
    answer = gateway.ask(method, path, body, key=None)
    assert answer.status in (200, 201), answer.body
    return dict(answer.json["data"] or {})


@contextlib.contextmanager
def on_hosts(archive: Path, url: str, network: Network | None) -> Iterator[Hosts]:
    """Give gateways to start on the database at `url`, and stop them all in the end. None may log a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        hosts = Hosts(archive, Path(folder), url, network)
        try:
            yield hosts
            lines = "".join(line for one in hosts.gateways for line in one.process.lines)
            assert "Traceback" not in lines, lines
        finally:
            for one in hosts.gateways:
                with contextlib.suppress(ProcessLookupError):
                    one.process.popen.send_signal(signal.SIGCONT)
                one.process.stop()


@dataclass
class Load:
    """Callers who chat all the time, two for each gateway. seen: when, of which gateway, status and request id."""

    gateways: list[Distant]
    seen: list[tuple[float, int, int, str]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Load":
        self._threads = [
            threading.Thread(target=self._call, args=(i,), daemon=True) for i in (*range(len(self.gateways)),) * 2
        ]
        for one in self._threads:
            one.start()
        self.wait_for_more()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_over.set()
        for one in self._threads:
            one.join(20)

    def _call(self, number: int) -> None:
        while not self.is_over.is_set():
            try:
                answer = self.gateways[number].chat("Good morning.")
                found = answer.status, answer.headers["x-request-id"]
            except (OSError, http.client.HTTPException):
                found = 0, ""
                time.sleep(0.02)
            self.seen.append((time.monotonic(), number, *found))

    def answered(self) -> set[str]:
        return {one[3] for one in self.seen if one[2] == 200}

    def wait_for_more(self, *numbers: int, count: int = 5) -> float:
        """Wait until these gateways, by default all, have each answered some more chats, and return the time."""
        start = len(self.seen)

        def have_all() -> bool:
            good = Counter(one[1] for one in self.seen[start:] if one[2] == 200)
            return all(good[number] >= count for number in numbers or range(len(self.gateways)))

        until(have_all)
        return time.monotonic()

    def statuses(self, since: float, *numbers: int) -> Counter[int]:
        return Counter(status for at, number, status, _ in self.seen if at >= since and number in numbers)


def assert_kept(hosts: Hosts, load: Load, live: Served) -> None:
    """Each acknowledged chat is recorded once, no request twice, and the chain is whole."""
    for path in ("/api/v1/audit?limit=500&source=chat", "/api/traffic?limit=500"):
        until(lambda path=path: not load.answered() - set(hosts.recorded(path, live)))
        assert set(hosts.recorded(path, live).values()) == {1}, path
    assert hosts.chain_is_whole()
    print(f"\n{len(load.answered())} acknowledged chats, all recorded once")
