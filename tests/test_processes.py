"""The processes of a build: all at once give what one after the other gives, and none outlives what it is for."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from running import ROOT

import build_zipapp
from deploy import processes
from deploy.processes import Processes

PROGRAMS = {
    "echo": "import sys; sys.stdout.write(sys.stdin.read() * 2)",
    "fail": "import sys; sys.exit(f'first line\\n{sys.stdin.read()}')",
    # Says which it is once it runs, and would run for long.
    "stay": "import os, sys, time; open(sys.stdin.read(), 'w').write(str(os.getpid())); time.sleep(600)",
}
STAYING = """
import sys
from functools import partial
from pathlib import Path
_, root, folder, *places = sys.argv
sys.argv[1:] = []
sys.path.insert(0, root)
import build_zipapp
from deploy import processes
processes._FOLDER = Path(folder)
def build(*_, **__):
    with processes.Processes() as running:
        running.most = 2
        running.at_once(partial(running.run, "stay", each.encode()) for each in places)
build_zipapp.build = build
build_zipapp.main()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for programs."""
    monkeypatch.setattr(processes, "_FOLDER", tmp_path / "programs")
    (tmp_path / "programs").mkdir()
    for name, program in PROGRAMS.items():
        (tmp_path / "programs" / f"{name}.py").write_text(program)
    yield tmp_path


def pid_in(path: Path) -> int:
    """Wait for a program that stays to say which it is."""
    for _ in range(3000):
        if path.exists() and (told := path.read_text()):
            return int(told)
        time.sleep(0.01)
    raise AssertionError("it never ran")


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("cpus", [1, 3])
def test_results_are_in_the_order_of_their_jobs_with_any_number_of_cpus(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    monkeypatch.setattr(processes, "_usable_cpus", lambda: cpus)
    with Processes() as running:
        assert running.most == cpus
        nested = partial(running.at_once, [partial(running.run, "echo", b"inner")])
        jobs = [*(partial(running.run, "echo", str(number).encode()) for number in range(5)), nested]
        assert running.at_once(jobs) == [b"00", b"11", b"22", b"33", b"44", [b"innerinner"]]


def test_what_fails_ends_all_others_and_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_usable_cpus", lambda: 2)
    place, gone = folder / "pid", threading.Event()
    others = set(threading.enumerate())

    def stay() -> None:
        try:
            running.run("stay", str(place).encode())
        finally:
            gone.set()

    def fail() -> None:
        pid_in(place)
        try:
            running.run("fail", b"a bad rule")
        finally:
            gone.wait(60)
            time.sleep(0.2)  # the other one is the first to end, and must not be the one that is told

    with pytest.raises(SystemExit) as caught, Processes() as running:
        running.at_once([partial(running.at_once, [stay]), fail])
    assert caught.value.code == f"build_zipapp.py: {sys.executable} could not do its part: a bad rule"
    assert not is_there(pid_in(place))
    with pytest.raises(SystemExit) as again:
        running.run("echo", b"")
    assert again.value is caught.value
    assert set(threading.enumerate()) <= others


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 1)])
def test_a_build_that_is_ended_leaves_no_process(folder: Path, sent: signal.Signals, status: int) -> None:
    places = [folder / "one", folder / "other"]
    command = [sys.executable, "-c", STAYING, str(ROOT), str(folder / "programs"), *map(str, places)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}) as build:
        pids = [pid_in(places[0])]
        build.send_signal(sent)
        build.communicate(timeout=60)
    assert build.returncode == status
    pids += [pid_in(place) for place in places[1:] if place.exists()]
    assert not any(map(is_there, pids))


def test_a_file_of_the_build_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "gateway.pyz"
    build_zipapp.keep(target, b"old", mode=0o755)
    assert target.stat().st_mode & 0o777 == 0o755

    def interrupted(path: Path, data: bytes) -> int:
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_zipapp.keep(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["gateway.pyz"]
    assert target.read_bytes() == b"old"
