"""The people who may sign in. Nobody can grant more than they hold, and one admin always remains."""

from dataclasses import replace

from gateway.domain.principals import ROLE_PERMISSIONS, Caller, Principal, Role
from gateway.domain.users import ChangedUser, NewUser, User, check_new_password
from gateway.errors import Conflict, PermissionDenied
from gateway.schema import check
from gateway.services.passwords import Passwords
from gateway.services.resource import Resource
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction


class Users(Resource[User]):
    """The users of this gateway."""

    noun, nouns = "user", "users"
    name_field = "username"
    is_found_by_name = True

    passwords: Passwords

    async def create(self, caller: Caller, new: NewUser) -> User:
        """Create a user. Raises what `Resource.create` raises.

        PermissionDenied: the role may do what `principal` may not.
        """
        check(new)
        check_new_password(new.password, username=new.username)
        _check_grant(caller.principal, new.role)
        user = User(
            id=self.ids.new("usr"),
            username=new.username,
            password_hash=await self.passwords.hash(new.password),
            role=new.role,
            created_at=self.clock.now_at(),
            disabled_at=None,
        )

        return await self.audit.commit_authority(caller, lambda tx: self._insert(tx, user))

    async def change(self, caller: Caller, name: str, changes: ChangedUser) -> User:
        """Change the role or password of a user, or disable or enable the user. Raises what `Resource.change` raises.

        A new password and being disabled end all sessions of the user. Conflict: also if nobody would be left who can
        manage users. PermissionDenied: the user may, or would, do what `principal` may not.
        """
        user = await self.show(name)
        password_hash = None
        if changes.password is not None:
            check_new_password(changes.password, username=user.username)
            _check_grant(caller.principal, user.role)
            password_hash = await self.passwords.hash(changes.password)

        def changed(before: User) -> User:
            disabled_at = before.disabled_at
            if changes.disabled is not None and changes.disabled != (disabled_at is not None):
                disabled_at = self.clock.now_at() if changes.disabled else None
            after = replace(
                before,
                role=changes.role or before.role,
                disabled_at=disabled_at,
                password_hash=password_hash or before.password_hash,
            )
            if after != before:
                _check_grant(caller.principal, before.role)
                _check_grant(caller.principal, after.role)
            return after

        return await self.audit.commit_authority(caller, lambda tx: self._update(tx, user.id, changes.version, changed))

    def _lookup(self, tx: Transaction, name: str) -> User | None:
        # An id and a name can have the same form; the id wins.
        return self.store.users.by_id(tx, name) or self.store.users.by_name(tx, name)

    def _namesake(self, tx: Transaction, record: User) -> User | None:
        return self.store.users.by_name(tx, record.username)

    def _write(self, tx: AuthorityTransaction, before: User, after: User) -> dict[str, object]:
        was_admin = before.role is Role.ADMIN and before.disabled_at is None
        is_admin = after.role is Role.ADMIN and after.disabled_at is None
        if was_admin and not is_admin and self.store.users.count_active(tx, Role.ADMIN) <= 1:
            raise Conflict("This is the last admin who can sign in; make another one first.")
        self.store.users.change(tx, after)
        is_new_password = after.password_hash != before.password_hash
        ended = 0
        if after.disabled_at is not None or is_new_password:
            ended = self.store.sessions.end_of_user(tx, after.id)
        return {"password_changed": is_new_password, "sessions_ended": ended}

    def _shown(self, record: User) -> dict[str, object]:
        status = "active" if record.disabled_at is None else "disabled"
        return {"username": record.username, "role": record.role, "status": status}


def _check_grant(principal: Principal, role: Role) -> None:
    if not ROLE_PERMISSIONS[role] <= principal.permissions:
        raise PermissionDenied(f"The role {role.value} may do more than you may.", param="role")
