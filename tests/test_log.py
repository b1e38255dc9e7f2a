"""The log: what is written of an error, and what is not even read for it."""

import io
import json
import linecache

from gateway.clock import SystemClock
from gateway.log import Log


def test_of_an_error_the_type_and_the_places_are_written_and_no_source_is_read() -> None:
    linecache.clearcache()
    stream = io.StringIO()
    try:
        Log(stream, SystemClock(), "quiet")
    except ValueError as error:
        Log(stream, SystemClock()).error("failed", error=error)
    told = json.loads(stream.getvalue())
    assert (told["event"], told["error"]) == ("failed", "ValueError")
    here, there = told["where"]
    assert here.rpartition("/")[2].startswith("test_log.py:")
    assert there.startswith("log.py:")
    assert "quiet" not in stream.getvalue()
    assert linecache.cache == {}
