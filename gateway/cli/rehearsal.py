"""What a group of workers does once before they are forked, so that all have in common what each would make for itself.

Theory of operation. A page that nobody writes to after the fork is there once. What a process loads, compiles and fills
in its first seconds was made in each worker, and filled the holes between things that all shared, whose pages were then
copied. So the process that forks does all of it first: it puts the gateway together over a database in memory, makes it
ready to answer, scans, and does every job once. Nothing of this is seen: no log, no file, no socket; and nothing stays
but what was loaded. A fault in it is met again where it counts, by a worker, and is told there.
"""

import io
import threading
from dataclasses import replace

from anyio import run

from gateway import compose, parts
from gateway.cli.answering import Live, Site
from gateway.clock import SystemClock
from gateway.errors import GatewayError
from gateway.jobs import run_each
from gateway.log import Log
from gateway.shield import Direction
from gateway.store import metric_board, rate_windows

_TEXT = "Please write a short letter, and sum up: what did we agree on?\n1. The price.\n2. The day."
_SCANS = 12  # Python compiles again what runs more often than eight times
_THREAD_SECONDS = 5.0


def rehearse(site: Site, shared: parts.Shared) -> None:
    """Do in memory what a worker does first. Returns when no thread is left, since the next thing is to fork."""
    # Windows and board of its own: those of the workers count what is asked of them.
    apart = replace(shared, limiter=rate_windows.RateWindows(), board=metric_board.MetricBoard(1))
    try:
        run(_play, site, apart)
    except GatewayError:
        return
    finally:
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                thread.join(_THREAD_SECONDS)


async def _play(site: Site, shared: parts.Shared) -> None:
    config = replace(site.config, data_dir=":memory:")
    unheard = Log(io.StringIO(), SystemClock())
    async with compose.open_composition(config, log=unheard, shared=shared) as composition:
        gateway = composition.gateway
        await Live(composition).get_ready()
        for _ in range(_SCANS):
            for direction in Direction:
                gateway.shield.scan(_TEXT, direction)
        await run_each(gateway)
