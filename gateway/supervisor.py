"""Keep worker processes: start, replace and restart them, and wait for their end. Knows nothing of their work.

The supervisor forks like `os.fork`: a method returns in the parent with what became of the children, and in each child
with a `Child`. A child therefore goes on in the caller's code, and its errors reach the caller's edge. Signals stay
blocked in it until `unblock_signals`. The supervisor has no thread, no event loop and no database, so each fork is a
clean copy.

Each slot has a process and, during a reload, one more that is starting. When the new process reports that it is ready,
the old one gets SIGTERM and finishes its requests. So a reload is read once, here, and some process always answers.
Every wait is one `select` over two pipes: signal handlers write to one, and children to the other, once when they are
ready and then as a heartbeat. Nobody writes to a third pipe, whose writing end only the supervisor has: a child whose
supervisor was killed reads its end and stops.
"""

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.log import Log
from gateway.signals import ORDERS, STOPS, SignalReceiver, block_signals, drain, pipe, unblock_signals

_FAILED = 1
_PID_BYTES = 8
_LEAST_WAIT_SECONDS = 0.1
_MOST_WAIT_SECONDS = 10.0
_STEADY_SECONDS = 10.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Child:
    """A forked process's link to its supervisor.

    number: of its slot, from 0. is_replacement: it replaces a process that still serves, after a reload.
    ready: the descriptor of its reports. life: a descriptor that becomes readable once the supervisor is gone.
    """

    number: int
    is_replacement: bool
    ready: int
    life: int

    def report_ready(self) -> None:
        """Tell the supervisor that this process is ready; later, that it still runs."""
        with suppress(OSError):  # the supervisor is gone, as `life` says too
            os.write(self.ready, os.getpid().to_bytes(_PID_BYTES, "big"))


