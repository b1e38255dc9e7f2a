"""A socket that somebody else opened, as systemd does: used as it is, kept over a restart, refused when it is none."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from running import READY, Process, Served, environment

STARTER = """
import os, sys
for place, descriptor in enumerate(map(int, sys.argv[1].split(","))):
    os.dup2(descriptor, 3 + place)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def run(archive: Path, data_dir: Path, *sockets: socket.socket, **settings: str) -> Process:
    """Start `serve` as systemd does, with the sockets as descriptors 3 and up."""
    # From high numbers, so that no descriptor is overwritten before it is copied.
    high = [os.dup2(one.fileno(), 200 + place) for place, one in enumerate(sockets)]
    command = [sys.executable, "-I", "-c", STARTER, ",".join(map(str, high)), sys.executable, "-I", str(archive)]
    popen = subprocess.Popen(
        [*command, "serve", "--data-dir", str(data_dir)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**{"LISTEN_FDS": str(len(sockets)), **settings}),
        cwd="/",
        pass_fds=high,
    )
    for descriptor in high:
        os.close(descriptor)
    return Process(popen)


def first_key(data_dir: Path) -> str:
    found = re.search(r"api_key: (svc_[0-9a-f]{40})", (data_dir / "first-credentials.txt").read_text())
    assert found
    return found[1]


def test_it_answers_on_the_socket_it_was_given_and_what_comes_during_a_restart_waits(
    archive: Path, tmp_path: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    process = run(archive, tmp_path / "data", listener)
    assert int(process.wait_for(READY)[3]) == port
    served = Served(process, port, first_key(tmp_path / "data"), tmp_path / "data")
    assert served.scan("hello").json["data"]["verdict"] == "ALLOW"
    assert process.stop() == 0
    # Nobody answers now, and the socket is still there: a client connects and waits.
    with socket.create_connection(("127.0.0.1", port), timeout=30) as early:
        early.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        process = run(archive, tmp_path / "data", listener)
        assert early.recv(100).startswith(b"HTTP/1.1 200 ")
        assert process.stop() == 0


def test_workers_share_the_socket_and_mcp_has_its_own(archive: Path, tmp_path: Path, listener: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as second:
        process = run(
            archive,
            tmp_path / "data",
            listener,
            second,
            LISTEN_FDNAMES="gateway.socket:mcp",
            GATEWAY_WORKERS="2",
            MCP_ENABLED="1",
            MCP_API_KEY="a-key-of-this-test",
        )
        process.wait_for(READY)
        for port, path in ((listener.getsockname()[1], "/api/v1/health"), (second.getsockname()[1], "/health")):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
                wire.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                assert wire.recv(100).startswith(b"HTTP/1.1 200 ")
        assert process.stop() == 0


def refusal(process: Process) -> str:
    assert process.popen.wait(30) == 2
    process.stop()
    lines = [line for line in process.lines if not line.startswith("{")]
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"LISTEN_FDS": "x"}, "LISTEN_FDS must be 1 to 2"),
        ({"LISTEN_FDS": "0"}, "LISTEN_FDS must be 1 to 2"),
        ({"LISTEN_FDNAMES": "mcp"}, "MCP_ENABLED is off"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    archive: Path, tmp_path: Path, listener: socket.socket, settings: Mapping[str, str], reason: str
) -> None:
    process = run(archive, tmp_path / "data", listener, **settings)
    assert reason in refusal(process)


def test_what_does_not_listen_is_refused_in_one_line(archive: Path, tmp_path: Path) -> None:
    with socket.socket() as idle, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram:
        assert "does not listen" in refusal(run(archive, tmp_path / "data", idle))
        assert "no TCP socket" in refusal(run(archive, tmp_path / "data", datagram))


def test_a_socket_open_to_the_network_needs_sign_in_whatever_the_settings_say(archive: Path, tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        assert "RBAC_ENABLED=true" in refusal(run(archive, tmp_path / "data", everywhere))
