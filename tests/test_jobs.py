"""What is done now and then: rows, in a task each; a failure is logged and not the end."""

import io
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import cast

import anyio

from gateway.app import Gateway
from gateway.clock import Clock
from gateway.jobs import JOBS, By, Job, run_job, run_jobs
from gateway.log import Log


async def test_a_job_runs_again_and_again_with_the_gateway_of_that_moment() -> None:
    seen: list[object] = []
    enough = anyio.Event()
    gateways = iter(range(100))

    def call(gateway: object) -> None:
        seen.append(gateway)
        if len(seen) == 3:
            enough.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run_jobs, lambda: next(gateways), (Job("count", 0.001, call),))
            await enough.wait()
            group.cancel_scope.cancel()
    assert seen[:3] == [0, 1, 2]


async def test_a_job_that_fails_is_logged_without_its_text_and_runs_again_and_others_go_on() -> None:
    stream = io.StringIO()
    gateway = SimpleNamespace(log=Log(stream, Clock()))
    calls: list[str] = []
    enough = anyio.Event()

    async def fail(_: object) -> None:
        calls.append("fail")
        raise ValueError("a prompt that must not be told")

    def count(_: object) -> None:
        calls.append("count")
        if calls.count("fail") >= 2 and calls.count("count") >= 2:
            enough.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run_jobs, lambda: gateway, (Job("bad", 0.001, fail), Job("good", 0.001, count)))
            await enough.wait()
            group.cancel_scope.cancel()
    assert '"job": "bad"' in stream.getvalue()
    assert "must not be told" not in stream.getvalue()


def test_every_job_has_a_name_of_its_own_and_waits() -> None:
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert all(job.every_seconds >= 0.25 for job in JOBS)


async def test_a_job_that_has_nothing_to_do_takes_no_lease() -> None:
    asked: list[str] = []
    calls: list[object] = []

    class Leases:
        """Gives the lease to everybody."""

        guard = nullcontext

        async def hold(self, name: str, seconds: float) -> object:
            asked.append(name)
            return self

    async def is_due(gateway: Gateway) -> bool:
        return True

    async def is_idle(gateway: Gateway) -> bool:
        return False

    for name, asks in (("idle", is_idle), ("due", is_due)):
        job = Job(name, 1.0, calls.append, by=By.ONE, is_due=asks)
        await run_job(job, cast(Gateway, SimpleNamespace(leases=Leases())))
    assert asked == ["due"]
    assert len(calls) == 1


async def test_a_job_for_one_alone_is_done_by_whoever_holds_its_lease() -> None:
    calls: list[str] = []
    asked: list[tuple[str, float]] = []
    enough = anyio.Event()

    class Leases:
        """Gives the lease to every second who asks."""

        guard = nullcontext

        async def hold(self, name: str, seconds: float) -> object:
            asked.append((name, seconds))
            if len(asked) == 6:
                enough.set()
            return self if len(asked) % 2 == 0 else None

    job = Job("sum", 0.001, lambda gateway: calls.append("sum"), by=By.ONE, first_seconds=0)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run_jobs, lambda: SimpleNamespace(leases=Leases()), (job,))
            await enough.wait()
            group.cancel_scope.cancel()
    assert {name for name, _ in asked} == {"sum"}
    assert all(seconds > job.every_seconds for _, seconds in asked)
    assert len(calls) in (2, 3)


async def test_the_first_of_a_group_does_every_job_and_the_others_what_each_process_does() -> None:
    class Leases:
        """Gives every lease."""

        guard = nullcontext

        async def hold(self, name: str, seconds: float) -> object:
            return self

    async def done(*, is_first: bool) -> set[str]:
        calls: list[str] = []
        enough = anyio.Event()

        def each(_: object) -> None:
            calls.append("each")
            if len(calls) >= 9:
                enough.set()

        jobs = (
            Job("one", 0.001, lambda _: calls.append("one"), by=By.ONE, first_seconds=0),
            Job("group", 0.001, lambda _: calls.append("group"), by=By.GROUP, first_seconds=0),
            Job("each", 0.001, each),
        )
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                run = partial(run_jobs, lambda: SimpleNamespace(leases=Leases()), jobs, is_first=is_first)
                group.start_soon(run)
                await enough.wait()
                group.cancel_scope.cancel()
        return set(calls)

    assert await done(is_first=True) == {"one", "group", "each"}
    assert await done(is_first=False) == {"each"}


async def test_each_job_is_run_once_in_turn_even_after_one_that_fails() -> None:
    calls: list[str] = []

    def fail(_: object) -> None:
        calls.append("bad")
        raise ValueError

    jobs = (Job("bad", 1.0, fail), Job("good", 1.0, lambda _: calls.append("good")))
    for job in jobs:
        await run_job(job, cast(Gateway, SimpleNamespace(log=Log(io.StringIO(), Clock()))))
    assert calls == ["bad", "good"]
