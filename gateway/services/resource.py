"""The base of services that keep records: find, list, create, change and remove them, with versions and audit events.

A subclass names its noun and repository, and supplies two checks: `_made` returns a new record, `_changed` a changed
one. The transaction that writes a record also appends its audit event. A change that changes nothing writes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from gateway.domain.keys import KEEP_AT, KEEP_TEXT, KeyRecord
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Principal
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.schema import check
from gateway.services.core import Service
from gateway.spelling import hint
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import LAST_AT

_NEVER_CHANGED = frozenset(("id", "version"))


class Kept(Protocol):
    """A record that has an id. Records that can be changed have a version as well."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Kept)
T = TypeVar("T")


class Resource(Service, Generic[R]):
    """The records of one noun. The edges check who may manage them.

    noun, nouns: for messages. resource_type: in the audit log, by default the noun. repository: the attribute of
    `Store` that has them, by default the nouns. most: the limit of their number, 0 for none. audited: the fields in
    audit events. name_field: of a unique name, empty for none. is_found_by_name: whether a name finds a record as an id
    does.
    """

    noun: ClassVar[str] = ""
    nouns: ClassVar[str] = ""
    resource_type: ClassVar[str] = ""
    repository: ClassVar[str] = ""
    most: ClassVar[int] = 0
    audited: ClassVar[tuple[str, ...]] = ()
    name_field: ClassVar[str] = ""
    is_found_by_name: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.resource_type = cls.resource_type or cls.noun.replace(" ", "_")
        cls.repository = cls.repository or cls.nouns.replace(" ", "_")

    @property
    def _repository(self) -> Any:
        return getattr(self.store, self.repository)

    def _lookup(self, tx: Transaction, name: str) -> R | None:
        """Return the record of an id, or of another unique name."""
        find = self._repository.find if self.is_found_by_name else self._repository.by_id
        return cast("R | None", find(tx, name))

    def _namesake(self, tx: Transaction, record: R) -> R | None:
        """Return the record that has the name of `record`, where names are unique."""
        return self._repository.find(tx, getattr(record, self.name_field)) if self.name_field else None

    def _made(self, tx: AuthorityTransaction, new: Any) -> R:
        """Return the record that `new` describes, checked."""
        raise NotImplementedError

    def _changed(self, tx: AuthorityTransaction, before: R, changes: Any) -> R:
        """Return `before` with `changes`, checked."""
        raise NotImplementedError

    def _result(self, tx: Transaction, record: R) -> Any:
        """Return what `create` and `change` answer: the record, or the noun's view of it."""
        return record

    def _check_removal(self, tx: AuthorityTransaction, record: R) -> None:
        """Raise Conflict if something else needs the record."""

    def _shown(self, record: R) -> dict[str, object]:
        """Return the fields of a record that go into audit events."""
        return {name: getattr(record, name) for name in self.audited}

    async def list(self) -> tuple[R, ...]:
        """Return all records, oldest first."""
        return cast("tuple[R, ...]", await self.store.db.read(self._repository.all))

    async def page(self, wanted: Any) -> Page[Any]:
        """Return a part of the records, newest first. wanted: a `PageQuery`. Raises InvalidRequest for a bad one."""
        return await self.store.db.read(lambda tx: self._repository.page(tx, wanted))

    async def show(self, name: str) -> R:
        """Return one record. Raises NotFound."""
        return await self.store.db.read(lambda tx: self.find(tx, name))

    async def create(self, caller: Caller, new: Any) -> Any:
        """Create a record.

        Raises:
            InvalidRequest: a field; `param` names it. Conflict: another record forbids it, or there are too many.
            AuditUnavailable: nothing was created.
        """
        check(new)
        return await self.audit.commit_authority(
            caller, lambda tx: self._result(tx, self._insert(tx, self._made(tx, new)))
        )

    async def change(self, caller: Caller, name: str, changes: Any) -> Any:
        """Change a record. The change holds for every process at its next request.

        Raises:
            InvalidRequest: a field; `param` names it. NotFound: there is no such record.
            Conflict: the record has another version, or another record forbids the change.
            AuditUnavailable: nothing was changed.
        """
        check(changes)

        def work(tx: AuthorityTransaction) -> Any:
            change = partial(self._changed, tx, changes=changes)
            return self._result(tx, self._update(tx, name, changes.version, change))

        return await self.audit.commit_authority(caller, work)

    async def remove(self, caller: Caller, name: str) -> Any:
        """Remove a record and return it as it was.

        Raises:
            NotFound: there is none. Conflict: something needs it. AuditUnavailable: it is still there.
        """
        return await self.audit.commit_authority(caller, lambda tx: self._delete(tx, name))

    def find(self, tx: Transaction, name: str) -> R:
        """Return one record in a transaction. Raises NotFound."""
        record = self._lookup(tx, name)
        if record is None:
            named = self._repository.all(tx) if self.is_found_by_name else ()
            near = hint(name, (getattr(one, self.name_field) for one in named))
            raise NotFound(f"There is no such {self.noun}.{near}")
        return record

    def _insert(self, tx: AuthorityTransaction, record: R, *, action: str = "created") -> R:
        self._check_name(tx, record)
        if self.most and self._repository.count(tx) >= self.most:
            raise Conflict(f"There are {self.most} {self.nouns}; remove some first.")
        self._repository.insert(tx, record)
        self._append(tx, action, record.id, after=self._shown(record))
        return record

    def _update(
        self, tx: AuthorityTransaction, name: str, version: int | None, change: Callable[[R], R], action: str = ""
    ) -> R:
        """Find a record, compare its version, and write what `change` makes of it unless it is the same."""
        before: Any = self.find(tx, name)
        check_version(version, before.version, self.noun)
        after = change(before)
        if after == before:
            return after
        self._check_name(tx, after)
        details = self._write(tx, before, after)
        shown = {"before": self._shown(before), "after": self._shown(after)}
        action = action or self._action(before, after)
        self._append(tx, action, before.id, details=details, **shown)
        return self.find(tx, after.id)

    def _action(self, before: R, after: R) -> str:
        """Return what a change did, for the name of its audit event."""
        return "changed"

    def _write(self, tx: Any, before: R, after: R) -> Mapping[str, object] | None:
        """Write a change and return the details of its audit event."""
        self._repository.change(tx, after)
        return None

    def _delete(self, tx: AuthorityTransaction, name: str) -> R:
        record = self.find(tx, name)
        self._check_removal(tx, record)
        self._repository.remove(tx, record.id)
        self._append(tx, "removed", record.id, before=self._shown(record))
        return record

    def _born(self, prefix: str, principal: Principal) -> dict[str, Any]:
        """Return the fields of a new record that name it, and say who made it and when. prefix: of its id."""
        return {"id": self.ids.new(prefix), "created_at": self.clock.now_at(), "created_by": principal.name}

    def _append(self, tx: AuthorityTransaction, action: str, id: str, **what: Any) -> None:
        kind = self.resource_type
        self.audit.append_change(tx, f"{kind}_{action}", tx.caller, kind, id, **what)

    def _check_name(self, tx: Transaction, record: R) -> None:
        other = self._namesake(tx, record)
        if other is not None and other.id != record.id:
            raise Conflict(f"There is already a {self.noun} of this name.", param=self.name_field)


