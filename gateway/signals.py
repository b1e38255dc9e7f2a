"""Signals that stop or reload: blocked until the gateway can handle them, then received, and ignored at the very end.

A signal never has its default action in between. The event loop's own handlers restore that action for a moment when
they are removed, and a second SIGTERM in that moment would kill the process before it has written everything.
"""

import os
import signal
from collections.abc import Iterable
from types import FrameType

STOPS = (signal.SIGTERM, signal.SIGINT)
ORDERS = (*STOPS, signal.SIGHUP)
_HELD = (*ORDERS, signal.SIGCHLD)


def block_signals(numbers: Iterable[int] = _HELD) -> None:
    """Block signals; by default all that stop or reload. They stay pending until `unblock_signals`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def unblock_signals(numbers: Iterable[int] = _HELD) -> None:
    """Unblock signals; pending ones arrive now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def ignore_signals() -> None:
    """Ignore all signals from now on: everything is written and closed."""
    for number in ORDERS:
        signal.signal(number, signal.SIG_IGN)


class SignalReceiver:
    """Receives signals from its creation on. Make one a process, in the main thread.

    descriptor: readable when a signal has arrived.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self.descriptor, self._writing = pipe()
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _wake_up)
            signal.siginterrupt(number, False)

    def receive(self) -> frozenset[int]:
        """Return the signals that have arrived since the last call."""
        return frozenset(drain(self.descriptor))

    def close(self) -> None:
        """Receive no more. The caller says before this what later signals do."""
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
    """Return the bytes that wait in a pipe, at most 4,096."""
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


def _wake_up(number: int, frame: FrameType | None) -> None:
    """Do nothing: because there is a handler, Python writes the number of the signal into the pipe."""
