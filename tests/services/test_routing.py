"""Routing over scripted connections and a clock set by hand: turns, circuits, keys, and other processes."""

import io
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from fake_clock import FakeClock

from gateway.clock import Ids
from gateway.domain.alerts import Alert, AlertFilter, AlertStatus
from gateway.domain.circuits import ProviderStatus
from gateway.domain.principals import Caller, RequestContext, local
from gateway.domain.providers import Provider, ProviderType
from gateway.errors import InvalidRequest, NotFound, UpstreamUnavailable
from gateway.llm.base import Prompt, Reply, Upstream, UpstreamFault, UpstreamRefused
from gateway.llm.echo import EchoModel
from gateway.log import Log
from gateway.services.alerts import Alerts
from gateway.services.circuits import Circuits
from gateway.services.core import Core
from gateway.services.provider_keys import ProviderKeys
from gateway.services.providers import ChangedProvider, NewProvider, Providers
from gateway.services.routing import Routing
from gateway.settings import Settings
from gateway.store.store import Store, open_store

CLI = local("cli")
CONTEXT = RequestContext(request_id="req_1")
CALLER = Caller(CLI, CONTEXT)
PROMPT = Prompt("m", {"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
FAULT = UpstreamFault("It failed.", detail="it failed", status=500, may_repeat=True)


@dataclass
class Scripted:
    """A connection that answers, fails, or waits until it is let go; remembers the key it was made with."""

    key: str | None
    fault: Exception | None = None
    gate: anyio.Event | None = None
    asked: int = 0

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return Reply({})

    async def models(self) -> tuple[Mapping[str, object], ...]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return ({"id": "m-1"}, {"id": "other"})


@dataclass
class Process:
    """One process over the database. connections: by name, as they were made last."""

    store: Store
    clock: FakeClock
    addresses: tuple[str, ...] = ()
    connections: dict[str, Scripted] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.core = Core(self.store, self.clock, Ids(self.clock))
        self.alerts = Alerts(self.core)
        self.circuits = Circuits(self.core, alerts=self.alerts)
        keys = ProviderKeys(self.store.keyfile, Settings(provider_key_dirs=("/",)))
        self.routing = Routing(self.core, circuits=self.circuits, keys=keys, connect=self._connect)
        self.providers = Providers(
            self.core, circuits=self.circuits, keys=keys, resolve=self._resolve, routing=self.routing
        )

    async def _resolve(self, url: str) -> tuple[str, ...]:
        return self.addresses

    def _connect(self, provider: Provider, key: str | None) -> Upstream:
        if provider.type is ProviderType.ECHO:
            return EchoModel(clock=self.clock, ids=Ids(self.clock))
        before = self.connections.get(provider.name)
        made = replace(before, key=key) if before else Scripted(key)
        self.connections[provider.name] = made
        self.made.append(provider.name)
        return made

    async def add(self, name: str, **fields: object) -> Scripted:
        wanted = {"base_url": "https://api.example/v1", "max_retries": 0, **fields}
        made = await self.providers.create(CALLER, NewProvider(name=name, **wanted))  # type: ignore[arg-type]
        await self.store.authority.follow()
        self.routing.connections()
        self.routing.connection(made).upstream()
        return self.connections[name]

    async def ask(self, model: str = "m") -> str:
        await self.store.authority.follow()
        _, by = await self.routing.complete(PROMPT, self.routing.candidates(model))
        return by.name

    async def alert(self) -> Alert:
        await self.store.db.write(lambda tx: None)  # what is written behind is committed with it
        (alert,) = (await self.alerts.page(AlertFilter())).items
        return alert

    def status(self, name: str) -> ProviderStatus:
        return next(
            self.circuits.status(one.provider) for one in self.routing.connections() if one.provider.name == name
        )


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        found = []
        clock = FakeClock()
        for _ in range(2):
            store = await open_store(
                tmp_path / "gateway.db", clock=clock, ids=Ids(clock), log=Log(io.StringIO(), clock)
            )
            stack.push_async_callback(store.aclose)
            found.append(Process(store, clock))
        yield found[0], found[1]


@pytest.fixture
def one(two: tuple[Process, Process]) -> Process:
    return two[0]


async def test_what_one_process_changes_another_obeys_at_its_next_prompt(two: tuple[Process, Process]) -> None:
    one, other = two
    assert await other.ask() == "echo"
    await one.add("lab", api_key="sk-typed-in")
    assert await other.ask() == "lab"
    assert other.connections["lab"].key == "sk-typed-in"
    await one.providers.change(CALLER, "lab", ChangedProvider(api_key="sk-other"))
    await other.ask()
    assert other.connections["lab"].key == "sk-other"
    await one.providers.change(CALLER, "lab", ChangedProvider(enabled=False))
    with pytest.raises(NotFound):
        await other.ask()
    await one.providers.remove(CALLER, "lab")
    assert await other.ask() == "echo"


async def test_a_change_of_something_else_makes_no_connection_anew(one: Process) -> None:
    await one.add("lab")
    one.store.generation.bump()
    await one.ask()
    assert one.made == ["lab"]


async def test_turns_are_exact_whatever_the_weights(one: Process) -> None:
    for name, weight in (("a", 5), ("b", 3), ("c", 2)):
        await one.add(name, weight=weight)
    asked = [await one.ask() for _ in range(20)]
    assert {name: asked.count(name) for name in "abc"} == {"a": 10, "b": 6, "c": 4}


async def test_an_open_circuit_is_passed_over_until_one_probe_succeeds(one: Process) -> None:
    lab = await one.add("lab", priority=1)
    await one.add("backup", priority=2)
    lab.fault = FAULT
    assert [await one.ask() for _ in range(6)] == ["backup"] * 6
    assert (lab.asked, one.status("lab")) == (5, ProviderStatus.OPEN)
    assert (await one.alert()).status is AlertStatus.OPEN
    one.clock.seconds += 30
    lab.fault, lab.gate = None, anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(one.ask)
        while lab.asked < 6:
            await anyio.lowlevel.checkpoint()
        assert await one.ask() == "backup", "one probe, and nobody else beside it"
        lab.gate.set()
    assert await one.ask() == "lab"
    assert one.status("lab") is ProviderStatus.HEALTHY
    alert = await one.alert()
    assert (alert.status, alert.resolution) == (AlertStatus.RESOLVED, "The provider answers again.")


async def test_a_probe_that_is_given_up_leaves_its_place_to_the_next(one: Process) -> None:
    lab = await one.add("lab")
    lab.fault = FAULT
    for _ in range(5):
        with pytest.raises(UpstreamUnavailable):
            await one.ask()
    one.clock.seconds += 30
    lab.fault, lab.gate = None, anyio.Event()
    with anyio.move_on_after(0.01):
        await one.ask()
    lab.gate.set()
    assert await one.ask() == "lab"


async def test_a_provider_that_is_disabled_or_removed_is_no_longer_reported_down(one: Process) -> None:
    lab = await one.add("lab")
    lab.fault = FAULT
    for _ in range(5):
        with pytest.raises(UpstreamUnavailable):
            await one.ask()
    assert (await one.alert()).status is AlertStatus.OPEN
    await one.providers.change(CALLER, "lab", ChangedProvider(enabled=False))
    assert (await one.alert()).status is AlertStatus.RESOLVED


async def test_a_key_that_is_exchanged_in_its_file_is_read_again(one: Process, tmp_path: Path) -> None:
    path = tmp_path.parent / f"{tmp_path.name}-key"
    path.write_text("sk-old\n")
    await one.add("lab", api_key=f"file:{path}")
    path.write_text("sk-new\n")
    await one.ask()
    assert one.connections["lab"].key == "sk-old"
    one.clock.seconds += 10
    await one.ask()
    assert one.connections["lab"].key == "sk-new"
    path.unlink()
    one.clock.seconds += 10
    with pytest.raises(UpstreamFault) as caught:
        await one.ask()
    assert "sk-" not in caught.value.message + caught.value.detail


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        ([UpstreamRefused(429), FAULT], 429),
        ([FAULT, UpstreamRefused(429)], 429),
        ([FAULT, UpstreamRefused(404)], None),
        ([UpstreamRefused(404), UpstreamRefused(404)], 404),
    ],
)
async def test_of_several_failures_the_gravest_is_told(
    one: Process, faults: list[Exception], status: int | None
) -> None:
    for name, fault in zip("ab", faults, strict=True):
        (await one.add(name, priority=ord(name))).fault = fault
    with pytest.raises((UpstreamUnavailable, UpstreamRefused)) as caught:
        await one.ask()
    assert getattr(caught.value, "status", None) == (500 if status is None else status)
    assert isinstance(caught.value, UpstreamUnavailable) is (status is None)


