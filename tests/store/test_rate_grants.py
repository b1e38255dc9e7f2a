"""Hosts that share a database admit together what one would admit alone, and never a call too many."""

import random

import pytest

from gateway.store.database import StoreUnavailable
from gateway.store.rate_grants import RateGrants
from gateway.store.store import Store

from .conftest import Place

pytestmark = pytest.mark.anyio


def hosts(store: Store, count: int) -> list[RateGrants]:
    """Return what so many hosts have of one database."""
    return [RateGrants(store.db) for _ in range(count)]


@pytest.mark.parametrize("limit", [1, 7, 60, 300])
async def test_the_last_call_of_a_minute_is_admitted_on_any_host_and_the_next_is_not(
    store: Store, place: Place, limit: int
) -> None:
    """Each host asks when it has spent what it had, so what others hold lapses within a second and is asked for anew."""
    several, admitted = hosts(store, 4), 0
    for number in range(limit):
        admission = await several[number % 4].count("key", limit, place.clock)
        admitted += admission.admitted
    if limit <= 64:
        assert admitted == limit
    else:
        assert admitted >= limit * 0.95
        place.clock.pass_seconds(1.0)
        for one in several * limit:
            admitted += (await one.count("key", limit, place.clock)).admitted
        assert limit * 0.95 <= admitted <= limit
    refused = await several[0].count("key", limit, place.clock)
    assert not refused.admitted
    assert 1 <= refused.retry_after_seconds <= 62
    assert (await several[0].count("other", limit, place.clock)).admitted
    place.clock.pass_seconds(refused.retry_after_seconds)
    assert (await several[3].count("key", limit, place.clock)).admitted


@pytest.mark.parametrize("limit", [3, 50, 400])
@pytest.mark.parametrize("seed", range(4))
async def test_no_minute_has_more_calls_than_the_limit(store: Store, place: Place, limit: int, seed: int) -> None:
    random_ = random.Random(seed)
    several, calls = hosts(store, 3), []
    for _ in range(700):
        if (await random_.choice(several).count("key", limit, place.clock)).admitted:
            calls.append(place.clock.monotonic_seconds())
        place.clock.pass_seconds(random_.choice((0.0, 0.001, 0.02, 0.02, 0.4, 2.0)) * (60 / limit if limit < 60 else 1))
    assert len(calls) > limit
    for first, one in enumerate(calls):
        assert sum(call < one + 60 for call in calls[first:]) <= limit
        if first + limit < len(calls):
            assert calls[first + limit] >= one + 60


async def test_what_a_host_did_not_spend_goes_back(store: Store, place: Place) -> None:
    busy, quiet = hosts(store, 2)
    for _ in range(300):
        await busy.count("key", 1000, place.clock)  # and now asks for many at once
    place.clock.pass_seconds(5.0)
    await busy.count("key", 1000, place.clock)  # gives back what has lapsed
    admitted = sum([(await quiet.count("key", 1000, place.clock)).admitted for _ in range(800)])
    assert 301 + admitted >= 985


async def test_a_token_that_came_too_late_is_not_spent(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host,) = hosts(store, 1)
    write = store.db.write

    async def late(work: object, **more: object) -> object:
        result = await write(work, **more)  # type: ignore[arg-type]
        place.clock.pass_seconds(1.5)
        return result

    monkeypatch.setattr(store.db, "write", late)
    with pytest.raises(StoreUnavailable):
        await host.count("key", 100, place.clock)
