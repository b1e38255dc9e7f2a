"""Audit events: complete, acknowledged after the disk, and every change of the past found."""

import io
import os
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock, Ids
from gateway.domain.audit import AuditFilter, ChainReport
from gateway.domain.principals import RequestContext, Scope, local
from gateway.errors import AuditUnavailable
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.store.store import Store, open_store


class House:
    """A store in a folder, and the audit over it; opened and closed as often as a test likes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stream = io.StringIO()

    async def open(self) -> Audit:
        clock = Clock()
        ids = Ids(clock)
        self.store: Store = await open_store(self.path, clock=clock, ids=ids, log=Log(self.stream, clock))
        return Audit(store=self.store, clock=clock, ids=ids)

    async def filled(self, count: int) -> Audit:
        audit = await self.open()
        events = [audit.event("tested", source="test", details={"number": number}) for number in range(1, count + 1)]
        await audit.commit(lambda tx: [audit.append(tx, event) for event in events])
        return audit

    def tamper(self, sql: str) -> None:
        """Change the closed database as somebody with the file in hand would."""
        connection = sqlite3.connect(self.path)
        connection.execute(sql)
        connection.commit()
        connection.close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    one = House(str(tmp_path / "gateway.db"))
    yield one
    await one.store.aclose()


@contextmanager
def full_disk(path: str) -> Iterator[None]:
    """Let no file of this process grow beyond what the WAL has now, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(os.stat(path + "-wal").st_size, 1), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_an_event_says_who_what_and_from_where(house: House) -> None:
    audit = await house.open()
    context = RequestContext(request_id="req_1", ip="192.0.2.1", user_agent="curl/8")
    event = audit.event("tested", source="api", principal=local("cli"), request=context, resource_id="x", reason="why")
    recorded = await audit.record(event)
    assert (recorded.actor, recorded.actor_type, recorded.actor_id) == ("cli", "local", "cli")
    assert (recorded.request_id, recorded.ip, recorded.user_agent) == ("req_1", "192.0.2.1", "curl/8")
    assert (recorded.seq, recorded.outcome, recorded.instance_id) == (1, "success", house.store.instance_id)
    page = await audit.page(AuditFilter(actor="cli"))
    assert page.items == (recorded,)


async def test_the_gateway_is_the_actor_of_what_nobody_asked_for(house: House) -> None:
    audit = await house.open()
    event = audit.event("gateway_started", source="gateway")
    assert (event.actor, event.actor_type, event.actor_id) == ("gateway", "system", None)


async def test_what_no_database_holds_is_replaced_and_what_is_long_is_cut(house: House) -> None:
    class Colour(StrEnum):
        RED = "red"

    audit = await house.open()
    context = RequestContext(request_id="req_1", user_agent="\ud800\0" + "x" * 10_000)
    details = {"a\ud800": ("\udfff\0", Colour.RED, {"deep": frozenset({Scope.AUDIT_READ})}), "n": [1, 2.5, None, True]}
    recorded = await audit.record(audit.event("tested", source="test", request=context, details=details))
    assert recorded.user_agent is not None
    assert len(recorded.user_agent) == 500
    assert recorded.user_agent.startswith("?\ufffd")
    assert recorded.details == {"a?": ["?\ufffd", "red", {"deep": ["audit:read"]}], "n": [1, 2.5, None, True]}
    assert (await audit.page(AuditFilter())).items == (recorded,)
    assert (await audit.verify()).ok


@pytest.mark.parametrize("text", ["plain ", "é\u2028", "\ud800", "\0"])
async def test_long_details_are_hashed_as_they_are_kept(house: House, text: str) -> None:
    audit = await house.open()
    details = {"many": [{"rule": f"{text}{number}", "score": number / 2} for number in range(100)], "none": None}
    event = audit.event("tested", source="test", details=details)
    assert (await audit.record(event)).details == event.details
    assert (await audit.page(AuditFilter())).items[0].details == event.details
    assert (await audit.verify()).ok


async def test_what_is_no_json_value_is_refused_before_anything_is_written(house: House) -> None:
    audit = await house.open()
    with pytest.raises(TypeError):
        audit.event("tested", source="test", details={"bad": object()})


async def test_an_untouched_chain_is_whole(house: House) -> None:
    audit = await house.filled(1203)
    assert await audit.verify() == ChainReport(ok=True, events=1203)