async def test_a_refusal_of_the_prompt_is_told_at_once_and_speaks_for_the_provider(one: Process) -> None:
    lab, backup = await one.add("lab", priority=1), await one.add("backup", priority=2)
    lab.fault = UpstreamRefused(400)
    with pytest.raises(UpstreamRefused):
        await one.ask()
    assert (backup.asked, one.status("lab")) == (0, ProviderStatus.HEALTHY)


async def test_one_that_does_not_list_its_models_hides_nobody_elses(one: Process) -> None:
    (await one.add("broken")).fault = FAULT
    await one.add("lab", models=("m-*",))
    await one.add("named", models=("gpt-x",))
    assert [model["id"] for model in await one.routing.models()] == ["m-1", "gpt-x"]
    await one.routing.models()
    assert one.connections["broken"].asked == 1, "it is not asked again at once"
    assert [model["id"] for model in await one.routing.models(allowed=lambda name: name == "named")] == ["gpt-x"]
    with pytest.raises(UpstreamUnavailable):
        await one.routing.models(allowed=lambda name: name == "broken")


async def test_models_are_asked_for_once_a_minute_and_after_another_key(
    one: Process, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("keys") / "key"
    path.write_text("sk-one")
    lab = await one.add("lab", models=("m-*",), api_key=f"file:{path}")
    for _ in range(3):
        assert [model["id"] for model in await one.routing.models()] == ["m-1"]
    assert lab.asked == 1
    one.clock.pass_seconds(61)
    await one.routing.models()
    assert lab.asked == 2
    path.write_text("sk-two")
    one.clock.pass_seconds(11)
    await one.routing.models()
    assert one.connections["lab"].asked == 3


async def test_the_health_is_that_of_all_enabled_providers(one: Process) -> None:
    await one.store.authority.follow()
    assert one.routing.health() == "not_configured"
    lab, backup = await one.add("lab", priority=1), await one.add("backup", priority=2)
    assert one.routing.health() == "unknown"
    await one.ask()
    assert one.routing.health() == "healthy"
    lab.fault = FAULT
    await one.ask()
    assert one.routing.health() == "degraded"
    backup.fault = FAULT
    with pytest.raises(UpstreamUnavailable):
        await one.ask()
    assert one.routing.health() == "unreachable"


async def test_a_name_that_stands_for_an_address_inside_is_refused_when_it_is_made(one: Process) -> None:
    one.addresses = ("93.184.216.34", "10.0.0.1")
    with pytest.raises(InvalidRequest) as caught:
        await one.add("lab")
    assert caught.value.param == "base_url"
    await one.add("lab", allow_private=True)
    for metadata in ("169.254.169.254", "168.63.129.16", "100.100.100.200"):
        one.addresses = (metadata,)
        with pytest.raises(InvalidRequest):
            await one.add("other", allow_private=True)


async def test_a_key_whose_record_was_not_written_is_not_used_and_one_in_use_is_not_lost(one: Process) -> None:
    await one.add("lab", api_key="sk-one")
    with pytest.raises(Exception, match="already"):
        await one.add("LAB", api_key="sk-two")
    keys = ProviderKeys(one.store.keyfile, Settings())
    assert keys.read((await one.providers.show("lab")).key_reference) == "sk-one"


async def test_all_attempts_of_a_prompt_together_have_an_end(one: Process) -> None:
    await one.add("failing", priority=1, timeout_seconds=1)
    hanging = await one.add("hanging", priority=2, timeout_seconds=1)
    backup = await one.add("backup", priority=3, timeout_seconds=1)
    one.connections["failing"].fault = FAULT
    hanging.gate = anyio.Event()
    routing = Routing(
        one.core, circuits=one.circuits, keys=ProviderKeys(one.store.keyfile, Settings()),
        connect=one._connect, attempts_seconds=0.0,
    )  # fmt: skip
    with anyio.fail_after(10), pytest.raises(UpstreamUnavailable) as caught:
        await routing.complete(PROMPT, routing.candidates("m"))
    assert caught.value is FAULT, "of what failed before, the gravest is told"
    assert (one.connections["hanging"].asked, backup.asked) == (1, 0)


async def test_the_provider_of_the_settings_is_another_one_after_a_reload_and_fares_as_before(one: Process) -> None:
    urls = ["https://old.example/v1", "https://new.example/v1"]
    connected: list[str | None] = []

    def connect(provider: Provider, key: str | None) -> Scripted:
        connected.append(provider.base_url)
        return Scripted(key, fault=FAULT)

    await one.store.authority.follow()
    for url in urls:
        routing = Routing(
            one.core, circuits=one.circuits, keys=ProviderKeys(one.store.keyfile, Settings()),
            connect=connect, upstream=Provider(id="upstream", name="x", base_url=url, max_retries=0, origin="settings"),
        )  # fmt: skip
        for _ in range(3):
            candidates = routing.candidates("m")
            with pytest.raises(UpstreamUnavailable):
                await routing.complete(PROMPT, candidates)
    assert connected == urls
    assert one.circuits.status(candidates[0].provider) is ProviderStatus.OPEN


async def test_what_was_on_its_way_to_a_provider_that_was_changed_says_nothing_of_how_it_fared_before(
    one: Process,
) -> None:
    await one.add("lab")
    (connection,) = one.routing.connections()
    for _ in range(4):
        one.circuits.failed(connection.provider, "it failed")
    one.circuits.keep_only(())
    one.circuits.failed(connection.provider, "it failed")
    circuit = one.circuits.circuit(connection.provider)
    assert (circuit.failures, circuit.is_open) == (1, False)
