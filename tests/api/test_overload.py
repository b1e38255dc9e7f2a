"""More to do than can be done: what is refused, what is answered all the same, and that it passes."""

from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from gateway.http.messages import Headers, Request
from gateway.services.scans import ScanAnswer

KEY = "svc_" + "a" * 40
SCAN = ("POST", "/api/v1/shield/scan", {"text": "good morning"})


def waiting(house: Any, path: str, seconds: float, key: str = KEY) -> Request:
    """Return a request whose last byte arrived so many seconds ago."""
    headers = Headers({"host": "gateway.test", "x-service-key": key})
    now = house.clock.seconds
    return Request("GET", path, "", headers, b"", "192.0.2.1", False, now, None, now - seconds)


async def test_beyond_its_bound_a_path_is_refused_before_any_work_and_the_others_are_answered(house_with: Any) -> None:
    house = house_with(max_requests_in_work=2)
    held, entered = anyio.Event(), []
    scan = house.scans.scan

    async def hold(*arguments: Any) -> ScanAnswer:
        entered.append(1)
        await held.wait()
        answer: ScanAnswer = await scan(*arguments)
        return answer

    house.scans.scan = hold
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await house.ask(*SCAN)).status)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
        while len(entered) < 2:
            await checkpoint()
        asked = len(house.authentication.asked)
        refused = await house.ask(*SCAN)
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "overloaded", "1")
        assert len(house.authentication.asked) == asked, "a key was looked for"
        assert "x-ratelimit-remaining" not in refused.headers, "it was counted against the rate"
        assert (await house.ask("GET", "/api/v1/alerts")).status == 200
        assert (await house.ask("GET", "/api/v1/health")).status == 200
        assert (await house.ask("GET", "/metrics", key="svc_" + "e" * 40)).status == 200
        held.set()
    assert statuses == [200, 200]
    assert (await house.ask(*SCAN)).status == 200
    assert "gateway_shed_total 1" in house.metrics.render()


async def test_what_waited_too_long_for_its_turn_is_refused_and_health_is_not(house_with: Any) -> None:
    house = house_with(max_wait_seconds=2)
    late = house.reply(await house.dispatch.handle(waiting(house, "/api/v1/alerts", 2.1)))
    assert (late.status, late.code, late.headers["retry-after"]) == (503, "overloaded", "1")
    assert (await house.dispatch.handle(waiting(house, "/api/v1/alerts", 1.9))).status == 200
    assert (await house.dispatch.handle(waiting(house, "/api/v1/health", 9.0))).status == 200


async def test_a_flood_of_what_is_shed_is_a_line_a_second_in_the_log(house_with: Any) -> None:
    house = house_with(max_wait_seconds=2)
    for _ in range(50):
        await house.dispatch.handle(waiting(house, "/api/v1/alerts", 3))
    assert house.log.getvalue().count('"overloaded"') == 1
    house.clock.seconds += 1
    await house.dispatch.handle(waiting(house, "/api/v1/alerts", 3))
    assert house.log.getvalue().count('"overloaded"') == 2


async def test_a_handler_that_fails_or_is_left_gives_its_place_back(house_with: Any) -> None:
    house = house_with(max_requests_in_work=1)
    house.scans.error = RuntimeError("made up")
    assert (await house.ask(*SCAN)).status == 500
    with anyio.move_on_after(0) as scope:
        await house.ask(*SCAN)
    assert scope.cancel_called
    house.scans.error = None
    assert (await house.ask(*SCAN)).status == 200
