"""What an earlier version noted in redo files before it was killed is in the database after the next start, once."""

import json
import os
import zlib
from pathlib import Path

from gateway.domain.audit import AuditFilter
from gateway.services.audit import Audit

from .conftest import Place


def line(instance_id: str, number: int) -> bytes:
    """Return a chat as version 0.1.0 noted it."""
    event = [
        *(f"evt_{number}", 1_700_000_000_000 + number, "api", "chat_completed", "success", None, "ci", "key", "key_1"),
        *("svc_12345678", "127.0.0.1", "curl", "chat", None, f"req_{number}", instance_id, None, None, '{"score":0}'),
    ]
    row = [
        *(f"trf_{number}", 1_700_000_000_000 + number, f"req_{number}", "chat.completions", "key_1", "ALLOW", 0),
        *("svc_12345678", "bot", "echo", "echo", None, "none", 200, "[]", "00", 5, 1, 1, 0, 7, 8, instance_id),
        "production",
    ]
    rest = f"trf_{number} {json.dumps([3034567042, event, row])}".encode()
    return b"%08x %b\n" % (zlib.crc32(rest), rest)


async def look(place: Place) -> tuple[list[str], list[str], bool]:
    """Open the database once. Return the ids of events and rows, and whether the chain holds."""
    store = await place.open()
    page = await store.db.read(lambda tx: store.audit.page(tx, AuditFilter()))
    rows = await store.db.read(lambda tx: tx.query("SELECT id FROM traffic ORDER BY position"))
    audit = Audit(store=store, clock=place.clock, ids=place.ids)
    is_whole = (await audit.verify()).ok
    await store.aclose()
    return [event.id for event in page.items], [row["id"] for row in rows], is_whole


async def instance_of(place: Place) -> str:
    store = await place.open()
    await store.aclose()
    return store.instance_id


def left_behind(place: Place, number: int, raw: bytes) -> Path:
    path = Path(f"{place.path}.redo-{number}")
    path.write_bytes(raw)
    return path


async def test_chats_of_an_old_redo_file_are_committed_once_and_the_chain_holds(place: Place) -> None:
    instance_id = await instance_of(place)
    noted = line(instance_id, 1) + line(instance_id, 2)
    cut = line(instance_id, 3)[:-9]  # by the kill: nobody was answered
    for raw in (noted + cut, noted):  # the second time as if a kill came between the commit and the removal
        left = left_behind(place, 0, raw)
        assert await look(place) == (["evt_2", "evt_1"], ["trf_1", "trf_2"], True)
        assert left.name not in os.listdir(left.parent)


async def test_an_old_redo_file_that_cannot_be_read_is_kept_and_told(place: Place) -> None:
    instance_id = await instance_of(place)
    damaged = line(instance_id, 2).replace(b"echo", b"ecco")
    left = left_behind(place, 7, line(instance_id, 1) + damaged + line("ins_other", 3))

    assert await look(place) == (["evt_1"], ["trf_1"], True)
    names = os.listdir(left.parent)
    assert left.name + ".unread" in names and left.name not in names
    assert "redo_file_damaged" in place.stream.getvalue()