def patched(record: T, changes: object, **others: object) -> T:
    """Return `record` with the fields of `changes` that it has too. None, KEEP_AT and KEEP_TEXT leave a field as it is.

    others: fields that the caller has computed.
    """
    own = {one.name for one in fields(cast(Any, record))} - _NEVER_CHANGED
    given = {one.name: getattr(changes, one.name) for one in fields(cast(Any, changes)) if one.name in own}
    kept = {name: value for name, value in given.items() if value is not None and value not in (KEEP_AT, KEEP_TEXT)}
    return cast(T, replace(cast(Any, record), **(kept | others)))


def check_version(wanted: int | None, have: int, noun: str) -> None:
    """Raise Conflict if the record has another version than the caller wants. wanted: None for any version."""
    if wanted is not None and wanted != have:
        raise Conflict(f"The {noun} was changed meanwhile: it has version {have}.", param="version")


def check_future(at: int | None, now_at: int, *, param: str = "expires_at", days: int | None = None) -> None:
    """Raise InvalidRequest for a time that is past, or more than `days` ahead. at: None means never."""
    latest = LAST_AT if days is None else now_at + days * 86_400_000
    if at is not None and not now_at < at <= latest:
        limit = "before the year 10000" if days is None else f"at most {days} days from now"
        raise InvalidRequest(f"{param} must be in the future, {limit}.", param=param)


@contextmanager
def as_conflict(of_record: bool = True) -> Iterator[None]:
    """Raise Conflict in place of InvalidRequest, if what the record already holds is at fault and not the caller."""
    try:
        yield
    except InvalidRequest as error:
        if not of_record:
            raise
        raise Conflict(error.message, param=error.param) from None


def find_key(store: Store, tx: Transaction, id_or_prefix: str, *, param: str) -> KeyRecord:
    """Return the API key of an id or a prefix. Raises Conflict, which names `param`, unless there is exactly one."""
    one = store.keys.by_id(tx, id_or_prefix)
    found = (one,) if one is not None else store.keys.by_prefix(tx, id_or_prefix)
    if len(found) != 1:
        reason = "names several keys; use the id" if found else "must be the id or the prefix of one API key"
        raise Conflict(f"{param} {reason}.", param=param)
    return found[0]
