"""A process that reads its rules again keeps nothing of those before."""

import argparse
import gc
import io
import weakref

from gateway import compose
from gateway.cli.answering import Live, tidy_up
from gateway.clock import SystemClock
from gateway.log import Log
from gateway.settings import Settings


async def test_what_is_read_again_takes_the_place_of_what_was_read_before() -> None:
    log = Log(io.StringIO(), SystemClock())
    async with compose.open_composition(Settings(data_dir=":memory:"), log=log) as composition:
        live = Live(composition)
        await live.get_ready()
        tidy_up()  # as a start does, after which no collection looks at what is there
        before = weakref.ref(composition.gateway)
        assert before() is not None
        await live.reload(argparse.Namespace())
        assert live.gateway().shield.rules
        assert before() is None
    gc.unfreeze()
