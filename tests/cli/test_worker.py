"""A process that reads its rules again keeps nothing of those before."""

import argparse
import gc
import io
import json
import os
import signal
import weakref
from contextlib import AsyncExitStack
from typing import cast

import anyio
import pytest

from gateway import compose
from gateway.cli.worker import Live, obey_signals, tidy_up
from gateway.clock import Clock
from gateway.log import Log
from gateway.settings import Settings
from gateway.signals import unblock_signals


async def test_what_is_read_again_takes_the_place_of_what_was_read_before() -> None:
    log = Log(io.StringIO(), Clock())
    async with compose.open_gateway(Settings(data_dir=":memory:"), log=log) as gateway:
        live = Live(gateway)
        tidy_up()  # as a start does, after which no collection looks at what is there
        before = weakref.ref(gateway)
        del gateway
        assert before() is not None
        await live.reload(argparse.Namespace())
        assert live.gateway.shield.rules
        assert before() is None
    gc.unfreeze()


async def test_who_asks_often_while_it_reloads_gets_one_more_and_does_not_keep_it_from_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    reloads, may_end, is_told = [anyio.Event() for _ in range(3)], anyio.Event(), anyio.Event()

    class Reloads:
        async def reload(self, options: argparse.Namespace) -> None:
            next(one for one in reloads if not one.is_set()).set()
            await may_end.wait()

    unblock_signals()  # a `serve` that another test ran in this process has blocked SIGHUP
    monkeypatch.setattr("gateway.cli.worker.ignore_signals", lambda: [signal.signal(*one) for one in known.items()])
    async with AsyncExitStack() as when_closed:
        async with anyio.create_task_group() as group:
            live = cast(Live, Reloads())
            await group.start(obey_signals, when_closed, is_told.set, live, argparse.Namespace())
            os.kill(os.getpid(), signal.SIGHUP)
            with anyio.fail_after(10):
                await reloads[0].wait()
                for _ in range(5):
                    os.kill(os.getpid(), signal.SIGHUP)
                    await anyio.sleep(0.01)
                os.kill(os.getpid(), signal.SIGTERM)
                await is_told.wait()
                may_end.set()
                await reloads[1].wait()
                await anyio.wait_all_tasks_blocked()
            assert not reloads[2].is_set()
            group.cancel_scope.cancel()


async def test_what_only_a_restart_can_change_is_named_when_settings_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"DATA_DIR": ":memory:", "PORT": "4711", "DRAIN_SECONDS": "7", "UPSTREAM_MODELS": "a"}.items():
        monkeypatch.setenv(f"GATEWAY_{name}", value)
    said = io.StringIO()
    async with compose.open_gateway(Settings(data_dir=":memory:"), log=Log(said, Clock())) as gateway:
        live = Live(gateway)
        await live.reload(argparse.Namespace())
        assert live.gateway.settings.port == Settings().port
    told = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [one["settings"] for one in told if one["event"] == "restart_needed"] == [["port", "drain_seconds"]]
    assert [one["event"] for one in told].count("reloaded") == 1
    gc.unfreeze()
