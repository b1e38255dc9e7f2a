"""What a group of workers does once before they are forked, so that all have in common what each would make for itself.

Theory of operation. A page that nobody writes to after the fork is there once. What a process loads, compiles and fills
in its first seconds was made in each worker, and filled the holes between things that all shared, whose pages were then
copied. So the process that forks does all of it first: it puts the gateway together over a database in memory, makes it
ready to answer, asks it for scans and for chats, which its own echo answers, and does every job once. Nothing of this
is seen: no log, no file, no socket; and nothing stays but what was loaded. A fault in it is met again where it counts,
by a worker, and is told there.
"""

import io
import threading
from collections.abc import Iterator
from dataclasses import replace

from anyio import run

from gateway import compose, parts
from gateway.cli.answering import Live, Site
from gateway.clock import SystemClock
from gateway.http.messages import Headers, Request
from gateway.jobs import run_each
from gateway.log import Log
from gateway.store import metric_board, rate_windows
from gateway.wire import json_text

_TEXT = "Please write a short letter, and sum up: what did we agree on?\n1. The price.\n2. The day."
ROUNDS = 12  # Python compiles again what runs more often than eight times
_THREAD_SECONDS = 5.0


def rehearse(site: Site, shared: parts.Shared, rounds: int = ROUNDS) -> None:
    """Do in memory what a worker does first. Returns when no thread is left, since the next thing is to fork."""
    # Windows and board of its own: those of the workers count what is asked of them.
    limiter, board = rate_windows.RateWindows(), metric_board.MetricBoard(1)
    apart = replace(shared, limiter=limiter, board=board, clean=None)
    try:
        run(_play, site, apart, rounds)
    except Exception:  # what is wrong is met again by a worker, and told there
        return
    finally:
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                thread.join(_THREAD_SECONDS)
        limiter.close()
        board.close()


async def _play(site: Site, shared: parts.Shared, rounds: int) -> None:
    config = replace(site.config, data_dir=":memory:", upstream_url=None)
    unheard = Log(io.StringIO(), SystemClock())
    async with compose.open_composition(config, log=unheard, shared=shared) as composition:
        gateway, live = composition.gateway, Live(composition)
        await live.get_ready()
        first = await gateway.first_start.make()
        if first is not None:
            headers = Headers({"x-service-key": first.api_key, "content-type": "application/json"})
            for path, body in _prompts(rounds):
                await live.handle(Request("POST", path, "", headers, body, "127.0.0.1", False, 0.0))
        await run_each(gateway)


def _prompts(rounds: int) -> Iterator[tuple[str, bytes]]:
    """Make paths and bodies of prompts, none of which is known from the one before."""
    for number in range(rounds):
        text = f"{_TEXT}\n3. Item {number}."
        for direction in ("inbound", "outbound"):
            yield "/api/v1/shield/scan", json_text({"text": text, "direction": direction}).encode()
        chat = {"model": "any", "messages": [{"role": "user", "content": text}]}
        yield "/api/v1/chat/completions", json_text(chat).encode()
