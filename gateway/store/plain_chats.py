"""Chats of which nothing but an event and a row of traffic is to be written: noted in the redo log, and done again.

Of each the log has the values of both, as texts, integers and None. The event's place in its chain is found when it is
committed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from zlib import crc32

from gateway.domain.audit import AuditEvent
from gateway.domain.traffic import TrafficRow
from gateway.records import record
from gateway.store.audit import AuditRepository, WrittenEvent, event_of, has_event, kept_fields, written_event
from gateway.store.database import Database, Transaction
from gateway.store.traffic import ROWS, TrafficRepository
from gateway.wire import json_text

_KINDS = {one.name: int if "int" in str(one.type) else str for one in (*fields(TrafficRow), *fields(AuditEvent))}
_OF_EVENT, _OF_ROW = kept_fields(), ROWS.columns
_SHAPE = crc32(",".join((*_OF_EVENT, *_OF_ROW)).encode())
"""Of a record: another version of the program may write another one."""


@record
class PlainChat:
    """The event and the row of one chat. values: of the row, in the order of `ROWS`; the first one names the chat."""

    event: WrittenEvent
    values: Sequence[object]


class PlainChats:
    """What `Database.note` takes of plain chats, and `Database.redo` asks for. instance_id: whose database this is."""

    def __init__(
        self, db: Database, audit: AuditRepository, traffic: TrafficRepository, instance_id: Callable[[], str]
    ) -> None:
        self._db = db
        self._audit = audit
        self._traffic = traffic
        self._instance_id = instance_id

    def chat(self, event: AuditEvent, row: TrafficRow) -> PlainChat:
        """Return a chat as it is written."""
        return PlainChat(written_event(event), self._traffic.values(row))

    def append(self, chat: PlainChat, tx: Transaction) -> None:
        """Write a chat in `tx`."""
        self._audit.append(tx, chat.event)
        tx.add(ROWS, chat.values)

    def note(self, chat: PlainChat, *, chats: int) -> bool:
        """Note a chat and tell so; false when it has to be committed. chats: under way. See `Database.note`."""
        return self._db.may_note(chats) and self._db.note(partial(self.append, chat), *self.record(chat))

    def record(self, chat: PlainChat) -> tuple[str, str]:
        """Return the name and the record of a chat. See `Database.write`."""
        return str(chat.values[0]), json_text((_SHAPE, chat.event.values, chat.values))

    def is_done(self, tx: Transaction, name: str) -> bool:
        """Tell whether the database has the chat with this traffic row. See `Redo.is_done`."""
        return self._traffic.has(tx, name)

    def do(self, tx: Transaction, name: str, record: str) -> None:
        """Write a chat from its record, unless its row is gone by now and its event is there. See `Redo.do`."""
        try:
            shape, of_event, values = json.loads(record)
            if shape != _SHAPE or not _fits(of_event, _OF_EVENT) or not _fits(values, _OF_ROW):
                raise ValueError("the record is no chat, or another version's")
            event = event_of(of_event)
        except (TypeError, RecursionError) as error:
            raise ValueError("the record is no chat") from error
        if event.instance_id != self._instance_id() or values[0] != name:
            raise ValueError("the record is of another database, or of another name")
        if not has_event(tx, event):
            self._audit.append(tx, event)
            tx.add(ROWS, values)


def _fits(values: object, names: Sequence[str]) -> bool:
    """Tell whether these are values for these columns."""
    if type(values) is not list or len(values) != len(names):
        return False
    return all(value is None or type(value) is _KINDS[name] for value, name in zip(values, names, strict=True))
