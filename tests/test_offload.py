"""Long work goes to a thread, and what it was about is gone as soon as it has failed."""

import gc
import threading
import weakref

import anyio
import pytest

from gateway.errors import InvalidRequest, Shed
from gateway.offload import ThreadOffload


class Body:
    """Something large."""


def refuse(body: Body) -> None:
    try:
        raise KeyError(str(body))
    except KeyError as error:
        raise InvalidRequest("no") from error


async def test_work_runs_in_another_thread() -> None:
    here = threading.current_thread()
    assert await ThreadOffload().run(lambda one: (threading.current_thread() is here, one), 5) == (False, 5)


async def test_what_failed_in_a_thread_is_kept_by_nothing() -> None:
    body = Body()
    kept = weakref.ref(body)
    aside = ThreadOffload()
    gc.disable()
    try:
        try:
            await aside.run(refuse, body)
        except InvalidRequest as error:
            was_caused = isinstance(error.__cause__, KeyError)
        del body
        assert was_caused
        await aside.run(str, 5)  # so that the thread has let go of its last work
        assert kept() is None
    finally:
        gc.enable()


async def test_who_waited_too_long_for_a_thread_is_shed_and_takes_none() -> None:
    aside, go, done = ThreadOffload(wait_seconds=0.01), threading.Event(), []

    async def wait(number: int) -> None:
        done.append(await aside.run(lambda one: (go.wait(30), one)[1], number, is_patient=True))

    try:
        async with anyio.create_task_group() as tasks:
            for number in (1, 2):
                tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Shed):
                await aside.run(done.append, 3)
            go.set()
    finally:
        go.set()
    assert done == [1, 2]
    await aside.run(done.append, 4)
    assert done == [1, 2, 4]
