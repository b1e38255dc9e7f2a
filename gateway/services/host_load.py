"""CPU and memory of this gateway's processes, from /proc on Linux. On other systems unknown values are None."""

import os

from gateway.clock import Clock


class HostLoad:
    """Measures this process or, in a group of workers, the supervisor and all of its workers."""

    def __init__(self, *, clock: Clock, is_worker: bool) -> None:
        self._clock = clock
        self._is_worker = is_worker
        self._seconds: dict[int, float] = {}
        self._measured_seconds: float | None = None

    def measure(self) -> tuple[float | None, int | None]:
        """Return the CPU percent of one core since the last call, None at the first, and the bytes of memory."""
        now_seconds = self._clock.monotonic_seconds()
        used = {pid: seconds for pid in self._pids() if (seconds := _cpu_seconds(pid)) is not None}
        percent = None
        if self._measured_seconds is not None and now_seconds > self._measured_seconds:
            # A new worker has used all of its CPU time since the last call.
            grown = sum(max(0.0, seconds - self._seconds.get(pid, 0.0)) for pid, seconds in used.items())
            percent = round(100 * grown / (now_seconds - self._measured_seconds), 1)
        self._seconds, self._measured_seconds = used, now_seconds
        sizes = [size for pid in used if (size := _memory_bytes(pid)) is not None]
        return percent, sum(sizes) if sizes else None

    def _pids(self) -> tuple[int, ...]:
        if not self._is_worker:
            return (os.getpid(),)
        parent = os.getppid()
        text = _read(f"/proc/{parent}/task/{parent}/children")
        return (parent, *(int(pid) for pid in text.split())) if text else (os.getpid(),)


def _cpu_seconds(pid: int) -> float | None:
    text = _read(f"/proc/{pid}/stat")
    if text is None:
        times = os.times()
        return times.user + times.system if pid == os.getpid() else None
    # The second field is the process name in brackets, which may hold any character.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int | None:
    """Return the proportional set size, which counts pages shared by workers once, or else the resident size."""
    for line in (_read(f"/proc/{pid}/smaps_rollup") or "").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    text = _read(f"/proc/{pid}/statm")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") if text else None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
