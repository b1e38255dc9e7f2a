"""The real archive: built once, started as a process on a free port, spoken to over real sockets."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxies import Proxies
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
def proxies(tmp_path: Path) -> Iterator[Proxies]:
    made = Proxies(tmp_path)
    yield made
    made.stop()
