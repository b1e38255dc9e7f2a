"""The gateway that is put together: a reload makes the second half anew and keeps the first."""

import io

from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_lasting
from gateway.http.client import Client
from gateway.log import Log
from gateway.settings import Settings
from gateway.shield import load


async def test_a_reload_keeps_the_services_that_last_and_makes_the_others_anew() -> None:
    settings, shield = Settings(data_dir=":memory:"), load()
    async with open_lasting(settings, log=Log(io.StringIO(), Clock())) as lasting:
        client = Client()
        before, after = (vars(Gateway(settings, shield, lasting, client)) for _ in range(2))
        kept = {name for name in before if before[name] is after[name]}
        # The stored rules follow those in use, where there are some.
        assert kept == {*vars(lasting), "lasting", "client", "settings"} - {"local_rules"}
