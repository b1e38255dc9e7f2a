"""JSON lines to one text stream, secrets masked. Knows no file, no level of other libraries and no prompt."""

import json
import re
import select
import traceback
from typing import TextIO

from gateway.clock import Clock
from gateway.strict_json import write_time

_PATIENCE_SECONDS = 0.1
LEVELS = ("debug", "info", "warning", "error")
_KEY = re.compile(r"svc_[0-9a-f]{36}(?=[0-9a-f]{4})|(?<=Bearer )[^\s\"]{8,}")


class Log:
    """Writes one JSON object a line: `at`, `level`, `event` and the fields given.

    A field is data, never a format. Whatever looks like an API key is masked as a last line of defence; callers keep
    prompts, replies, keys and passwords out in the first place. A reader that takes no more lines, such as a collector
    that hangs, loses them and keeps nobody waiting; the first line after that says in `lost_lines` how many.
    """

    def __init__(self, stream: TextIO, clock: Clock, level: str = "info") -> None:
        self._stream = stream
        self._clock = clock
        self._least = LEVELS.index(level)
        self._lost_lines = 0

    def info(self, event: str, **fields: object) -> None:
        """Write what an operator may want to read."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Write what an operator should look at."""
        self._write("warning", event, fields)

    def error(self, event: str, *, error: BaseException | None = None, **fields: object) -> None:
        """Write what an operator must look at. Of `error` the type and the places are written, never its text.

        The text of an unknown error may quote what it choked on, which may be a prompt.
        """
        if error is not None:
            frames = list(traceback.walk_tb(error.__traceback__))[-6:]
            places = [(frame.f_code.co_filename.rpartition("gateway/"), line) for frame, line in frames]
            where = [f"{name if is_ours else name.rpartition('/')[2]}:{line}" for (_, is_ours, name), line in places]
            fields = fields | {"error": type(error).__name__, "where": where}
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        if LEVELS.index(level) < self._least:
            return
        if not self._has_room():
            self._lost_lines += 1
            return
        if self._lost_lines:
            fields, self._lost_lines = fields | {"lost_lines": self._lost_lines}, 0
        record = {"at": write_time(self._clock.now_at()), "level": level, "event": event}
        line = json.dumps(record | fields, default=str)
        try:
            self._stream.write(_KEY.sub("****", line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # a closed or full log must not stop the traffic; the audit log has what matters

    def _has_room(self) -> bool:
        """Tell whether the stream takes 4 KB without making us wait, which a pipe that nobody reads would for ever."""
        try:
            return bool(select.select((), (self._stream,), (), 0 if self._lost_lines else _PATIENCE_SECONDS)[1])
        except (OSError, ValueError):  # it is in memory, or closed
            return True
