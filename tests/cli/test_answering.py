"""A process that reads its rules again keeps nothing of those before."""

import argparse
import gc
import io
import json
import weakref

import pytest

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


async def test_what_only_a_restart_can_change_is_named_when_settings_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"DATA_DIR": ":memory:", "PORT": "4711", "DRAIN_SECONDS": "7", "UPSTREAM_MODELS": "a"}.items():
        monkeypatch.setenv(f"GATEWAY_{name}", value)
    said = io.StringIO()
    async with compose.open_composition(Settings(data_dir=":memory:"), log=Log(said, SystemClock())) as composition:
        live = Live(composition)
        await live.get_ready()
        await live.reload(argparse.Namespace())
        assert composition.gateway.settings.port == Settings().port
    told = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [one["settings"] for one in told if one["event"] == "restart_needed"] == [["port", "drain_seconds"]]
    assert [one["event"] for one in told].count("reloaded") == 1
    gc.unfreeze()
