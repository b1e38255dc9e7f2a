"""The first credentials: an admin and a key with every scope, made once, when nobody could manage it otherwise."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from gateway.auth import keyhash, passwords
from gateway.clock import Clock, Ids
from gateway.domain import keys as key_records
from gateway.domain import users
from gateway.domain.principals import RequestContext, Role, Scope, local
from gateway.services.audit import Audit
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

if TYPE_CHECKING:
    from gateway.services.keys import Keys

USERNAME = "admin"
SALT_BYTES = 16


@dataclass(frozen=True, slots=True, repr=False)
class FirstCredentials:
    """What is shown once and stored nowhere. Without a repr, so that no log line can hold it."""

    username: str
    password: str
    api_key: str


class FirstStart:
    """Makes the first credentials. keys: returns the service, which most starts do without."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, keys: Callable[[], "Keys"]) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._keys = keys

    async def make(self) -> FirstCredentials | None:
        """Make an admin and a key with every scope, or return None when there is an admin already.

        A user without that role, made on the command line before the first start, does not count: nobody could give
        anybody a role. The admin is made last: a start that is cut off before makes both again; no password is lost.

        Raises:
            AuditUnavailable: nothing more was made.
        """
        if await self._store.db.read(lambda tx: self._store.users.count_active(tx, Role.ADMIN)):
            return None
        who = local("first-start")
        context = RequestContext(request_id=self._ids.new("req"))
        created = await self._keys().create(who, key_records.NewKey(name="first key", scopes=tuple(Scope)), context)
        password = passwords.make_password(self._ids.random_bytes(keyhash.KEY_RANDOM_BYTES))
        user = users.User(
            id=self._ids.new("usr"),
            username=await self._store.db.read(self._free_name),
            password_hash=passwords.hash_random_password(password, self._ids.random_bytes(SALT_BYTES)),
            role=Role.ADMIN,
            created_at=self._clock.now_at(),
            disabled_at=None,
        )
        event = self._audit.event(
            "user_created",
            source=who.id,
            principal=who,
            request=context,
            resource_type="user",
            resource_id=user.id,
            after={"username": user.username, "role": user.role.value},
        )

        def work(tx: AuthorityTransaction) -> None:
            self._store.users.insert(tx, user)
            self._audit.append(tx, event)

        await self._audit.commit_authority(work)
        return FirstCredentials(user.username, password, created.key)

    def _free_name(self, tx: Transaction) -> str:
        names = chain((USERNAME,), (f"{USERNAME}-{number}" for number in count(2)))
        return next(name for name in names if self._store.users.by_name(tx, name) is None)