async def test_an_empty_chain_is_whole(house: House) -> None:
    assert await (await house.open()).verify() == ChainReport(ok=True, events=0)


@pytest.mark.parametrize(
    ("sql", "broken_seq"),
    [
        ("UPDATE audit_events SET actor = 'somebody else' WHERE seq = 700", 700),
        ("UPDATE audit_events SET details = '{\"number\":0}' WHERE seq = 1", 1),
        ("UPDATE audit_events SET details = 'not json' WHERE seq = 3", 3),
        ("UPDATE audit_events SET occurred_at = occurred_at + 1 WHERE seq = 1200", 1200),
        ("UPDATE audit_events SET seq = 9999 WHERE seq = 600", 600),
        ("DELETE FROM audit_events WHERE seq = 501", 501),
        ("DELETE FROM audit_events WHERE seq > 400 AND seq < 800", 401),
        ("DELETE FROM audit_events WHERE seq = 1", 1),
        ("DELETE FROM audit_events WHERE seq > 1100", 1101),
        ("DELETE FROM audit_events", 1),
        ("UPDATE audit_heads SET seq = 1100", 1204),
    ],
)
@pytest.mark.sqlite
async def test_a_change_of_the_past_is_found_where_it_is(house: House, sql: str, broken_seq: int) -> None:
    await house.filled(1203)
    await house.store.aclose()
    house.tamper(sql)
    audit = await house.open()
    report = await audit.verify()
    assert (report.ok, report.first_broken_seq) == (False, broken_seq)
    assert report.reason


@pytest.mark.sqlite
async def test_an_end_that_was_cut_off_with_all_its_traces_in_the_database_is_found(house: House) -> None:
    await house.filled(20)
    await house.store.aclose()
    house.tamper("DELETE FROM audit_events WHERE seq > 15")
    house.tamper(
        "UPDATE audit_heads SET seq = 15, hash = (SELECT hash FROM audit_events WHERE seq = 15)",
    )
    audit = await house.open()
    assert "audit_chain_cut" in house.stream.getvalue()
    assert (await audit.verify()).first_broken_seq == 16
    # What is appended afterwards does not heal it, not even past the old end.
    for _ in range(10):
        await audit.record(audit.event("tested", source="test"))
    report = await audit.verify()
    assert (report.ok, report.first_broken_seq) == (False, 20)


@pytest.mark.sqlite
async def test_a_database_that_was_replaced_by_an_empty_one_is_found(house: House) -> None:
    await house.filled(5)
    await house.store.aclose()
    os.unlink(house.path)
    audit = await house.open()
    assert not (await audit.verify()).ok


async def test_a_missing_file_beside_the_database_is_made_again(house: House) -> None:
    await house.filled(5)
    await house.store.aclose()
    os.unlink(house.path + ".head")
    audit = await house.open()
    assert (await audit.verify()).ok
    noted = house.store.headfile.read(house.store.instance_id)
    assert noted is not None
    assert noted.seq == 5


async def test_the_chain_goes_on_after_reopening(house: House) -> None:
    await house.filled(5)
    await house.store.aclose()
    audit = await house.filled(5)
    assert await audit.verify() == ChainReport(ok=True, events=10)


@pytest.mark.sqlite
async def test_an_event_that_cannot_be_written_refuses_the_action(house: House) -> None:
    audit = await house.filled(5)
    big: dict[str, Any] = {"text": ["x" * 4000] * 100}
    with full_disk(house.path):
        with pytest.raises(AuditUnavailable) as refusal:
            await audit.record(audit.event("tested", source="test", details=big))
        assert refusal.value.retry_after_seconds
    recorded = await audit.record(audit.event("tested", source="test"))
    assert recorded.seq == 6
    assert (await audit.verify()).ok


async def test_after_closing_nothing_is_acknowledged(house: House) -> None:
    audit = await house.open()
    await house.store.aclose()
    with pytest.raises(AuditUnavailable):
        await audit.record(audit.event("tested", source="test"))
    audit.record_behind(audit.event("tested", source="test"))  # a refusal stands even if it cannot be recorded


async def test_an_event_recorded_behind_joins_the_chain(house: House) -> None:
    audit = await house.open()
    audit.record_behind(audit.event("tested", source="test"))
    recorded = await audit.record(audit.event("tested", source="test"))
    assert recorded.seq == 2
    assert await audit.verify() == ChainReport(ok=True, events=2)
