"""The gateway that is put together: a reload makes the second half anew and keeps the first."""

import io
from dataclasses import fields

from gateway.app import Lasting
from gateway.clock import SystemClock
from gateway.compose import open_composition
from gateway.log import Log
from gateway.settings import Settings


async def test_a_reload_keeps_the_services_that_last_and_makes_the_others_anew() -> None:
    settings = Settings(data_dir=":memory:")
    async with open_composition(settings, log=Log(io.StringIO(), SystemClock())) as composition:
        before = composition.gateway
        after = composition.reload(settings)
        lasting = {field.name for field in fields(Lasting)}
        assert after is not before
        for field in fields(after):
            if field.name != "shield":  # the tests load each rule file once
                is_same = getattr(after, field.name) is getattr(before, field.name)
                assert is_same == (field.name in lasting), field.name
