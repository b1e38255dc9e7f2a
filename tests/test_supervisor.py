"""The keeper of processes, in a process of its own: a test runner has threads and must not be forked."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from running import ROOT, Process, environment

# What a worker does is the text in place of WORK; it knows `child` and `start`, the number of starts of its place.
PROGRAM = """
import os, signal, sys, time
sys.path.insert(0, ROOT)
from gateway.clock import Clock
from gateway.log import Log
from gateway.signals import unblock_signals
from gateway.supervisor import Child, Supervisor

def say(*words):
    os.write(2, (" ".join(map(str, words)) + "\\n").encode())

def stay():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    unblock_signals()
    child.report_ready()
    while True:
        signal.pause()

def reload():
    known = signal.signal(signal.SIGHUP, lambda *_: say("signal"))
    say("reload")
    while os.path.exists("slow"):
        time.sleep(0.01)
    signal.signal(signal.SIGHUP, known)
    return not os.path.exists("bad")

def begun(number):
    with open(f"starts-{number}", "a+") as file:
        file.write("x")
        return file.tell()

keeper = Supervisor(clock=Clock(), log=Log(sys.stderr, Clock()), stop_seconds=STOP, hung_seconds=HUNG)
child = keeper.keep(2, ready=lambda: say("all ready"), reload=reload, stopping=lambda: say("stopping"))
if isinstance(child, Child):
    start = begun(child.number)
    say("worker", child.number, "pid", os.getpid(), "replacement", child.is_replacement)
    WORK
    sys.exit(0)
say("the end", child)
sys.exit(child)
"""
PIDS = re.compile(r"worker (\d) pid (\d+) replacement (\w+)")


class Kept:
    """A supervisor with two workers that runs in `folder`."""

    def __init__(self, folder: Path, work: str, stop_seconds: float, hung_seconds: float) -> None:
        text = PROGRAM.replace("ROOT", repr(str(ROOT))).replace("STOP", str(stop_seconds)).replace("WORK", work)
        text = text.replace("HUNG", f"float('{hung_seconds}')")
        command = [sys.executable, "-c", text]
        popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), cwd=folder)
        self.process = Process(popen)

    def send(self, number: signal.Signals) -> None:
        self.process.popen.send_signal(number)

    def wait_for(self, pattern: str) -> None:
        self.process.wait_for(re.compile(pattern))

    def workers(self) -> list[tuple[str, int, str]]:
        """Return number, process id and whether it is a replacement, of every worker that ever began."""
        found = [PIDS.search(line) for line in self.process.lines]
        return [(one[1], int(one[2]), one[3]) for one in found if one]

    def end(self) -> int:
        code = self.process.popen.wait(20)
        self.process.stop()
        return code


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    made: list[Kept] = []

    def make(work: str, stop_seconds: float = 10, hung_seconds: float = float("inf")) -> Kept:
        made.append(Kept(tmp_path, work, stop_seconds, hung_seconds))
        return made[-1]

    yield make
    for kept in made:
        kept.process.popen.kill()
        for _, pid, _ in kept.workers():  # while one lives, what it says is read on
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        kept.process.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_once_and_ends_well_when_told(keep: Callable[..., Kept], number: signal.Signals) -> None:
    kept = keep("stay()")
    kept.wait_for("all ready")
    kept.send(number)
    assert kept.end() == 0
    lines = "".join(kept.process.lines)
    assert lines.count("all ready") == lines.count("stopping") == 1
    assert [number for number, _, _ in sorted(kept.workers())] == ["0", "1"]


def test_a_worker_that_dies_is_started_again(keep: Callable[..., Kept]) -> None:
    kept = keep("stay()")
    kept.wait_for("all ready")
    victim = next(pid for number, pid, _ in kept.workers() if number == "1")
    os.kill(victim, signal.SIGKILL)
    kept.wait_for("worker_ended")
    kept.wait_for("worker 1 pid")
    kept.send(signal.SIGTERM)
    assert kept.end() == 0
    assert [number for number, _, is_new in kept.workers() if is_new == "True"] == []


def test_a_worker_that_is_silent_is_killed_and_started_again_and_no_other_is(keep: Callable[..., Kept]) -> None:
    beating = """signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    unblock_signals()
    while True:
        child.report_ready()
        time.sleep(3600 if child.number == 1 and start == 1 else 0.1)
"""
    kept = keep(beating, hung_seconds=3)
    kept.wait_for("all ready")
    kept.wait_for("worker_killed.*silent")
    kept.wait_for("worker 1 pid")
    kept.send(signal.SIGTERM)
    assert kept.end() == 0
    assert sorted(number for number, _, _ in kept.workers()) == ["0", "1", "1"]


def test_a_replacement_that_never_gets_ready_is_killed_and_the_next_takes_its_place(keep: Callable[..., Kept]) -> None:
    kept = keep(
        """if child.is_replacement and start == 2: time.sleep(3600)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    unblock_signals()
    while True:
        child.report_ready()
        time.sleep(0.1)
