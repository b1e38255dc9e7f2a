"""The access list kept: made, changed, removed, listed, audited. A change that locks out its maker needs `force`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from gateway.clock import Clock, Ids
from gateway.domain.access_list import (
    GLOBAL,
    MAX_ENTRIES,
    MAX_REASON_CHARS,
    MAX_VALUE_CHARS,
    AccessEntry,
    EntryFilter,
    EntryType,
    ListName,
    read_value,
    same,
    without,
)
from gateway.domain.keys import KEEP_AT, KeyRecord
from gateway.domain.lock_out import shut_out
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import Expiry, is_line, line
from gateway.schema import Bounds
from gateway.services.audit import Audit
from gateway.services.audit_trail import AuditTrail, check_version
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import LAST_AT

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
    """What is said of an entry to be made. Checked by `AccessList`. force: even if it locks somebody out."""

    list_name: ListName = field(metadata={"json_name": "list"})
    entry_type: EntryType = field(metadata={"json_name": "type"})
    value: _Value
    scope: _Scope = GLOBAL
    reason: _Reason | None = None
    expires_at: Expiry | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChange:
    """What is to change of an entry; None leaves a field as it is. version: refused unless the entry still has it."""

    list_name: ListName | None = field(default=None, metadata={"json_name": "list"})
    value: Annotated[str, line(MAX_VALUE_CHARS), "In the form of the entry's type."] | None = None
    scope: _Scope | None = None
    reason: _Reason | None = None
    expires_at: Expiry | None = KEEP_AT
    force: bool = False
    version: int | None = None


class AccessList:
    """The entries of this gateway. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._trail = AuditTrail(audit, "access_entry")

    async def page(self, wanted: EntryFilter) -> Page[AccessEntry]:
        """Return a part of the entries, newest first, expired ones included.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        return await self._store.db.read(lambda tx: self._store.access_list.page(tx, wanted))

    async def show(self, entry_id: str) -> AccessEntry:
        """Return one entry.

        Raises:
            NotFound: there is none.
        """
        return await self._store.db.read(lambda tx: self._find(tx, entry_id))

    async def create(self, principal: Principal, wanted: WantedEntry, context: RequestContext) -> AccessEntry:
        """Make an entry. It holds for every process at its next request.

        Raises:
            InvalidRequest: a field; `param` says which.
            Conflict: there is such an entry, no such key, too many, or it locks somebody out and `force` is not set.
            AuditUnavailable: the entry was not made.
        """
        now_at = self._clock.now_at()
        reason = _checked_reason(wanted.reason)
        expires_at = _checked_expiry(wanted.expires_at, now_at)
        # What is wrong by itself is told before what is not there.
        read_value(wanted.entry_type, wanted.value)
        _check_scope(wanted.entry_type, wanted.scope)

        def work(tx: AuthorityTransaction) -> AccessEntry:
            entry = AccessEntry(
                id=self._ids.new("acl"),
                list_name=wanted.list_name,
                entry_type=wanted.entry_type,
                value=self._read_value(tx, wanted.entry_type, wanted.value),
                scope=self._read_scope(tx, wanted.entry_type, wanted.scope),
                reason=reason,
                created_at=now_at,
                created_by=principal.name,
                expires_at=expires_at,
            )
            others = self._store.access_list.all(tx)
            if len(others) >= MAX_ENTRIES:
                raise Conflict(f"The access list has {MAX_ENTRIES} entries; remove some first.")
            _check_unique(entry, others, now_at)
            if not wanted.force:
                self._check_lock_out(tx, principal, context, others, [*others, entry])
            self._store.access_list.insert(tx, entry)
            self._trail.note(tx, "access_entry_created", principal, context, id=entry.id, after=_shown(entry))
            return entry

        return await self._audit.commit_authority(work)

    async def change(
        self, principal: Principal, entry_id: str, wanted: WantedChange, context: RequestContext
    ) -> AccessEntry:
        """Change an entry; what holds already is left alone.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none.
            Conflict: another version, what its type cannot have, such an entry, no such key, or it
                locks somebody out and `force` is not set.
            AuditUnavailable: nothing was changed.
        """
        now_at = self._clock.now_at()
        keeps_expiry = wanted.expires_at == KEEP_AT
        expires_at = None if keeps_expiry else _checked_expiry(wanted.expires_at, now_at)
        reason = _checked_reason(wanted.reason)

        def work(tx: AuthorityTransaction) -> AccessEntry:
            before = self._find(tx, entry_id)
            check_version(wanted.version, before.version, "entry")
            value, scope = self._read_change(tx, before, wanted)
            after = replace(
                before,
                list_name=wanted.list_name or before.list_name,
                value=value,
                scope=scope,
                reason=before.reason if wanted.reason is None else reason,
                expires_at=before.expires_at if keeps_expiry else expires_at,
            )
            if after == before:
                return before
            entries = self._store.access_list.all(tx)
            others = without(entries, before.id)
            _check_unique(after, others, now_at)
            if not wanted.force:
                self._check_lock_out(tx, principal, context, entries, [*others, after])
            self._store.access_list.change(tx, after)
            shown = {"before": _shown(before), "after": _shown(after)}
            self._trail.note(tx, "access_entry_changed", principal, context, id=before.id, **shown)
            return self._find(tx, before.id)

        return await self._audit.commit_authority(work)

    async def remove(
        self, principal: Principal, entry_id: str, context: RequestContext, *, force: bool = False
    ) -> AccessEntry:
        """Remove an entry and return what it was.

        Raises:
            NotFound: there is none. Conflict: it locks somebody out and `force` is not set.
            AuditUnavailable: it was not removed.
        """

        def work(tx: AuthorityTransaction) -> AccessEntry:
            entry = self._find(tx, entry_id)
            entries = self._store.access_list.all(tx)
            if not force:
                self._check_lock_out(tx, principal, context, entries, without(entries, entry.id))
            self._store.access_list.remove(tx, entry.id)
            self._trail.note(tx, "access_entry_removed", principal, context, id=entry.id, before=_shown(entry))
            return entry

        return await self._audit.commit_authority(work)

    async def find(self, list_name: ListName, entry_type: EntryType, value: str) -> AccessEntry:
        """Return the entry for everybody that says this, an unexpired one first.

        Raises:
            InvalidRequest: the value. NotFound: there is none. Conflict: it is for a key that is not there.
        """
        now_at = self._clock.now_at()

        def work(tx: Transaction) -> AccessEntry:
            read = self._read_value(tx, entry_type, value)
            wanted = (list_name, entry_type, read, GLOBAL)
            found = [
                one
                for one in self._store.access_list.all(tx)
                if (one.list_name, one.entry_type, one.value, one.scope) == wanted
            ]
            if not found:
                raise NotFound("There is no such entry on the access list.")
            return max(found, key=lambda one: one.is_live(now_at))

        return await self._store.db.read(work)

    def _find(self, tx: Transaction, entry_id: str) -> AccessEntry:
        entry = self._store.access_list.by_id(tx, entry_id)
        if entry is None:
            raise NotFound("There is no such entry on the access list.")
        return entry

    def _check_lock_out(
        self,
        tx: Transaction,
        principal: Principal,
        context: RequestContext,
        before: Sequence[AccessEntry],
        after: Sequence[AccessEntry],
    ) -> None:
        """Refuse a change that shuts out its maker, the callers on this host, every key or every chat, now or later."""
        now_at = self._clock.now_at()
        refused = shut_out(
            before,
            after,
            ip=context.ip,
            key_id=principal.id if principal.kind == "key" else None,
            keys=[key.id for key in self._store.keys.all(tx) if key.status(now_at) == "active"],
            now_at=now_at,
        )
        if refused is not None:
            raise Conflict(f"{refused}. Set force to do it anyway.", param="force")

    def _read_value(self, tx: Transaction, entry_type: EntryType, text: str) -> str:
        value = read_value(entry_type, text)
        return self._key(tx, value, "value").id if entry_type is EntryType.KEY else value

    def _read_scope(self, tx: Transaction, entry_type: EntryType, text: str) -> str:
        _check_scope(entry_type, text)
        return GLOBAL if text == GLOBAL else self._key(tx, text, "scope").id

    def _read_change(self, tx: Transaction, before: AccessEntry, wanted: WantedChange) -> tuple[str, str]:
        """Return value and scope as they shall be. Which type the entry has, who changes it need not know: Conflict."""
        kind, value, scope = before.entry_type, before.value, before.scope
        try:
            if wanted.value is not None:
                value = self._read_value(tx, kind, wanted.value)
            if wanted.scope is not None:
                scope = self._read_scope(tx, kind, wanted.scope)
        except InvalidRequest as error:
            raise Conflict(error.message, param=error.param) from None
        return value, scope

    def _key(self, tx: Transaction, id_or_prefix: str, param: str) -> KeyRecord:
        if id_or_prefix.startswith("key_"):
            one = self._store.keys.by_id(tx, id_or_prefix)
            found: tuple[KeyRecord, ...] = (one,) if one else ()
        else:
            found = self._store.keys.by_prefix(tx, id_or_prefix)
        if len(found) != 1:
            reason = "names several keys; use the id" if found else "must be the id or the prefix of an API key"
            raise Conflict(f"{param} {reason}.", param=param)
        return found[0]


def _shown(entry: AccessEntry) -> dict[str, object]:
    """Return what the audit log keeps of an entry."""
    return {
        "list": entry.list_name,
        "type": entry.entry_type,
        "value": entry.value,
        "scope": entry.scope,
        "reason": entry.reason,
        "expires_at": entry.expires_at,
    }


def _check_unique(entry: AccessEntry, others: Sequence[AccessEntry], now_at: int) -> None:
    for other in others:
        if other.is_live(now_at) and same(entry, other):
            raise Conflict(f"The entry {other.id} says this already.", param="value")


def _check_scope(entry_type: EntryType, text: str) -> None:
    if entry_type is EntryType.KEY and text != GLOBAL:
        raise InvalidRequest("An entry of type KEY is about one key already: its scope is global.", param="scope")


def _checked_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    reason = reason.strip()
    if len(reason) > MAX_REASON_CHARS or not is_line(reason):
        raise InvalidRequest(f"reason must be at most {MAX_REASON_CHARS} printable characters.", param="reason")
    return reason or None


def _checked_expiry(expires_at: int | None, now_at: int) -> int | None:
    if expires_at is not None and not now_at < expires_at <= LAST_AT:
        raise InvalidRequest("expires_at must be in the future, before the year 10000.", param="expires_at")
    return expires_at
