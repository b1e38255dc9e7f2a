"""Signals that stop or reload: held until somebody can obey them, heard by one who waits, ignored at the very end.

Between being heard and being ignored there is no moment at which a signal has its default action: who is told to end
again and again would sooner or later be killed in it. The event loop's own way of taking signals has such a moment.
"""

import os
import signal
from collections.abc import Iterable
from types import FrameType

STOPS = (signal.SIGTERM, signal.SIGINT)
ORDERS = (*STOPS, signal.SIGHUP)
_HELD = (*ORDERS, signal.SIGCHLD)


def hold_signals() -> None:
    """Have the signals that stop or reload wait, because an interrupt would come at a bad moment."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def hold_reload() -> None:
    """Have the signal that reloads wait, because nobody can obey it yet, and by itself it would end the program."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def heed_stops() -> None:
    """Let in the signals that stop, and those that have waited. One that reloads still waits."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def heed_signals() -> None:
    """Let signals in again, and those that have waited."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)


def ignore_signals() -> None:
    """Have no signal end what is left of this process: all is written and closed."""
    for number in ORDERS:
        signal.signal(number, signal.SIG_IGN)


class Ear:
    """Hears these signals from when it is made. One of a process, in its main thread.

    descriptor: readable when there is something to hear.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self.descriptor, self._writing = pipe()
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _be_woken)
            signal.siginterrupt(number, False)

    def hear(self) -> frozenset[int]:
        """Return which signals have come since the last time."""
        return frozenset(drain(self.descriptor))

    def close(self) -> None:
        """Hear no more. What is done upon a signal from now on is for the caller to say, and best before."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._writing)


def pipe() -> tuple[int, int]:
    """Return the reading and the writing end of a pipe; neither blocks."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    return reading, writing


def drain(descriptor: int) -> bytes:
    """Return what has come through a pipe, at most 4,096 bytes."""
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


def _be_woken(number: int, frame: FrameType | None) -> None:
    """Do nothing: that there is a handler makes Python write the signal's number into the pipe."""
