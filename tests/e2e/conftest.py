"""The real archive: built once, started as a process on a free port, spoken to over real sockets."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from running import ROOT, Process, Served, one_at_a_time, start


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build gateway.pyz, once for all processes of a test run, and return its path."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = folder / "gateway.pyz"
    with one_at_a_time(folder / "gateway.lock"):
        if not path.exists():
            command = [sys.executable, str(ROOT / "build_zipapp.py"), "--output", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """Start the scripted upstream and return its base URL, without /v1."""
    command = [sys.executable, str(ROOT / "tests" / "upstream.py"), "0"]
    popen = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    process = Process(popen)
    try:
        yield f"http://127.0.0.1:{process.wait_for(re.compile(r':([0-9]+)'))[1]}"
    finally:
        process.stop()


@pytest.fixture(scope="module")
def gateway(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with the built-in model, a full key and no small rate limit."""
    data_dir = tmp_path_factory.mktemp("data")
    served = start(archive, data_dir)
    served.make_key()
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line for line in served.process.lines)


@pytest.fixture(scope="module")
def proxy(archive: Path, upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway in front of the scripted upstream."""
    data_dir = tmp_path_factory.mktemp("proxy")
    served = start(
        archive,
        data_dir,
        "--upstream-url",
        f"{upstream}/v1",
        "--upstream-first-byte-seconds",
        "2",
        "--upstream-total-seconds",
        "4",
        GATEWAY_UPSTREAM_API_KEY="sk-upstream-made-up",
    )
    served.make_key()
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line for line in served.process.lines)


@pytest.fixture
def start_nginx(tmp_path: Path) -> Iterator[Callable[[str, int], None]]:
    """Start a real nginx with these `server` blocks, and return when it listens on a port of this host."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("no nginx on this host (Debian: apt-get install nginx-light)")
    running: list[subprocess.Popen] = []

    def run(servers: str, port: int) -> None:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
        config = tmp_path / f"{port}.conf"
        config.write_text(
            f"daemon off; master_process off; pid {tmp_path}/{port}.pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {paths}\n{servers}\n}}\n"
        )
        command = [program, "-p", str(tmp_path), "-c", str(config), "-e", "stderr"]
        running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("nginx does not listen")

    yield run
    for process in running:
        process.terminate()
        process.wait(10)
