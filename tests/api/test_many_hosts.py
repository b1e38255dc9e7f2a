"""Two hosts on one database: each is itself, what is for one alone is done once, and no secret is on one host only."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from fake_clock import FakeClock
from gateway_site import Site, open_site
from many_hosts import share

from gateway import jobs
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.budgets import HOLD_SECONDS, Usage
from gateway.domain.event_outputs import OutEvent
from gateway.domain.principals import RequestContext
from gateway.errors import SetupError
from gateway.log import Log
from gateway.outputs.delivery import Delivery
from gateway.services import event_sender
from gateway.services.first_start import FILE, FirstCredentials, publish
from gateway.services.spending import Reservation
from gateway.settings import Settings

CONTEXT = RequestContext(request_id="req_1")
Open = Callable[..., AbstractAsyncContextManager[Site]]


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of the database, an hour ahead of the hosts."""
    found = FakeClock(Clock().now_at() + 3_600_000)
    share(monkeypatch, tmp_path / "database" / "gateway.db", found)
    return found


@pytest.fixture
def host(tmp_path: Path, clock: FakeClock) -> Open:
    """Return a function that starts the gateway of a host."""
    (tmp_path / "seal").write_text("5" * 64)
    return lambda name, **more: open_site(
        **({"data_dir": str(tmp_path / name), "seal_key_file": str(tmp_path / "seal")} | more)
    )


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
        settings, log = (
            Settings(data_dir=str(tmp_path / "a"), seal_key_file=str(tmp_path / "seal")),
            Log(io.StringIO(), Clock()),
        )
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


def hosts_with(folder: Path, files: str) -> list[str]:
    """Return the hosts in whose data folders such files lie."""
    return [path.parent.name for path in folder.glob(f"*/{files}")]


def job(name: str) -> jobs.Job:
    return next(one for one in jobs.JOBS if one.name == name)


async def test_a_host_that_wakes_up_in_a_job_of_one_gives_it_up(hosts: tuple[Site, Site], clock: FakeClock) -> None:
    first, second = hosts
    check = first.gateway.audit_chain.checkpoint
    done: list[str] = []

    async def paused() -> None:
        clock.pass_seconds(3600)
        await jobs.run_job(job("check_audit_chain"), second.gateway)
        done.append("second")
        await check()
        done.append("first")

    await second.gateway.audit.record(second.gateway.audit.event("made_up", source="api"))
    first.gateway.audit_chain.checkpoint = paused  # type: ignore[method-assign]
    await jobs.run_job(job("check_audit_chain"), first.gateway)
    assert done == ["second"]
    assert len((await first.get("/api/audit/chain"))["checkpoints"]) == 1
    assert '"LeaseLost"' in first.log.getvalue()


async def test_the_clock_of_a_host_gives_no_lease_away(hosts: tuple[Site, Site], clock: FakeClock) -> None:
    first, second = (one.gateway.leases for one in hosts)
    assert await first.hold("sum", 10)
    assert await second.hold("sum", 10) is None  # although the lease ends an hour before, by the clock of this host
    clock.pass_seconds(10)
    assert await second.hold("sum", 10)


async def test_the_holds_of_a_dead_host_are_released_by_one_by_the_clock_of_the_database(
    hosts: tuple[Site, Site], clock: FakeClock
) -> None:
    first, second = hosts
    made = await first.ask("POST", "/api/budgets", {"limit": 1000, "unit": "tokens"})
    assert made["status_code"] == 201, made
    spending = first.gateway.spending
    await first.gateway.store.authority.follow()
    assert spending.any()
    await spending.reserve(Reservation("req_1", Usage(10, None)), [made["data"]["id"]])

    async def held() -> int:
        rows = await first.gateway.store.db.read(lambda tx: tx.query("SELECT id FROM budget_holds"))
        return len(rows)

    await jobs.run_job(job("release_budget_orphans"), second.gateway)
    assert await held() == 1
    clock.pass_seconds(HOLD_SECONDS + 1)
    await second.gateway.leases.hold("release_budget_orphans", 60)
    await jobs.run_job(job("release_budget_orphans"), first.gateway)
    assert await held() == 1  # the other host does it
    await jobs.run_job(job("release_budget_orphans"), second.gateway)
    assert await held() == 0


