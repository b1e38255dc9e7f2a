"""Long work goes to a thread, and what it was about is gone as soon as it has failed."""

import gc
import threading
import weakref

import pytest

from gateway.aside import Aside
from gateway.errors import InvalidRequest


class Body:
    """Something large."""


def refuse(body: Body) -> None:
    try:
        raise KeyError(str(body))
    except KeyError as error:
        raise InvalidRequest("no") from error


@pytest.mark.parametrize("is_long", [True, False])
async def test_only_long_work_goes_to_a_thread(is_long: bool) -> None:
    here = threading.current_thread()
    assert await Aside().run(lambda one: (threading.current_thread() is here, one), 5, is_long=is_long) == (
        not is_long,
        5,
    )


async def test_what_failed_in_a_thread_is_kept_by_nothing() -> None:
    body = Body()
    kept = weakref.ref(body)
    aside = Aside()
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
