"""Keep the entries of the access list. A change that locks somebody out is refused unless it is forced."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.domain.access_list import (
    GLOBAL,
    MAX_ENTRIES,
    MAX_REASON_CHARS,
    MAX_VALUE_CHARS,
    AccessEntry,
    EntryType,
    ListName,
    is_duplicate,
    read_value,
)
from gateway.domain.keys import KEEP_AT
from gateway.domain.lock_out import shut_out
from gateway.domain.principals import Caller
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import Expiry, line
from gateway.schema import Bounds
from gateway.services.resource import Resource, as_conflict, check_future, find_key, patched
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

_Value = Annotated[
    str,
    Bounds(1, MAX_VALUE_CHARS),
    "An address; a network without bits beyond its prefix; a key's id or prefix; a domain; a name with * and ? or not. "
    "Domains of other alphabets and networks of IPv6 at any bit are taken too.",
]
_Scope = Annotated[str, line(100), "`global`, or the id or the prefix of the one key it is for."]
_Reason = Annotated[str, line(MAX_REASON_CHARS, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEntry:
    """An entry to create. force: create it even if it locks somebody out."""

    list_name: ListName = field(metadata={"json_name": "list"})
    entry_type: EntryType = field(metadata={"json_name": "type"})
    value: _Value
    scope: _Scope = GLOBAL
    reason: _Reason | None = None
    expires_at: Expiry | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChange:
    """Changes of an entry; None leaves a field as it is. version: that of the entry, else the change is refused."""

    list_name: ListName | None = field(default=None, metadata={"json_name": "list"})
    value: Annotated[str, line(MAX_VALUE_CHARS), "In the form of the entry's type."] | None = None
    scope: _Scope | None = None
    reason: _Reason | None = None
    expires_at: Expiry | None = KEEP_AT
    force: bool = False
    version: int | None = None


class AccessList(Resource[AccessEntry]):
    """The entries of this gateway. A change that would lock out its maker needs `force`, or it is a Conflict.

    Conflict: also for a key that there is not, and for a value that the type of the entry cannot have.
    """

    noun, nouns = "entry on the access list", "entries on the access list"
    resource_type = "access_entry"
    repository = "access_list"
    most = MAX_ENTRIES
    audited = ("value", "scope", "reason", "expires_at")

    def _made(self, tx: AuthorityTransaction, new: WantedEntry) -> AccessEntry:
        check_future(new.expires_at, self.clock.now_at())
        wanted = self._read(tx, new.entry_type, new.value, new.scope)
        entry = AccessEntry(
            **self._born("acl", tx.caller.principal),
            list_name=new.list_name,
            entry_type=new.entry_type,
            value=wanted["value"],
            scope=wanted["scope"],
            reason=(new.reason or "").strip() or None,
            expires_at=new.expires_at,
        )
        self._check_change(tx, None, entry, force=new.force)
        return entry

    def _changed(self, tx: AuthorityTransaction, before: AccessEntry, changes: WantedChange) -> AccessEntry:
        if changes.expires_at != KEEP_AT:
            check_future(changes.expires_at, self.clock.now_at())
        with as_conflict():  # the type of the entry forbids it
            wanted = self._read(tx, before.entry_type, changes.value, changes.scope)
        reason = before.reason if changes.reason is None else changes.reason.strip() or None
        expires_at = before.expires_at if changes.expires_at == KEEP_AT else changes.expires_at
        after = patched(before, changes, **wanted, reason=reason, expires_at=expires_at)
        if after != before:
            self._check_change(tx, before, after, force=changes.force)
        return after

    async def remove(self, caller: Caller, name: str, *, force: bool = False) -> AccessEntry:
        """Remove an entry. Raises as `Resource.remove`, also Conflict if, without `force`, somebody is locked out."""

        def work(tx: AuthorityTransaction) -> AccessEntry:
            entry = self.find(tx, name)
            self._check_change(tx, entry, None, force=force)
            return self._delete(tx, entry.id)

        return await self.audit.commit_authority(caller, work)

    async def find_global(self, list_name: ListName, entry_type: EntryType, value: str) -> AccessEntry:
        """Return the entry of scope `global` with this list, type and value, an unexpired one first.

        Raises:
            InvalidRequest: the value. NotFound: there is none. Conflict: there is no such key.
        """
        now_at = self.clock.now_at()

        def work(tx: Transaction) -> AccessEntry:
            wanted = (list_name, entry_type, self._read(tx, entry_type, value, None)["value"], GLOBAL)
            entries = self.store.access_list.all(tx)
            found = [one for one in entries if (one.list_name, one.entry_type, one.value, one.scope) == wanted]
            if not found:
                raise NotFound("There is no such entry on the access list.")
            return max(found, key=lambda one: one.is_live(now_at))

        return await self.store.db.read(work)

    def _shown(self, record: AccessEntry) -> dict[str, object]:
        return {"list": record.list_name, "type": record.entry_type} | super()._shown(record)

    def _check_change(
        self, tx: AuthorityTransaction, before: AccessEntry | None, after: AccessEntry | None, *, force: bool
    ) -> None:
        """Refuse a duplicate, and unless forced, what locks out its maker, this host, every key or every chat.

        before, after: the entry that is changed; None for one that is created or removed.
        """
        now_at = self.clock.now_at()
        entries = self.store.access_list.all(tx)
        wanted = [one for one in entries if before is None or one.id != before.id]
        if after is not None:
            for other in wanted:
                if other.is_live(now_at) and is_duplicate(after, other):
                    raise Conflict(f"The entry {other.id} says this already.", param="value")
            wanted.append(after)
        if force:
            return
        refused = shut_out(
            entries,
            wanted,
            ip=tx.caller.context.ip,
            key_id=tx.caller.principal.id if tx.caller.principal.kind == "key" else None,
            keys=[key.id for key in self.store.keys.all(tx) if key.status_at(now_at) == "active"],
            now_at=now_at,
        )
        if refused is not None:
            raise Conflict(f"{refused}. Set force to do it anyway.", param="force")

    def _read(self, tx: Transaction, entry_type: EntryType, value: str | None, scope: str | None) -> dict[str, str]:
        """Return the canonical form of those of value and scope that are given, with keys by their ids.

        A text that is wrong by itself is refused before one that names no key.
        """
        found = {} if value is None else {"value": read_value(entry_type, value)}
        if entry_type is EntryType.KEY:
            if scope not in (None, GLOBAL):
                raise InvalidRequest(
                    "An entry of type KEY is about one key already: its scope is global.", param="scope"
                )
            found = {name: find_key(self.store, tx, text, param=name).id for name, text in found.items()}
        if scope is not None:
            found["scope"] = scope if scope == GLOBAL else find_key(self.store, tx, scope, param="scope").id
        return found
