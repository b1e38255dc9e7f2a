"""Keep worker processes: start, replace, restart what dies, and wait for the end. Knows not what a worker does.

Theory of operation. A supervisor forks like `os.fork`: its method returns in the parent with what became of the
children, and in each child with a `Child`, where signals wait until `heed_signals`. So a child goes on in the caller's
code, and its errors reach the caller's edge. The supervisor itself has no thread, no loop and no database, hence each
fork is a clean copy.

Each place has a process that works and, now and then, one that is coming: it starts, says that it is ready, and takes
the place; the one before is told to stop and finishes what it has. So a reload is read once, here, and never leaves
nobody to answer. Every wait is one `select` over two pipes: signal handlers write to one, a child that is ready to the
other, and goes on doing so as a sign of life. A third pipe is never written to. Each child holds its reading end, and
the supervisor alone its writing end: a child whose supervisor was killed reads the end and stops, instead of answering
for ever unwatched.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.log import Log
from gateway.signals import ORDERS, STOPS, SignalReceiver, drain, heed_signals, hold_signals, pipe

_FAILED = 1
_PID_BYTES = 8
_LEAST_WAIT_SECONDS = 0.1
_MOST_WAIT_SECONDS = 10.0
_STEADY_SECONDS = 10.0
_NEVER = float("inf")


class Child:
    """What a forked process knows of its supervisor.

    number: its place among the workers, from 0. is_replacement: it comes after a reload, for one that works meanwhile.
    life: a descriptor that becomes readable once the supervisor is gone.
    """

    def __init__(self, number: int, is_replacement: bool, *, ready: int, life: int) -> None:
        self.number = number
        self.is_replacement = is_replacement
        self.life = life
        self._ready = ready

    def report_ready(self) -> None:
        """Tell the supervisor that this process does its work from now on; later, that it still does."""
        try:
            os.write(self._ready, os.getpid().to_bytes(_PID_BYTES, "big"))
        except OSError:
            return  # nobody is left to be told; `life` says so too


@dataclass(slots=True)
class _Process:
    """A child that has not been waited for.

    age: the reloads before it. kill_seconds: when it must have ended. heard_seconds: when it last told that it works,
    or was started.
    """

    pid: int
    age: int
    started_seconds: float
    kill_seconds: float = _NEVER
    heard_seconds: float = _NEVER

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)  # ours until we have waited for it, so never another's

    def ended(self) -> int | None:
        """Return the exit code, or the number of the signal below 0; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


@dataclass(slots=True)
class _Place:
    """One worker: the process that works, the one that is coming, and when the next may be started."""

    number: int
    current: _Process | None = None
    coming: _Process | None = None
    due_seconds: float = 0.0
    wait_seconds: float = 0.0


