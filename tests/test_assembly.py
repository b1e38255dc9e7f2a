"""Parts that are made when they are first asked for, and the two things that are put together of them."""

import importlib
import io
import threading
from typing import Any

import pytest

from gateway.app import Gateway, Lasting
from gateway.assembly import Assembly
from gateway.clock import SystemClock
from gateway.compose import open_composition
from gateway.log import Log
from gateway.settings import Settings
from gateway.store.store import Store


class Pair(Assembly):
    """Two parts, one of the other."""

    first: list[int]
    second: tuple[list[int]]


def test_a_part_is_made_of_others_when_it_is_first_asked_for_and_once() -> None:
    pair = Pair({"first": lambda of: [1], "second": lambda of: (of.first,)}, {})
    assert not pair.has("first")
    assert pair.second[0] is pair.first
    assert pair.second is pair.second
    assert pair.has("first")


def test_what_is_no_part_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="third"):
        _ = Pair({}, {"first": [1]}).third  # type: ignore[attr-defined]


def test_threads_that_ask_at_once_get_the_same_part() -> None:
    both, made = threading.Barrier(2), []

    def make(of: Pair) -> list[int]:
        made.append(1)
        return [1]

    pair, found = Pair({"first": make}, {}), []

    def ask() -> None:
        both.wait(timeout=60)
        found.append(pair.first)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 2
    assert found[0] is found[1]
    assert made == [1]


def announced(kind: type) -> dict[str, str]:
    """Return the type that a class announces for each of its parts, by name."""
    return {name: str(text) for one in kind.__mro__ for name, text in getattr(one, "__annotations__", {}).items()}


async def test_every_part_of_the_gateway_and_of_the_store_is_what_is_announced() -> None:
    settings = Settings(data_dir=":memory:")
    async with open_composition(settings, log=Log(io.StringIO(), SystemClock())) as composition:
        gateway = composition.gateway
        for whole, kind in ((gateway, Gateway), (gateway.store, Store)):
            for name, text in announced(kind).items():
                found: Any = getattr(whole, name)
                kinds = {one.__name__ for one in type(found).__mro__}
                assert text.rpartition(".")[2] in kinds or text in ("<class 'int'>", "Clock", "Ids"), name


async def test_a_reload_keeps_the_parts_that_last() -> None:
    settings = Settings(data_dir=":memory:")
    async with open_composition(settings, log=Log(io.StringIO(), SystemClock())) as composition:
        before = composition.gateway
        kept = {name: getattr(before, name) for name in announced(Lasting)}
        after = composition.reload(settings)
        assert after is not before
        assert after.scans is not before.scans
        assert all(getattr(after, name) is part for name, part in kept.items())


def test_what_the_annotations_name_is_imported_by_nobody_else_than_the_type_checker() -> None:
    assert not hasattr(importlib.import_module("gateway.app"), "Reports")
