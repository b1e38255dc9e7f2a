"""The people who may sign in: made, listed, changed. Nobody grants more than they hold; one admin always remains."""

from dataclasses import replace

from gateway.clock import Clock, Ids
from gateway.domain.principals import ROLE_PERMISSIONS, Principal, RequestContext, Role
from gateway.domain.users import ChangedUser, NewUser, User, check_new_password, check_username
from gateway.errors import Conflict, NotFound, PermissionDenied
from gateway.services.audit import Audit
from gateway.services.audit_trail import AuditTrail, check_version
from gateway.services.passwords import Passwords
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store


class Users:
    """The users of this gateway. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, passwords: Passwords) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._trail = AuditTrail(audit, "user")
        self._passwords = passwords

    async def create(self, principal: Principal, new: NewUser, context: RequestContext) -> User:
        """Make a user.

        Raises:
            InvalidRequest: the name or the password; `param` says which.
            Conflict: the name is taken, or it is the password as well.
            PermissionDenied: the role may do what `principal` may not. AuditUnavailable: the user was not made.
        """
        username = check_username(new.username)
        check_new_password(new.password, username=username)
        _check_grant(principal, new.role)
        user = User(
            id=self._ids.new("usr"),
            username=username,
            password_hash=await self._passwords.hash(new.password),
            role=new.role,
            created_at=self._clock.now_at(),
            disabled_at=None,
        )

        def work(tx: AuthorityTransaction) -> None:
            if self._store.users.by_name(tx, username) is not None:
                raise Conflict("There is a user of this name already.", param="username")
            self._store.users.insert(tx, user)
            self._trail.note(tx, "user_created", principal, context, id=user.id, after=_shown(user))

        await self._audit.commit_authority(work)
        return user

    async def list(self) -> tuple[User, ...]:
        """Return all users, oldest first."""
        return await self._store.db.read(self._store.users.all)

    async def show(self, id_or_name: str) -> User:
        """Return one user by id or name.

        Raises:
            NotFound: there is none.
        """
        return await self._store.db.read(lambda tx: self._find(tx, id_or_name))

    async def change(self, principal: Principal, id_or_name: str, wanted: ChangedUser, context: RequestContext) -> User:
        """Change role or password of a user, disable or enable; what holds already is left alone.

        A new password and being disabled end all sessions of the user.

        Raises:
            NotFound: there is none.
            Conflict: another version, nobody would be left who can manage users, or the password is the name.
            PermissionDenied: the user may, or would, do what `principal` may not.
            InvalidRequest: the password. AuditUnavailable: nothing was changed.
        """
        user = await self.show(id_or_name)
        password_hash = None
        if wanted.password is not None:
            check_new_password(wanted.password, username=user.username)
            _check_grant(principal, user.role)
            password_hash = await self._passwords.hash(wanted.password)
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> User:
            before = self._find(tx, user.id)
            check_version(wanted.version, before.version, "user")
            after = _changed(before, wanted, password_hash, now_at)
            if after == before:
                return before
            _check_grant(principal, before.role)
            _check_grant(principal, after.role)
            self._check_somebody_remains(tx, before, after)
            self._store.users.change(tx, after)
            ended = 0
            if after.disabled_at is not None or password_hash is not None:
                ended = self._store.sessions.end_of_user(tx, user.id)
            self._trail.note(
                tx,
                "user_changed",
                principal,
                context,
                id=before.id,
                before=_shown(before),
                after=_shown(after),
                details={"password_changed": password_hash is not None, "sessions_ended": ended},
            )
            return self._find(tx, user.id)

        return await self._audit.commit_authority(work)

    def _find(self, tx: Transaction, id_or_name: str) -> User:
        # An id and a name can have the same form; the id wins.
        user = self._store.users.by_id(tx, id_or_name) or self._store.users.by_name(tx, id_or_name)
        if user is None:
            raise NotFound("There is no such user.")
        return user

    def _check_somebody_remains(self, tx: Transaction, before: User, after: User) -> None:
        was_admin = before.role is Role.ADMIN and before.disabled_at is None
        is_admin = after.role is Role.ADMIN and after.disabled_at is None
        if was_admin and not is_admin and self._store.users.count_active(tx, Role.ADMIN) <= 1:
            raise Conflict("This is the last admin who can sign in; make another one first.")


def _changed(user: User, wanted: ChangedUser, password_hash: str | None, now_at: int) -> User:
    disabled_at = user.disabled_at
    if wanted.disabled is not None and wanted.disabled != (disabled_at is not None):
        disabled_at = now_at if wanted.disabled else None
    return replace(
        user,
        role=wanted.role or user.role,
        disabled_at=disabled_at,
        password_hash=password_hash or user.password_hash,
    )


def _shown(user: User) -> dict[str, object]:
    status = "active" if user.disabled_at is None else "disabled"
    return {"username": user.username, "role": user.role, "status": status}


def _check_grant(principal: Principal, role: Role) -> None:
    if not ROLE_PERMISSIONS[role] <= principal.permissions:
        raise PermissionDenied(f"The role {role.value} may do more than you may.", param="role")
