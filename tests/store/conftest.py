"""A clock that is set by hand, and a store in a temporary folder."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_clock import FakeClock

from gateway.clock import Ids
from gateway.log import Log
from gateway.store.store import Store, open_store


class Place:
    """Where a database lies, and the means to open it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.clock = FakeClock()
        self.ids = Ids(self.clock)
        self.stream = io.StringIO()
        self.log = Log(self.stream, self.clock)

    async def open(self) -> Store:
        return await open_store(self.path, clock=self.clock, ids=self.ids, log=self.log)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "data" / "gateway.db"))


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Store]:
    if request.param == "memory":
        place.path = ":memory:"
    one = await place.open()
    yield one
    await one.aclose()
