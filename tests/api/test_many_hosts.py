"""Two hosts on one database: each is itself, what is for one alone is done once, and no secret is on one host only."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from gateway_site import Site, open_site
from many_hosts import share

from gateway.clock import SystemClock
from gateway.compose import open_gateway
from gateway.log import Log
from gateway.settings import Settings

Open = Callable[..., AbstractAsyncContextManager[Site]]


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of the database, an hour ahead of the hosts."""
    found = FakeClock(SystemClock().now_at() + 3_600_000)
    share(monkeypatch, tmp_path / "database" / "gateway.db", found)
    return found


@pytest.fixture
def host(tmp_path: Path, clock: FakeClock) -> Open:
    """Return a function that starts the gateway of a host."""
    return lambda name, **settings: open_site(data_dir=str(tmp_path / name), **settings)


@pytest.fixture
async def hosts(host: Open) -> AsyncIterator[tuple[Site, Site]]:
    async with host("a") as first, host("b") as second:
        yield first, second


async def test_each_host_has_an_id_that_it_keeps_and_all_have_one_chain(host: Open) -> None:
    async with host("a") as first, host("b") as second:
        stores = first.gateway.store, second.gateway.store
        node_ids = [one.node_id for one in stores]
        assert len({*node_ids, stores[0].instance_id}) == 3 and stores[0].instance_id == stores[1].instance_id
    async with host("b") as second, host("a") as first:
        assert [first.gateway.store.node_id, second.gateway.store.node_id] == node_ids
        assert (await first.gateway.audit.verify()).ok and (await second.gateway.audit.verify()).ok


async def test_the_fleet_has_every_host_and_tells_which_is_offline(hosts: tuple[Site, Site], clock: FakeClock) -> None:
    first, second = hosts
    for one in hosts:
        await one.gateway.fleet.beat()
    node_ids = {one.gateway.store.node_id for one in hosts}
    for one in hosts:
        fleet = await one.get("/api/fleet")
        assert {shown["id"] for shown in fleet["instances"]} == node_ids and fleet["healthy"] == 2
    clock.pass_seconds(6 * 60)
    await second.gateway.fleet.beat()
    shown = {one["id"]: one["connection"] for one in (await second.get("/api/fleet"))["instances"]}
    assert shown == {first.gateway.store.node_id: "offline", second.gateway.store.node_id: "online"}
    (alert,) = await second.get("/api/alerts?rule=instance-offline")
    assert alert["status"] == "open"
    await first.gateway.fleet.beat()
    await second.gateway.fleet.beat()
    (alert,) = await second.get("/api/alerts?rule=instance-offline")
    assert alert["status"] == "resolved"


async def test_a_command_checks_the_gateway_of_its_own_host(hosts: tuple[Site, Site], tmp_path: Path) -> None:
    first, second = (one.gateway for one in hosts)

    async def checked() -> Any:
        settings, log = Settings(data_dir=str(tmp_path / "a")), Log(io.StringIO(), SystemClock())
        async with open_gateway(settings, log=log, is_shell=True) as shell:
            return (await shell.store.db.read(shell.running.checked)).settings_of

    await first.running.save()
    await second.running.save()
    assert await checked() == first.store.node_id
    await second.running.forget()
    assert await checked() == first.store.node_id
    await first.running.forget()
    await second.running.save()
    assert await checked() == "this shell"
