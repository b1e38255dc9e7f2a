"""Sign-in sessions: begin one with a password, find it by its token, list and end them. Failures are throttled."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.auth.sessions import TOKEN_RANDOM_BYTES, hash_token, make_token
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, RequestContext
from gateway.domain.users import SESSION_MS, Session, SessionFilter, SignedIn, User, check_new_password
from gateway.errors import BadCredentials, Conflict, NotFound, NotSignedIn
from gateway.services.core import Service
from gateway.services.passwords import Passwords
from gateway.services.refusals import stranger
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.sessions import SignInOrigin

_RECORD_USE_MS = 15_000
_SOURCE = "auth"
_WRONG = "Name or password is wrong."


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that has just begun. token: for the browser's cookie; the gateway stores only its hash."""

    token: str = field(repr=False)
    signed_in: SignedIn


class SignIn(Service):
    """The sessions of this gateway."""

    passwords: Passwords
    throttle: SignInThrottle

    async def begin(
        self, username: str, password: str, context: RequestContext, *, old_token: str | None = None
    ) -> NewSession:
        """Sign a user in. Begins a new session and ends the session of `old_token`, if there is one.

        Takes as long for a user who does not exist or is disabled as for a wrong password.

        Raises:
            BadCredentials: name and password do not belong together.
            LoginThrottled: too many failures before; the password was not checked.
            Overloaded: too many sign-ins at once. AuditUnavailable: nobody was signed in.
        """
        async with self.throttle.attempt(username, context) as origin:
            user = await self.store.db.read(lambda tx: self.store.users.by_name(tx, username))
            is_right = await self.passwords.check(password, user.password_hash if user else None)
            if user is None or not is_right or user.disabled_at is not None:
                await self._record_failure(user, context, is_right=is_right)
                raise BadCredentials(_WRONG)
            return await self._begin(user, origin, context, old_digest=hash_token(old_token) if old_token else None)

    async def find(self, token: str | None) -> SignedIn:
        """Return the session of a token and record its use. Raises NotSignedIn if it is over or its user disabled.

        Reads the database every time, so that a session that another process ended or changed is refused at once.
        """
        digest = hash_token(token or "")
        if digest is None:
            raise NotSignedIn("Sign in first: POST /api/auth/login.")
        found = await self._live(digest)
        if found is None:
            raise NotSignedIn("The session is over; sign in again.")
        now_at = self.clock.now_at()
        if now_at - found.session.last_seen_at >= _RECORD_USE_MS:
            session_id = found.session.id
            with suppress(StoreUnavailable):  # then the session ends a little earlier
                self.store.db.write_behind(lambda tx: self.store.sessions.mark_seen(tx, session_id, now_at=now_at))
        return found

    async def is_live(self, token: str | None) -> bool:
        """Return whether the session of a token is live, without recording a use."""
        digest = hash_token(token or "")
        return digest is not None and await self._live(digest) is not None

    async def _live(self, digest: str) -> SignedIn | None:
        found = await self.store.db.read(lambda tx: self.store.sessions.by_digest(tx, digest), is_quick=True)
        if found is None or not found.session.is_live(self.clock.now_at()) or found.user.disabled_at is not None:
            return None
        return found

    async def end(self, found: SignedIn, context: RequestContext) -> None:
        """Sign out: end this session."""
        session, user = found.session, found.user.principal()

        def work(tx: Transaction) -> None:
            if self.store.sessions.end(tx, session.id):
                self.audit.append_change(
                    tx, "user_signed_out", Caller(user, context), "session", session.id, source=_SOURCE
                )

        await self.audit.commit(work)

    async def change_password(self, found: SignedIn, current: str, new: str, context: RequestContext) -> int:
        """Change the password of the signed-in user, end all their other sessions, and return how many there were.

        Raises:
            BadCredentials: `current` is wrong; that counts as a failed sign-in. LoginThrottled: too many of those.
            InvalidRequest: `new` cannot be a password. Conflict: it is the old one, or the name.
        """
        user = found.user
        check_new_password(new, username=user.username, param="new_password")
        async with self.throttle.attempt(user.username, context) as origin:
            if not await self.passwords.check(current, user.password_hash):
                await self._record_failure(user, context, is_right=False)
                raise BadCredentials("The current password is wrong.", param="current_password")
            if new == current:
                raise Conflict("new_password must be another than the current one.", param="new_password")
            caller = Caller(user.principal(), context)
            after = replace(user, password_hash=await self.passwords.hash(new))

            def work(tx: AuthorityTransaction) -> int:
                if self.store.users.by_id(tx, user.id) != user:
                    raise NotSignedIn("The account was changed meanwhile; sign in again.")
                self.store.users.change(tx, after)
                ended = self.store.sessions.end_of_user(tx, user.id, but_id=found.session.id)
                self.store.sign_in_failures.forget(tx, origin)
                self.audit.append_change(tx, "user_password_changed", caller, "user", user.id, source=_SOURCE)
                return ended

            return await self.audit.commit_authority(caller, work)

    async def page(self, wanted: SessionFilter) -> Page[SignedIn]:
        now_at = self.clock.now_at()
        return await self.store.db.read(lambda tx: self.store.sessions.page(tx, wanted, now_at=now_at))

    async def end_one(self, caller: Caller, session_id: str) -> None:
        """End a session of any user. Raises NotFound."""

        def work(tx: Transaction) -> None:
            found = self.store.sessions.by_id(tx, session_id)
            if found is None:
                raise NotFound("There is no such session.")
            self.store.sessions.end(tx, session_id)
            details = {"username": found.user.username}
            self.audit.append_change(tx, "session_ended", caller, "session", session_id, details=details)

        await self.audit.commit(work)

    async def end_of_user(self, caller: Caller, user_id: str, *, but_id: str = "") -> int:
        """End all sessions of a user except `but_id`, and return how many there were. Raises NotFound."""

        def work(tx: Transaction) -> int:
            user = self.store.users.by_id(tx, user_id)
            if user is None:
                raise NotFound("There is no such user.")
            count = self.store.sessions.end_of_user(tx, user_id, but_id=but_id)
            details = {"username": user.username, "count": count}
            self.audit.append_change(tx, "sessions_ended", caller, "user", user_id, details=details)
            return count

        return await self.audit.commit(work)

    async def _record_failure(self, user: User | None, context: RequestContext, *, is_right: bool) -> None:
        reason = "unknown_user" if user is None else "user_disabled" if is_right else "wrong_password"
        # The typed name of an unknown user is not stored: it may be a password in the wrong field.
        who, user_id = (user.principal(), user.id) if user else (stranger("user"), None)
        how: dict[str, Any] = {"source": _SOURCE, "outcome": "failed", "reason": reason}
        await self.audit.commit(
            lambda tx: self.audit.append_change(tx, "sign_in_failed", Caller(who, context), "user", user_id, **how)
        )

    async def _begin(
        self, user: User, origin: SignInOrigin, context: RequestContext, *, old_digest: str | None
    ) -> NewSession:
        now_at = self.clock.now_at()
        token = make_token(self.ids.random_bytes(TOKEN_RANDOM_BYTES))
        session = Session(
            id=self.ids.new("ses"),
            digest=hash_token(token) or "",
            user_id=user.id,
            created_at=now_at,
            last_seen_at=now_at,
            expires_at=now_at + SESSION_MS,
            ip=context.ip,
            user_agent=context.user_agent,
        )

        def work(tx: Transaction) -> None:
            if self.store.users.by_id(tx, user.id) != user:  # changed since its password was checked
                raise BadCredentials(_WRONG)
            old = self.store.sessions.by_digest(tx, old_digest) if old_digest else None
            if old is not None:
                self.store.sessions.end(tx, old.session.id)
            self.store.sign_in_failures.forget(tx, origin)
            self.store.sessions.insert(tx, session)
            self.audit.append_change(
                tx, "user_signed_in", Caller(user.principal(), context), "session", session.id, source=_SOURCE
            )

        await self.audit.commit(work)
        return NewSession(token, SignedIn(session, user))