@dataclass(slots=True)
class _Process:
    """A child that has not been waited for.

    number: of its slot. generation: how many reloads came before it. is_ready: it has reported so. is_ending: it has
    its SIGTERM, and may no longer receive another. kill_seconds: when the supervisor kills it, unless it reports
    or ends before.
    """

    pid: int
    number: int
    generation: int
    started_seconds: float
    is_ready: bool = False
    is_ending: bool = False
    kill_seconds: float = _NEVER

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)  # ours until we have waited for it, so never another's

    def ended(self) -> int | None:
        """Return the exit code, or the number of the signal below 0; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


@dataclass(slots=True)
class _Slot:
    """The place of one worker: when its next process may be started, and how long the last one had to wait."""

    number: int
    due_seconds: float = 0.0
    wait_seconds: float = 0.0


class Supervisor:
    """The parent of all workers. Make it in the main thread, before any other thread exists.

    stop_seconds: how long children may take to end before they are killed. hung_seconds: how long a worker may go
    without a heartbeat before it is killed and started again; a worker without heartbeats needs the default.
    """

    def __init__(self, *, clock: Clock, log: Log, stop_seconds: float, hung_seconds: float = _NEVER) -> None:
        self._clock = clock
        self._log = log
        self._stop_seconds = stop_seconds
        self._hung_seconds = hung_seconds
        self._checked_seconds = clock.monotonic_seconds()
        self._slots: list[_Slot] = []
        self._processes: list[_Process] = []
        self._generation = 0
        self._is_up = False
        self._is_to_reload = False
        self._result = 0
        self._ready, self._life = pipe(), pipe()
        self._receiver = SignalReceiver((*ORDERS, signal.SIGCHLD))
        self.is_stopping = False

    def once(self, *, is_last: bool = False) -> Child | int:
        """Fork one child and wait for its end. In the child, return at once; here, its exit code.

        SIGTERM and SIGINT are passed on and end the child. Then `is_stopping` is true, and the code means nothing.
        is_last: ignore these signals; the child may take `stop_seconds`.
        """
        self._slots = []
        process = self._fork(0, is_replacement=False)
        if isinstance(process, Child):
            return process
        if is_last:
            process.is_ending = True
            process.kill_seconds = self._clock.monotonic_seconds() + self._stop_seconds
        self._processes = [process]
        while (code := process.ended()) is None:
            self._wait()
            if self._receive_signals() and not is_last:
                self._stop(lambda: None)
            self._kill_late()
        self._processes = []
        return code

    def keep(
        self, count: int, *, ready: Callable[[], None], reload: Callable[[], bool], stopping: Callable[[], None]
    ) -> Child | int:
        """Keep `count` workers until SIGTERM or SIGINT. In a worker, return at once; here, the exit code for all.

        ready: called once, when every worker is ready. reload: called on SIGHUP, once all are ready; returns whether to
        replace all workers. stopping: called before they get SIGTERM. The code is 0 when all ended with 0. When a
        worker ends before all were ready for the first time, none is restarted, and its code is returned.
        """
        self._slots = [_Slot(number) for number in range(count)]
        while not self.is_stopping or self._processes:
            child = self._start_due()
            if child is not None:
                return child
            self._wait()
            self._promote()
            if not self._is_up and len({process.number for process in self._processes if process.is_ready}) == count:
                self._is_up = True
                ready()
            if self._receive_signals():
                self._stop(stopping)
            elif self._is_to_reload and self._is_up and not self.is_stopping:
                self._is_to_reload = False
                self._generation += reload()
            self._reap(stopping)
            self._kill_late()
        return self._result

    def _wants(self, slot: _Slot) -> bool:
        """Return whether no process of a slot is starting, or is up to date."""
        return not self.is_stopping and all(
            process.is_ready and process.generation != self._generation for process in self._staying(slot.number)
        )

    def _staying(self, number: int) -> list[_Process]:
        """Return the processes of a slot that were not told to end: the one that serves and the one that starts."""
        return [process for process in self._processes if process.number == number and not process.is_ending]

    def _start_due(self) -> Child | None:
        """Fork what is due. Return a `Child` in the child only."""
        for slot in self._slots:
            if self._wants(slot) and slot.due_seconds <= self._clock.monotonic_seconds():
                try:
                    process = self._fork(slot.number, is_replacement=bool(self._staying(slot.number)))
                except OSError as error:  # too many processes, or too little memory
                    self._log.error("worker_not_started", error=error, worker=slot.number)
                    slot.due_seconds = self._clock.monotonic_seconds() + _MOST_WAIT_SECONDS
                    continue
                if isinstance(process, Child):
                    return process
                if self._is_up:  # the first workers may wait for a slow disk, and replace nobody
                    process.kill_seconds = process.started_seconds + self._hung_seconds
                self._processes.append(process)
        return None

    def _fork(self, number: int, *, is_replacement: bool) -> Child | _Process:
        started_seconds = self._clock.monotonic_seconds()
        # A signal must not reach a child while it still has the supervisor's handlers.
        block_signals()
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                unblock_signals()
        if pid:
            return _Process(pid, number, self._generation, started_seconds)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._receiver.close()
        os.close(self._ready[0])
        os.close(self._life[1])
        return Child(number, is_replacement, ready=self._ready[1], life=self._life[0])

    def _wait(self) -> None:
        """Wait for a signal or a report of a child, or until something is due."""
        times = [process.kill_seconds for process in self._processes]
        times += [slot.due_seconds for slot in self._slots if self._wants(slot)]
        due_seconds = min(times, default=_NEVER)
        wait_seconds = None if due_seconds == _NEVER else max(0.0, due_seconds - self._clock.monotonic_seconds())
        select.select([self._receiver.descriptor, self._ready[0]], [], [], wait_seconds)

    def _receive_signals(self) -> bool:
        """Return whether a signal to stop has arrived, and remember one to reload."""
        received = self._receiver.receive()
        self._is_to_reload |= signal.SIGHUP in received
        return not received.isdisjoint(STOPS)

    def _promote(self) -> None:
        """Note which processes have reported, and stop those that a process which is ready now replaces."""
        reports = drain(self._ready[0])
        pids = {int.from_bytes(reports[at : at + _PID_BYTES], "big") for at in range(0, len(reports), _PID_BYTES)}
        for process in self._processes:
            if process.pid not in pids or process.is_ending:
                continue
            if not process.is_ready:
                process.is_ready = True
                for before in self._staying(process.number):
                    if before is not process:
                        self._end(before)
            process.kill_seconds = self._clock.monotonic_seconds() + self._hung_seconds

    def _end(self, process: _Process) -> None:
        process.is_ending = True
        process.kill_seconds = self._clock.monotonic_seconds() + self._stop_seconds
        process.send(signal.SIGTERM)

    def _stop(self, stopping: Callable[[], None]) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            stopping()
            for process in self._processes:
                if not process.is_ending:
                    self._end(process)

    def _kill_late(self) -> None:
        """Kill the workers without a heartbeat and those that take too long to end.

        A silent worker holds connections that nobody answers, or never gets ready.
        """
        now_seconds = self._clock.monotonic_seconds()
        # When the whole host stood still, they had no chance to report.
        stood_still = now_seconds - self._checked_seconds > 1.5 * self._hung_seconds
        self._checked_seconds = now_seconds
        for process in self._processes:
            if stood_still and not process.is_ending and process.kill_seconds < _NEVER:
                process.kill_seconds = now_seconds + self._hung_seconds
            elif process.kill_seconds <= now_seconds:
                process.kill_seconds = _NEVER
                process.send(signal.SIGKILL)
                reason = "it did not end in time" if process.is_ending else "it was silent for too long"
                self._log.error("worker_killed", pid=process.pid, reason=reason)

    def _reap(self, stopping: Callable[[], None]) -> None:
        for process in list(self._processes):
            code = process.ended()
            if code is None:
                continue
            self._processes.remove(process)
            if self._is_up and not self.is_stopping:
                if not process.is_ending:
                    self._plan_restart(self._slots[process.number], process, code)
                continue
            self._result = self._result or (code if code >= 0 else _FAILED)
            if not self.is_stopping:
                self._result = self._result or _FAILED
                self._stop(stopping)

    def _plan_restart(self, slot: _Slot, ended: _Process, code: int) -> None:
        """Restart at once a worker that had run for a while; wait longer each time for one that keeps failing."""
        now_seconds = self._clock.monotonic_seconds()
        if now_seconds - ended.started_seconds >= _STEADY_SECONDS:
            slot.wait_seconds = 0.0
        else:
            slot.wait_seconds = min(max(_LEAST_WAIT_SECONDS, 2 * slot.wait_seconds), _MOST_WAIT_SECONDS)
        slot.due_seconds = now_seconds + slot.wait_seconds
        self._log.error(
            "worker_ended", worker=slot.number, exit_code=code, restart_in_seconds=round(slot.wait_seconds, 1)
        )
