"""The log: what is written of an error, and what is not even read for it."""

import io
import json
import linecache
import os
import select
import threading
from collections.abc import Iterator

import pytest

from gateway.clock import Clock
from gateway.log import Log


def test_of_an_error_the_type_and_the_places_are_written_and_no_source_is_read() -> None:
    linecache.clearcache()
    stream = io.StringIO()
    try:
        Log(stream, Clock(), "quiet")
    except ValueError as error:
        Log(stream, Clock()).error("failed", error=error)
    told = json.loads(stream.getvalue())
    assert (told["event"], told["error"]) == ("failed", "ValueError")
    here, there = told["where"]
    assert here.startswith("test_log.py:")  # and no folder of this host
    assert there.startswith("log.py:")
    assert "quiet" not in stream.getvalue()
    assert linecache.cache == {}


@pytest.fixture
def unread() -> Iterator[tuple[int, Log]]:
    """Return the reading end of a pipe that is full, and a log that writes to it."""
    reading, writing = os.pipe()
    while select.select((), (writing,), (), 0)[1]:
        os.write(writing, b"x" * 4095 + b"\n")
    with os.fdopen(writing, "w") as stream:
        yield reading, Log(stream, Clock())
    os.close(reading)


def test_a_reader_that_takes_no_more_loses_lines_is_told_how_many_and_keeps_nobody_waiting(
    unread: tuple[int, Log],
) -> None:
    reading, log = unread

    def write() -> None:
        for number in range(3):
            log.info("unread", number=number)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(10)
    try:
        assert not writer.is_alive()
    finally:
        while select.select((reading,), (), (), 0.2)[0]:
            os.read(reading, 65536)
    log.info("read")
    log.info("read again")
    first, second = map(json.loads, os.read(reading, 65536).splitlines())
    assert (first["event"], first["lost_lines"]) == ("read", 3)
    assert second["event"] == "read again"
    assert "lost_lines" not in second
