"""The processes of a build: as many at once as there are CPUs, and all ended when one fails or the build is ended.

Each is a program that a Python runs with the standard library alone: bytes on stdin, bytes on stdout. Nothing is shared
with it, so it is all the same how many run and in which order they end. Needs no fork and no semaphore of the system.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Self

_FOLDER = Path(__file__).resolve().parent
_MOST = 8  # each takes up to 250 MB


class Processes:
    """Runs programs while it is entered. Threads may share it. most: how many run at once."""

    __slots__ = ("_lock", "_running", "_turns", "_why", "most")

    def __init__(self) -> None:
        self.most = min(_usable_cpus(), _MOST)
        self._turns = threading.Semaphore(self.most)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._why: BaseException | None = None  # all were ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end(error or SystemExit("build_zipapp.py: nothing is built any more"))

    def run(self, name: str, given: bytes, *, python: str = sys.executable) -> bytes:
        """Run one of the programs beside this file when it is its turn, and return what it wrote.

        Raises:
            SystemExit: it failed. What another one failed with, or ended the build, is raised by all that run then.
        """
        with self._turns:
            child = self._begun(python, (_FOLDER / f"{name}.py").read_text("utf-8"))
            try:
                written, told = child.communicate(given)
            finally:
                with self._lock:
                    self._running.discard(child)
        if child.returncode:
            last = (told.decode(errors="replace").strip() or "it said nothing").splitlines()[-1]
            raise self._end(SystemExit(f"build_zipapp.py: {python} could not do its part: {last}"))
        return written

    def at_once(self, jobs: Iterable[Callable[[], Any]]) -> list[Any]:
        """Do jobs, which may have programs run, in a thread each and return their results in order.

        Raises:
            What the first that fails raises, of these or of others; all programs are ended then, as by an interrupt.
        """
        todo = list(jobs)
        with ThreadPoolExecutor(max_workers=len(todo)) as pool:
            try:
                futures = [pool.submit(job) for job in todo]
                for one in wait(futures, return_when=FIRST_EXCEPTION).done:
                    one.result()  # raises what it has failed with
                return [one.result() for one in futures]
            except BaseException as error:
                raise self._end(error) from None

    def _begun(self, python: str, program: str) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._why is not None:
                raise self._why
            child = subprocess.Popen(  # noqa: S603 - the interpreter the builder named
                [python, "-S", "-s", "-B", "-c", program],  # not -I, which would ignore PYTHONHASHSEED
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=_FOLDER.parent,
                env={"PYTHONHASHSEED": "0"},
            )
            self._running.add(child)
        return child

    def _end(self, why: BaseException) -> BaseException:
        """End all that run, let no other one begin, and return why: what was told first."""
        with self._lock:
            if self._why is None:
                self._why = why
            for child in self._running:
                child.kill()
            return self._why


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
