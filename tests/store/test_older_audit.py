"""The audit log of an older version: its chain still verifies, and goes on with events that say more."""

import contextlib
import io
import sqlite3
from pathlib import Path

import pytest
from gateway_site import Site

from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.log import Log
from gateway.settings import Settings

pytestmark = pytest.mark.sqlite

DUMP = Path(__file__).resolve().parents[1] / "fixtures" / "audit_of_version_20.sql"
EVENTS = 11


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data folder as version 20 of the schema left it, with events in both tables of the log."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(folder / "gateway.db")) as connection:
        connection.executescript(DUMP.read_text("utf-8"))
    return folder


async def test_the_chain_of_an_older_version_verifies_and_goes_on(data_dir: Path) -> None:
    config, log = Settings(data_dir=str(data_dir), rbac_enabled=False), Log(io.StringIO(), Clock())
    async with open_gateway(config, log=log) as gateway:
        before = await gateway.audit.verify()
        assert (before.ok, before.reason) == (True, None) and before.events >= EVENTS
        site = Site(gateway, io.StringIO())
        old = await site.get("/api/audit?search=helpdesk-bot&action=chat_blocked")
        assert old == [], "an older event does not say whose agent it was"
        answer = await site.chat(await site.key("chat:completions"), agent="helpdesk-bot")
        (event,) = await site.get(f"/api/audit?request_id={answer['headers']['x-service-request-id']}&source=chat")
        assert event["agent"] == "helpdesk-bot"
        (blocked,) = await site.get("/api/audit?action=chat_blocked")
        assert (blocked["agent"], blocked["direction"]) == (None, None)
        assert await site.get(f"/api/audit?request_id={blocked['request_id']}") == [blocked]
        (alert,) = await site.get(f"/api/alerts?request_id={blocked['request_id']}")
        assert alert["request_id"] == blocked["request_id"]
        after = await gateway.audit.verify()
        assert after.ok and after.events > before.events


async def test_a_change_of_an_older_event_is_found(data_dir: Path) -> None:
    with contextlib.closing(sqlite3.connect(data_dir / "gateway.db")) as connection, connection:
        connection.execute("UPDATE audit_events SET actor = 'somebody' WHERE seq = 6")
    config, log = Settings(data_dir=str(data_dir), rbac_enabled=False), Log(io.StringIO(), Clock())
    async with open_gateway(config, log=log) as gateway:
        report = await gateway.audit.verify()
        assert (report.ok, report.first_broken_seq) == (False, 6)
