"""Commit the chats that a killed earlier version left in ``gateway.db.redo-NUMBER`` files.

That version wrote some chats to a file of its process before it answered them, and committed them a moment later. A
line holds the CRC-32 of the rest in hex, the id of the traffic row, and a JSON array of three: a version number, the
values of the audit event, and those of the traffic row. Nothing writes these files any more.
"""

import glob
import json
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

from gateway.domain.audit import AuditEvent
from gateway.domain.traffic import TrafficRow
from gateway.log import Log
from gateway.store.audit import AuditRepository
from gateway.store.database import Database, Transaction
from gateway.store.filelock import LockedFile
from gateway.store.traffic import TrafficRepository

_MOST_BYTES = 4 * 1024 * 1024  # twice what such a file could hold
_NAME = re.compile(r"\.redo-[0-9]{1,4}$")
_EVENT = (
    *("id", "occurred_at", "source", "action", "outcome", "reason", "actor", "actor_type", "actor_id", "key_prefix"),
    *("ip", "user_agent", "resource_type", "resource_id", "request_id", "instance_id", "before", "after", "details"),
)
_ROW = (
    *("id", "occurred_at", "request_id", "operation", "principal_id", "verdict", "score", "key_prefix", "agent"),
    *("model", "provider", "direction", "action", "status", "detections", "text_sha256", "text_chars"),
    *("prompt_tokens", "reply_tokens", "cost_microusd", "elapsed_us", "overhead_us", "instance_id", "origin"),
)


async def commit_old_redo(
    db: Database, audit: AuditRepository, traffic: TrafficRepository, *, instance_id: str, path: str, log: Log
) -> None:
    """Commit the chats of every redo file beside the database at `path`, then remove the file.

    A file that a running process has locked stays. A file with an unreadable line is kept as ``….unread``.

    Raises:
        StoreUnavailable: nothing of a file was committed; the next start tries again. OSError: a file cannot be read.
    """

    def work(tx: Transaction) -> int:
        missing = [(event, row) for event, row in chats if traffic.find(tx, row.id) is None]
        for event, row in missing:
            audit.append(tx, event)
            traffic.insert(tx, row)
        return len(missing)

    for found in sorted(glob.glob(glob.escape(path) + ".redo-*")):
        if not _NAME.search(found):
            continue
        file = LockedFile(found)
        try:
            if not file.acquire(blocking=False):
                continue
            chats, unread = _read(os.pread(file.descriptor, _MOST_BYTES, 0), instance_id)
            if chats:
                log.info("redo_file_committed", file=found, chats=len(chats), were_missing=await db.write(work))
            if unread:
                os.rename(found, found + ".unread")
                log.error("redo_file_damaged", file=found + ".unread", lines=unread)
            else:
                os.unlink(found)
        finally:
            file.close()


def _read(raw: bytes, instance_id: str) -> tuple[tuple[tuple[AuditEvent, TrafficRow], ...], int]:
    """Return the chats of a file, and how many lines cannot be read. A last line without its end was never answered."""
    chats: dict[str, tuple[AuditEvent, TrafficRow]] = {}
    unread = 0
    for line in raw.split(b"\n")[:-1]:
        checksum, _, rest = line.partition(b" ")
        try:
            if checksum != b"%08x" % zlib.crc32(rest):
                raise ValueError
            _, of_event, of_row = json.loads(rest.partition(b" ")[2])
            event = AuditEvent(**_objects(_EVENT, of_event, ("before", "after", "details")))
            row = TrafficRow(**_objects(_ROW, of_row, ("detections",)))
            if event.instance_id != instance_id:
                raise ValueError
            chats.setdefault(row.id, (event, row))
        except (ValueError, TypeError, RecursionError):
            unread += 1
    return tuple(chats.values()), unread


def _objects(names: Sequence[str], values: Sequence[Any], objects: Sequence[str]) -> dict[str, Any]:
    fields = dict(zip(names, values, strict=True))
    return fields | {name: json.loads(fields[name]) for name in objects if fields[name] is not None}
