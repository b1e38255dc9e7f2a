"""The last word on the end of this process: a disk that does not answer holds threads, and nobody can end a thread."""

import os
import threading
import time

from gateway.cli.command import FAILED
from gateway.log import Log

CLOSING_SECONDS = 15.0


class Deadline:
    """Ends the process when that takes longer than it may, as a kill would: what was answered is as safe as then."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._timer: threading.Timer | None = None
        self._at_seconds = float("inf")

    def set(self, seconds: float) -> None:
        """Have the process end within so many seconds. An earlier deadline that was set stays."""
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
