"""How long a scan keeps another thread of the process waiting, and what keeps it.

Only one thread runs Python at a time. One that waits asks for its turn after `sys.getswitchinterval()`, 5 ms, and gets
it between two steps of the interpreter: what the wait is longer than that is the longest single step. On a busy machine
the clock counts the turns of other processes too. So both are told: the wait by the clock, and the processor time that
the scanning thread had meanwhile; each beside that of a loop in Python, which is as short as it can be.
"""

import gc
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path

_SLEPT_SECONDS = 0.0005


def measure(scan: Callable[[], object]) -> None:
    """Print the longest waits during a scan and during a loop of the same length, and the longest call in C."""
    began = time.thread_time()
    scan()
    spent = time.thread_time() - began
    # As the server does once it is ready: what lives on is not looked through again by each collection of garbage.
    gc.collect()
    gc.freeze()
    for name, run in (("10 MB", scan), ("a loop in Python", lambda: _loop(spent))):
        waited, worked = _longest_wait(run)
        print(
            f"longest wait of another thread during {name}: {waited * 1e3:.1f} ms by the clock,"
            f" {worked * 1e3:.1f} ms of processor time"
        )
    called, took = longest_call(scan)
    print(f"longest call in C during 10 MB, when no other thread can run: {took * 1e3:.1f} ms, {called}")


def _loop(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(1_000):
            pass


def _longest_wait(run: Callable[[], object]) -> tuple[float, float]:
    """Return the longest that a thread waited which sleeps and wakes, and the most that the other worked meanwhile."""
    worker = threading.Thread(target=run)
    worker.start()
    waited = worked = 0.0
    clock = time.pthread_getcpuclockid(worker.ident or 0)
    while worker.is_alive():
        began, work = time.perf_counter(), time.clock_gettime(clock)
        time.sleep(_SLEPT_SECONDS)
        if not worker.is_alive():
            break
        waited = max(waited, time.perf_counter() - began - _SLEPT_SECONDS)
        worked = max(worked, time.clock_gettime(clock) - work)
    worker.join()
    return waited, worked


def longest_call(run: Callable[[], object]) -> tuple[str, float]:
    """Return which call of a function in C took the most processor time, and how much of it."""
    began: list[float] = []
    longest = ("none", 0.0)

    def note(frame: types.FrameType, event: str, called: object) -> None:
        nonlocal longest
        if event == "c_call":
            began.append(time.thread_time())
        elif event in ("c_return", "c_exception") and began:
            spent = time.thread_time() - began.pop()
            # What goes through a generator is no single step.
            if spent > longest[1] and called not in (any, all, sum):
                longest = (f"{getattr(called, '__qualname__', called)} in {Path(frame.f_code.co_filename).name}", spent)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return longest