""",
        hung_seconds=3,
    )
    kept.wait_for("all ready")
    kept.send(signal.SIGHUP)
    kept.wait_for("worker_killed.*silent")
    kept.wait_for("worker_killed.*silent")
    kept.wait_for("replacement True")
    kept.wait_for("replacement True")
    kept.send(signal.SIGTERM)
    assert kept.end() == 0
    assert sorted(number for number, _, is_new in kept.workers() if is_new == "True") == ["0", "0", "1", "1"]


def test_a_worker_that_dies_again_and_again_waits_ever_longer(keep: Callable[..., Kept]) -> None:
    kept = keep("if start > 1: os._exit(5)\n    if child.number: stay()\n    child.report_ready(); time.sleep(0.3)")
    kept.wait_for("all ready")
    for seconds in ("0.1", "0.2", "0.4", "0.8"):
        kept.wait_for(f'"restart_in_seconds": {seconds}')
    kept.send(signal.SIGTERM)
    assert kept.end() == 0


def test_when_a_worker_cannot_start_the_others_are_stopped_and_its_code_is_returned(keep: Callable[..., Kept]) -> None:
    kept = keep("if child.number: sys.exit(7)\n    stay()")
    assert kept.end() == 7
    assert "all ready" not in "".join(kept.process.lines)


def test_a_worker_that_ends_unready_without_a_fault_is_a_failed_start(keep: Callable[..., Kept]) -> None:
    assert keep("if child.number: sys.exit(0)\n    stay()").end() == 1


def test_a_worker_that_does_not_end_is_killed_and_the_code_says_so(keep: Callable[..., Kept]) -> None:
    kept = keep(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); unblock_signals(); child.report_ready(); time.sleep(60)", 0.3
    )
    kept.wait_for("all ready")
    kept.send(signal.SIGTERM)
    assert kept.end() == 1
    assert "worker_killed" in "".join(kept.process.lines)


def test_a_reload_replaces_every_worker_once_the_new_one_is_ready(keep: Callable[..., Kept]) -> None:
    kept = keep("stay()")
    kept.wait_for("all ready")
    old = {pid for _, pid, _ in kept.workers()}
    kept.send(signal.SIGHUP)
    kept.wait_for("replacement True")
    kept.wait_for("replacement True")
    wait_for_end(old)
    kept.send(signal.SIGTERM)
    assert kept.end() == 0
    assert sorted(number for number, _, is_new in kept.workers() if is_new == "True") == ["0", "1"]


def test_a_reload_that_is_refused_replaces_nobody(keep: Callable[..., Kept], tmp_path: Path) -> None:
    (tmp_path / "bad").touch()
    kept = keep("stay()")
    kept.wait_for("all ready")
    kept.send(signal.SIGHUP)
    kept.wait_for("^reload")
    kept.send(signal.SIGTERM)
    assert kept.end() == 0
    assert len(kept.workers()) == 2


def test_who_asks_often_while_it_reloads_does_not_keep_it_from_its_end(
    keep: Callable[..., Kept], tmp_path: Path
) -> None:
    (tmp_path / "slow").touch()
    kept = keep("stay()")
    kept.wait_for("all ready")
    for _ in range(5):
        kept.send(signal.SIGHUP)
        kept.wait_for("^reload|^signal")
    kept.send(signal.SIGTERM)
    (tmp_path / "slow").unlink()
    assert kept.end() == 0
    assert "".join(kept.process.lines).count("reload\n") == 1


def test_the_old_worker_stays_while_its_replacement_cannot_start(keep: Callable[..., Kept]) -> None:
    kept = keep("if child.is_replacement and start < 4: sys.exit(9)\n    stay()")
    kept.wait_for("all ready")
    old = {pid for _, pid, _ in kept.workers()}
    kept.send(signal.SIGHUP)
    kept.wait_for("worker_ended")
    assert all(is_running(pid) for pid in old)
    wait_for_end(old)
    kept.send(signal.SIGTERM)
    assert kept.end() == 0


def test_a_worker_and_its_replacement_that_end_at_once_are_both_noticed(keep: Callable[..., Kept]) -> None:
    kept = keep("if child.is_replacement: time.sleep(3600)\n    stay()", stop_seconds=60)
    kept.wait_for("all ready")
    kept.send(signal.SIGHUP)
    kept.wait_for("replacement True")
    kept.wait_for("replacement True")
    kept.send(signal.SIGSTOP)  # so that it learns of all of them together
    for _, pid, _ in kept.workers():
        os.kill(pid, signal.SIGKILL)
    while any(is_alive(pid) for _, pid, _ in kept.workers()):
        time.sleep(0.01)
    kept.send(signal.SIGTERM)
    kept.send(signal.SIGCONT)
    kept.end()
    assert "did not end in time" not in "".join(kept.process.lines)


def test_a_worker_notices_that_its_supervisor_was_killed(keep: Callable[..., Kept]) -> None:
    kept = keep("child.report_ready()\n    import select; select.select([child.life], [], []); say('alone')")
    kept.wait_for("all ready")
    kept.send(signal.SIGKILL)
    kept.wait_for("alone")
    kept.wait_for("alone")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Tell whether a process has not ended yet, as one has that nobody has waited for. False where nobody tells."""
    told = Path(f"/proc/{pid}/stat")
    return told.exists() and told.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for_end(pids: set[int]) -> None:
    end = time.monotonic() + 20
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)
