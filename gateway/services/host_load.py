"""CPU and memory of this gateway's processes, as Linux tells. Elsewhere what cannot be told is None."""

import os
from dataclasses import dataclass

from gateway.clock import Clock


@dataclass(frozen=True, slots=True)
class Load:
    """cpu_percent: of one core since the last look, None at the first. memory_bytes: what only these processes hold."""

    cpu_percent: float | None
    memory_bytes: int | None


class HostLoad:
    """Looks at this process, and when it is one of several workers at its supervisor and all of those."""

    def __init__(self, *, clock: Clock, is_worker: bool) -> None:
        self._clock = clock
        self._is_worker = is_worker
        self._seconds: dict[int, float] = {}
        self._looked_seconds: float | None = None

    def look(self) -> Load:
        """Return the load. Reads a few small files of the kernel."""
        now_seconds = self._clock.monotonic_seconds()
        used = {pid: seconds for pid in self._pids() if (seconds := _cpu_seconds(pid)) is not None}
        percent = None
        if self._looked_seconds is not None and now_seconds > self._looked_seconds:
            # A worker that is new since then has used all of its time since then.
            grown = sum(max(0.0, seconds - self._seconds.get(pid, 0.0)) for pid, seconds in used.items())
            percent = round(100 * grown / (now_seconds - self._looked_seconds), 1)
        self._seconds, self._looked_seconds = used, now_seconds
        sizes = [size for pid in used if (size := _memory_bytes(pid)) is not None]
        return Load(percent, sum(sizes) if sizes else None)

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
    # The second field is the name in brackets, in which anything may stand.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int | None:
    """Return the proportional share, so that pages which workers have in common count once; else what is resident."""
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