class Supervisor:
    """The parent of all workers. Make it in the main thread, before any other thread exists.

    stop_seconds: how long children may take to end before they are killed. hung_seconds: how long a worker may be
    silent before it is killed and started again; a worker that calls `report_ready` but once needs the default.
    """

    def __init__(self, *, clock: Clock, log: Log, stop_seconds: float, hung_seconds: float = _NEVER) -> None:
        self._clock = clock
        self._log = log
        self._stop_seconds = stop_seconds
        self._hung_seconds = hung_seconds
        self._looked_seconds = clock.monotonic_seconds()
        self._places: list[_Place] = []
        self._leaving: list[_Process] = []
        self._age = 0
        self._has_begun = False
        self._is_to_reload = False
        self._result = 0
        self._ready, self._life = pipe(), pipe()
        self._receiver = SignalReceiver((*ORDERS, signal.SIGCHLD))
        self.is_stopping = False

    def once(self, *, is_last: bool = False) -> Child | int:
        """Fork one child and wait for its end. In the child, return at once; here, its exit code.

        SIGTERM and SIGINT are passed on and end the child like any program. Then `is_stopping` is true, and the code
        says nothing. is_last: they have come before, and the child may take `stop_seconds` whatever else comes.
        """
        self._places = []
        process = self._fork(0, is_replacement=False)
        if isinstance(process, Child):
            return process
        if is_last:
            process.kill_seconds = self._clock.monotonic_seconds() + self._stop_seconds
        while (code := process.ended()) is None:
            self._leaving = [process]
            self._wait()
            if self._is_told_to_stop() and not is_last:
                self._stop(lambda: None)
            self._kill_late()
        self._leaving = []
        return code

    def keep(
        self, count: int, *, ready: Callable[[], None], reload: Callable[[], bool], stopping: Callable[[], None]
    ) -> Child | int:
        """Keep `count` workers until SIGTERM or SIGINT. In a worker, return at once; here, the exit code for all.

        ready: called once, when every worker is ready. reload: called on SIGHUP, of one that came earlier once all are
        ready; says whether all workers are to be replaced. stopping: called before they are told to stop. The code is 0
        when all ended with 0. When a worker ends before all were ready for the first time, none is restarted, and its
        code is returned.
        """
        self._places = [_Place(number) for number in range(count)]
        while not self.is_stopping or any(self._processes()):
            child = self._start_due()
            if child is not None:
                return child
            self._wait()
            self._take_places()
            if not self._has_begun and all(place.current for place in self._places):
                self._has_begun = True
                ready()
            if self._is_told_to_stop():
                self._stop(stopping)
            elif self._is_to_reload and self._has_begun and not self.is_stopping:
                self._is_to_reload = False
                self._age += reload()
            self._reap(stopping)
            self._kill_hung()
            self._kill_late()
        return self._result

    def _processes(self) -> Iterator[_Process]:
        yield from self._placed()
        yield from self._leaving

    def _placed(self) -> Iterator[_Process]:
        for place in self._places:
            yield from (one for one in (place.current, place.coming) if one is not None)

    def _wants(self, place: _Place) -> bool:
        """Tell whether a process should be coming, and is not."""
        has_current = place.current is not None and place.current.age == self._age
        return not self.is_stopping and place.coming is None and not has_current

    def _start_due(self) -> Child | None:
        """Fork what is due. Return a `Child` in the child only."""
        for place in self._places:
            if self._wants(place) and place.due_seconds <= self._clock.monotonic_seconds():
                try:
                    process = self._fork(place.number, is_replacement=place.current is not None)
                except OSError as error:  # too many processes, or too little memory
                    self._log.error("worker_not_started", error=error, worker=place.number)
                    place.due_seconds = self._clock.monotonic_seconds() + _MOST_WAIT_SECONDS
                    continue
                if isinstance(process, Child):
                    return process
                if self._has_begun:  # the first ones may have to wait for a disk, and nobody waits for them in vain
                    process.heard_seconds = process.started_seconds
                place.coming = process
        return None

    def _fork(self, number: int, *, is_replacement: bool) -> Child | _Process:
        started_seconds = self._clock.monotonic_seconds()
        # A signal must not reach a child while it still has the supervisor's handlers.
        hold_signals()
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                heed_signals()
        if pid:
            return _Process(pid, self._age, started_seconds)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._receiver.close()
        os.close(self._ready[0])
        os.close(self._life[1])
        return Child(number, is_replacement, ready=self._ready[1], life=self._life[0])

    def _wait(self) -> None:
        """Wait for a signal or a word from a child, or until something is due."""
        times = [process.kill_seconds for process in self._processes()]
        times += [place.due_seconds for place in self._places if self._wants(place)]
        if not self.is_stopping:
            times += [process.heard_seconds + self._hung_seconds for process in self._placed()]
        due_seconds = min(times, default=_NEVER)
        wait_seconds = None if due_seconds == _NEVER else max(0.0, due_seconds - self._clock.monotonic_seconds())
        select.select([self._receiver.descriptor, self._ready[0]], [], [], wait_seconds)

    def _is_told_to_stop(self) -> bool:
        """Tell whether a signal to stop has come, and take note of one to reload."""
        told = self._receiver.receive()
        self._is_to_reload |= signal.SIGHUP in told
        return not told.isdisjoint(STOPS)

    def _take_places(self) -> None:
        """Let the processes that are ready work, and tell those before them to finish."""
        words = drain(self._ready[0])
        pids = {int.from_bytes(words[at : at + _PID_BYTES], "big") for at in range(0, len(words), _PID_BYTES)}
        for process in self._processes():
            if process.pid in pids:
                process.heard_seconds = self._clock.monotonic_seconds()
        for place in self._places:
            if place.coming is None or place.coming.pid not in pids:
                continue
            before, place.current, place.coming = place.current, place.coming, None
            if before is not None:
                self._leaving.append(before)
                if not self.is_stopping:
                    self._end(before)

    def _end(self, process: _Process) -> None:
        process.kill_seconds = self._clock.monotonic_seconds() + self._stop_seconds
        process.send(signal.SIGTERM)

    def _stop(self, stopping: Callable[[], None]) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            stopping()
            for process in self._processes():
                if process.kill_seconds == _NEVER:  # else it was told before, and may no longer receive signals
                    self._end(process)

    def _kill_hung(self) -> None:
        """Kill the workers that are silent: they hold connections that nobody answers, or never get ready.

        `_reap` sees to the next.
        """
        now_seconds = self._clock.monotonic_seconds()
        # When the whole host stood still, they had no chance to tell.
        stood_still = now_seconds - self._looked_seconds > 1.5 * self._hung_seconds
        self._looked_seconds = now_seconds
        for process in self._placed():
            if stood_still:
                process.heard_seconds = now_seconds
            elif not self.is_stopping and process.heard_seconds + self._hung_seconds <= now_seconds:
                process.heard_seconds = _NEVER
                process.send(signal.SIGKILL)
                self._log.error("worker_killed", pid=process.pid, reason="it was silent for too long")

    def _kill_late(self) -> None:
        now_seconds = self._clock.monotonic_seconds()
        for process in self._processes():
            if process.kill_seconds <= now_seconds:
                process.kill_seconds = _NEVER
                process.send(signal.SIGKILL)
                self._log.error("worker_killed", pid=process.pid, reason="it did not end in time")

    def _reap(self, stopping: Callable[[], None]) -> None:
        """Wait for what has ended, and plan what comes after it."""
        for process in [one for one in self._leaving if self._has_ended(one) is not None]:
            self._leaving.remove(process)
        for place in self._places:
            if place.coming is not None and (code := self._has_ended(place.coming)) is not None:
                ended, place.coming = place.coming, None
                self._see_to_next(place, ended, code, stopping)
            if place.current is not None and (code := self._has_ended(place.current)) is not None:
                ended, place.current = place.current, None
                self._see_to_next(place, ended, code, stopping)

    def _see_to_next(self, place: _Place, ended: _Process, code: int, stopping: Callable[[], None]) -> None:
        if self.is_stopping:
            return
        if self._has_begun:
            self._plan_restart(place, ended, code)
        else:
            self._result = self._result or _FAILED
            self._stop(stopping)

    def _has_ended(self, process: _Process) -> int | None:
        """Return the exit code of a process that has ended, and remember one that is not 0 as the result of a stop."""
        code = process.ended()
        if code and (self.is_stopping or not self._has_begun):
            self._result = self._result or (code if code > 0 else _FAILED)
        return code

    def _plan_restart(self, place: _Place, ended: _Process, code: int) -> None:
        """Restart at once what had run for a while, and what dies again and again ever later."""
        now_seconds = self._clock.monotonic_seconds()
        if now_seconds - ended.started_seconds >= _STEADY_SECONDS:
            place.wait_seconds = 0.0
        else:
            place.wait_seconds = min(max(_LEAST_WAIT_SECONDS, 2 * place.wait_seconds), _MOST_WAIT_SECONDS)
        place.due_seconds = now_seconds + place.wait_seconds
        self._log.error(
            "worker_ended", worker=place.number, exit_code=code, restart_in_seconds=round(place.wait_seconds, 1)
        )
