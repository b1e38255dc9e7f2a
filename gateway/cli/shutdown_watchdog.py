"""End the process when its orderly end takes too long: a disk that hangs blocks threads, and no thread can be ended."""

import os
import threading
import time

from gateway.cli.command import FAILED
from gateway.log import Log

CLOSING_SECONDS = 15.0


class ShutdownWatchdog:
    """Ends the process at a deadline as a kill would. What was answered is then as safe as after a kill."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._timer: threading.Timer | None = None
        self._at_seconds = float("inf")

    def set(self, seconds: float) -> None:
        """End the process after this many seconds. An earlier deadline that was set before stays."""
        at_seconds = time.monotonic() + seconds
        if at_seconds >= self._at_seconds:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at_seconds = at_seconds
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        self._log.error(
            "end_forced",
            reason="the disk did not answer in time: what was answered is as safe as after a kill, no more",
        )
        os._exit(FAILED)  # an orderly end would wait for the threads