@pytest.mark.parametrize("is_in_delivery", [True, False])
async def test_a_host_that_wakes_up_sends_no_event_that_another_sends(
    hosts: tuple[Site, Site], clock: FakeClock, monkeypatch: pytest.MonkeyPatch, is_in_delivery: bool
) -> None:
    monkeypatch.setattr(event_sender, "LOOK_SECONDS", 60.0)  # a paused process does not look
    monkeypatch.setattr(event_sender, "POLL_SECONDS", 0.05)
    first, second = hosts
    host_clock = FakeClock()
    first.gateway.event_outputs.clock = host_clock
    sent: list[tuple[Site, str]] = []
    paused = anyio.Event()

    async def pause() -> None:
        host_clock.pass_seconds(20)
        clock.pass_seconds(20)
        assert await second.gateway.leases.hold(event_sender.LEASE, event_sender.LEASE_SECONDS)
        paused.set()

    class Sink(Delivery):
        """Notes which host sends what. The first host is paused while it sends the event `c-1`."""

        def __init__(self, site: Site) -> None:
            self.site = site

        async def deliver(self, event: OutEvent) -> None:
            sent.append((self.site, event.id))
            if event.id == "evt_c-1" and self.site is first and is_in_delivery:
                await pause()

        async def aclose(self) -> None:
            return

    async def happen(*names: str) -> None:
        audit = first.gateway.audit
        events = [replace(audit.event("made_up", source="api"), id=f"evt_{name}") for name in names]
        await first.gateway.audit.commit(lambda tx: [audit.append(tx, event) for event in events])

    async def all_sent_by(site: Site) -> None:
        """Wait until the host has sent all and the database knows it."""
        with anyio.fail_after(20):
            while (await site.get("/api/event-outputs"))[0]["waiting"]:  # noqa: ASYNC110
                await anyio.sleep(0.02)

    for one in hosts:
        one.gateway.event_outputs.open = lambda output, site=one: Sink(site)  # type: ignore[misc]
    answer = await first.ask("POST", "/api/event-outputs", {"name": "s", "kind": "jsonl", "target": "a.jsonl"})
    assert answer["status_code"] == 201, answer
    async with anyio.create_task_group() as group:
        group.start_soon(first.gateway.event_sender.run)
        await happen("a", "b")
        await all_sent_by(first)
        if not is_in_delivery:
            await pause()
        await happen("c-1", "c-2", "c-3")
        with anyio.fail_after(20):
            await paused.wait()
        await anyio.sleep(0.2)
        group.start_soon(second.gateway.event_sender.run)
        await all_sent_by(second)
        group.cancel_scope.cancel()
    own = [id for _, id in sent if id[:5] in ("evt_a", "evt_b", "evt_c")]
    again = ["evt_c-1"] * is_in_delivery  # was on its way when the host was paused
    assert own == ["evt_a", "evt_b", *again, "evt_c-1", "evt_c-2", "evt_c-3"]
    assert [site for site, id in sent if id in ("evt_c-2", "evt_c-3")] == [second, second]


async def test_hosts_have_one_seal_key_or_do_not_start(host: Open, tmp_path: Path) -> None:
    own = tmp_path / "a" / "gateway.db.seal"
    async with host("a", seal_key_file=None) as first:
        hashed = first.gateway.store.seal("a secret")
        for one, why in (("b", "has none"), ("c", "has another")):
            with pytest.raises(SetupError, match=why) as refused:
                (tmp_path / "key").write_text("0" * 64)
                async with host(one, seal_key_file=None if one == "b" else str(tmp_path / "key")):
                    pass
            assert f"{one}/gateway.db.seal" in refused.value.message
        (tmp_path / "b" / own.name).write_bytes(own.read_bytes())
        (tmp_path / "key").write_text(json.loads(own.read_text())["seal"] + "\n")
        for one, path in (("b", None), ("c", tmp_path / "key"), ("d", own)):
            async with host(one, seal_key_file=path and str(path)) as another:
                assert another.gateway.store.seal("a secret") == hashed
        assert not (tmp_path / "c" / own.name).exists()
        rows = await first.gateway.store.db.read(lambda tx: tx.query("SELECT value FROM meta"))
        assert json.loads(own.read_text())["seal"] not in {row["value"] for row in rows}


@pytest.mark.parametrize("text", [None, "", "0" * 63, "0" * 65, "g" * 64, '{"seal": "'])
async def test_a_file_without_a_seal_key_is_refused(host: Open, tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "key").write_text(text)
    with pytest.raises(SetupError, match=r"seal_key_file \(GATEWAY_SEAL_KEY_FILE\)"):
        async with host("a", seal_key_file=str(tmp_path / "key")):
            pass


@pytest.mark.parametrize(
    ("path", "param", "fields"),
    [
        ("/api/providers", "api_key", {"base_url": "http://127.0.0.1:9/v1"}),
        ("/api/fleet/peers", "api_key", {"url": "http://127.0.0.1:9"}),
        ("/api/event-outputs", "secret", {"kind": "webhook", "target": "http://127.0.0.1:9/hook"}),
    ],
)
async def test_a_secret_that_one_host_alone_would_have_is_refused(
    hosts: tuple[Site, Site], tmp_path: Path, path: str, param: str, fields: dict[str, Any]
) -> None:
    fields |= {"name": "one", "allow_private": True}
    typed = "whsec_" + "QUFB" * 8 if param == "secret" else "k-made-up-key"
    for given in ({param: typed}, {}) if param == "secret" else ({param: typed},):
        answer = await hosts[0].ask("POST", path, fields | given)
        assert (answer["status_code"], answer["error"]["param"]) == (400, param), answer
        assert "env:NAME" in answer["error"]["message"] and typed not in str(answer)
    made = await hosts[0].ask("POST", path, fields | {param: "env:GATEWAY_PROVIDER_ONE"})
    assert made["status_code"] == 201, made
    if path != "/api/fleet/peers":
        changed = await hosts[1].ask("PATCH", f"{path}/{made['data']['id']}", {param: typed})
        assert (changed["status_code"], changed["error"]["param"]) == (400, param), changed
    assert not hosts_with(tmp_path, "gateway.db.provider-keys")


async def test_of_hosts_that_start_at_once_one_makes_the_first_credentials(
    hosts: tuple[Site, Site], tmp_path: Path
) -> None:
    made: dict[str, FirstCredentials | None] = {}

    async def start(site: Site, name: str) -> None:
        made[name] = await site.gateway.first_start.make(str(tmp_path / name))
        if made[name] is not None:
            publish(str(tmp_path / name))

    async with anyio.create_task_group() as group:
        for site, name in zip(hosts, "ab", strict=True):
            group.start_soon(start, site, name)
    ((name, first),) = [(name, one) for name, one in made.items() if one is not None]
    assert hosts_with(tmp_path, "first-credentials*") == [name]
    assert first is not None and first.api_key in (tmp_path / name / FILE).read_text()
    for site in hosts:
        assert [user.username for user in await site.gateway.users.list()] == ["admin"]
        assert (await site.gateway.authentication.authenticate(first.api_key, CONTEXT)).name == "first key"
        assert await site.gateway.first_start.make(str(tmp_path / name)) is None
