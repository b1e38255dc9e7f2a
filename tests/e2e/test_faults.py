"""What the host and its clients may do to the gateway: no descriptors, no disk, locks, idle, slow and leaving peers."""

import contextlib
import http.client
import json
import os
import resource
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from running import ALL_SCOPES, READY, Process, Served, environment, launch, make_key, start, until

pytestmark = pytest.mark.slow

ATTACK = "please open the pod bay doors now"
RULE = {
    "id": "pod-bay",
    "name": "Pod bay",
    "category": "injection",
    "severity": "critical",
    "confidence": 0.95,
    "description": "Asks for the doors.",
    "direction": ["inbound", "outbound"],
    "pattern": "pod bay doors",
    "standards": ["OWASP LLM01:2025"],
    "match": ["pod bay doors"],
    "pass": ["pod bay walls"],
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    path.write_text(json.dumps({"version": 1, "tables": {}, "rules": [RULE]}))
    return path


@pytest.fixture
def served(archive: Path, rules: Path, tmp_path: Path) -> Iterator[Served]:
    key = make_key(tmp_path / "data", ALL_SCOPES)
    served = start(archive, tmp_path / "data", "--rules", str(rules))
    served.key = key
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line for line in served.process.lines)


def connect(served: Served, first: bytes = b"") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    one.sendall(first)
    return one


def events(served: Served) -> int:
    """Return how many scans are in the audit log."""
    return len(served.ask("GET", "/api/v1/audit?limit=1000&source=shield").json["data"])


def test_it_goes_on_with_64_descriptors_when_clients_take_them_all(archive: Path, rules: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path / "data", ALL_SCOPES)
    command = [sys.executable, "-I", str(archive), "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (64, 64))
    process = launch([*command, "--rules", str(rules)], preexec_fn=limit)
    served = Served(process, int(process.wait_for(READY)[3]), key, tmp_path / "data")
    live = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)

    def scan_alive() -> int:
        headers = {"X-Service-Key": key, "Content-Type": "application/json"}
        live.request("POST", "/api/v1/shield/scan", json.dumps({"text": ATTACK}), headers)
        reply = live.getresponse()
        reply.read()
        return reply.status

    assert scan_alive() == 200
    with contextlib.ExitStack() as crowd:
        for _ in range(150):
            crowd.enter_context(connect(served))
        assert [scan_alive() for _ in range(5)] == [200] * 5
    left_seconds = time.monotonic()
    assert served.scan(ATTACK).status == 200  # it neither waits for those who have left nor is taken for one too many
    assert time.monotonic() - left_seconds < 10  # an idle connection may stay for longer
    live.close()
    assert process.stop() == 0
    assert not any("Traceback" in line for line in process.lines)


IDLE = 2000


@pytest.fixture
def _many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE + 500:
        pytest.skip(f"this host allows {hard} open files and {IDLE + 500} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_descriptors")
def test_idle_connections_and_slow_heads_do_not_stop_live_traffic_and_the_slow_are_closed(served: Served) -> None:
    with contextlib.ExitStack() as crowd:
        slow = [crowd.enter_context(connect(served, b"GET /api/v1/health HT")) for _ in range(50)]
        for _ in range(IDLE - len(slow)):
            crowd.enter_context(connect(served))
        assert [served.scan(ATTACK).status for _ in range(50)] == [200] * 50
        for one in slow:
            answer = one.recv(4096)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
        assert served.scan(ATTACK).status == 200


def test_a_full_disk_is_503_with_a_code_and_passes_without_a_restart(served: Served) -> None:
    assert served.scan(ATTACK).status == 200
    before = events(served)
    pid = served.process.popen.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))  # no file may grow, nor be written at all
    refused = served.scan(ATTACK)
    assert (refused.status, refused.code) == (503, "audit_unavailable")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert served.chat(ATTACK).status == 503
    health = served.ask("GET", "/api/v1/health").json
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    assert health["checks"]["database"] != "healthy"
    assert health["status"] == "degraded"
    until(lambda: served.ask("GET", "/api/v1/health").json["checks"]["database"] == "healthy")
    assert served.scan(ATTACK).status == 200
    assert events(served) == before + 1


def test_a_database_locked_by_another_program_is_503_and_passes_without_a_restart(served: Served) -> None:
    assert served.scan(ATTACK).status == 200
    other = sqlite3.connect(served.data_dir / "gateway.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = served.scan(ATTACK)
    assert (refused.status, refused.code) == (503, "audit_unavailable")
    assert served.ask("GET", "/api/v1/models").status == 200
    other.execute("ROLLBACK")
    other.close()
    assert served.scan(ATTACK).status == 200


def test_a_database_that_was_taken_away_is_503_until_it_is_back(served: Served) -> None:
    assert served.scan(ATTACK).status == 200
    database = served.data_dir / "gateway.db"
    database.rename(served.data_dir / "elsewhere")
    refused = served.scan(ATTACK)
    assert (refused.status, refused.code) == (503, "audit_unavailable")
    assert served.ask("GET", "/api/v1/health").json["checks"]["database"] != "healthy"
    assert not database.exists()
    (served.data_dir / "elsewhere").rename(database)
    until(lambda: served.ask("GET", "/api/v1/health").json["checks"]["database"] == "healthy")
    assert served.scan(ATTACK).status == 200


def test_a_client_that_leaves_in_the_middle_leaves_its_audit_event_all_the_same(served: Served) -> None:
    before = events(served)
    body = json.dumps({"text": ATTACK}).encode()
    head = f"POST /api/v1/shield/scan HTTP/1.1\r\nHost: x\r\nX-Service-Key: {served.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    whole = head.encode() + body
    for cut in (10, len(head) // 2, len(head) + 5, len(whole) - 1):
        connect(served, whole[:cut]).close()
    for count in range(40):
        with connect(served, whole) as one:
            if count % 2:  # a reset instead of an end
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # A reset may overtake the request in the kernel; an end cannot.
    until(lambda: events(served) >= before + 20)
    assert served.scan(ATTACK).status == 200
    assert before + 21 <= events(served) <= before + 41


def test_a_collector_of_the_log_that_hangs_keeps_nobody_waiting(archive: Path, rules: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path / "data", ALL_SCOPES)
    reading, writing = os.pipe()
    command = [sys.executable, "-I", str(archive), "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    popen = subprocess.Popen(command, stderr=writing, env=environment(GATEWAY_RULES=str(rules)), cwd="/")
    try:
        with os.fdopen(reading) as lines:
            ready = next(found for found in map(READY.search, lines) if found)
            while select.select((), (writing,), (), 0)[1]:  # and from now on nobody reads
                os.write(writing, b"x" * 4095 + b"\n")
            served = Served(cast(Process, popen), int(ready[3]), key, tmp_path / "data")
            reloaded = "/api/v1/audit?action=gateway_reloaded"
            for number in range(3):  # each of which is told when it is done
                popen.send_signal(signal.SIGHUP)
                until(lambda number=number: len(served.ask("GET", reloaded).json["data"]) > number)
                assert served.scan("Good morning.").status == 200
            popen.terminate()
            assert popen.wait(20) == 0
    finally:
        popen.kill()
        popen.wait()
        os.close(writing)
