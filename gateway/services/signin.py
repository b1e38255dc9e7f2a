"""Sign-in sessions: begun with a password, found by a token, ended. Failures make others wait; all of it is audited."""

from dataclasses import dataclass, field, replace

from gateway.auth.sessions import TOKEN_RANDOM_BYTES, hash_token, make_token
from gateway.clock import Clock, Ids
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.users import SESSION_MS, Session, SessionFilter, SignedIn, User, check_new_password
from gateway.errors import BadCredentials, Conflict, GatewayError, NotFound, NotSignedIn
from gateway.services.audit import Audit, source_of
from gateway.services.passwords import Passwords
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.sessions import SignInOrigin
from gateway.store.store import Store

_NOTE_SEEN_MS = 15_000
_SOURCE = "auth"
_WRONG = "Name or password is wrong."


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that has just begun. token: for the browser's cookie; it is in no other place."""

    token: str = field(repr=False)
    signed_in: SignedIn


class SignIn:
    """The sessions of this gateway."""

    def __init__(
        self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, passwords: Passwords, throttle: SignInThrottle
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._passwords = passwords
        self._throttle = throttle

    async def begin(
        self, username: str, password: str, context: RequestContext, *, old_token: str | None = None
    ) -> NewSession:
        """Sign a user in. The session is a new one; that of `old_token`, if there is one, ends.

        Takes as long for a user who does not exist or is disabled as for a wrong password.

        Raises:
            BadCredentials: name and password do not belong together.
            LoginThrottled: too many failures before; the password was not looked at.
            Overloaded: too many sign in at once. AuditUnavailable: nobody was signed in.
        """
        async with self._throttle.attempt(username, context) as place:
            user = await self._store.db.read(lambda tx: self._store.users.by_name(tx, username))
            stored = user.password_hash if user is not None else None
            is_right = await self._passwords.check(password, stored)
            if user is None or not is_right or user.disabled_at is not None:
                await self._record_failure(user, context, is_right=is_right)
                raise BadCredentials(_WRONG)
            return await self._begin(user, place, context, old_digest=hash_token(old_token) if old_token else None)

    def find(self, token: str | None) -> SignedIn:
        """Return the session of a token, and note its use.

        Looked up anew on every request: what was ended or changed by another process holds at once.

        Raises:
            NotSignedIn: there is none, it is over, or its user is disabled.
        """
        digest = hash_token(token) if token else None
        if digest is None:
            raise NotSignedIn("Sign in first: POST /api/auth/login.")
        now_at = self._clock.now_at()
        found = self._store.db.read_now(lambda tx: self._store.sessions.by_digest(tx, digest))
        if found is None or not found.session.is_live(now_at) or found.user.disabled_at is not None:
            raise NotSignedIn("The session is over; sign in again.")
        if now_at - found.session.last_seen_at >= _NOTE_SEEN_MS:
            session_id = found.session.id
            try:
                self._store.db.write_behind(lambda tx: self._store.sessions.mark_seen(tx, session_id, now_at=now_at))
            except StoreUnavailable:
                pass  # the session ends a little earlier; the next request notes it
        return found

    def is_live(self, token: str | None) -> bool:
        """Tell whether the session of a token goes on, without noting a use of it."""
        digest = hash_token(token) if token else None
        found = self._store.db.read_now(lambda tx: self._store.sessions.by_digest(tx, digest or ""))
        return found is not None and found.session.is_live(self._clock.now_at()) and found.user.disabled_at is None

    async def end(self, found: SignedIn, context: RequestContext) -> None:
        """Sign out: end this session."""
        session, user = found.session, found.user
        event = self._audit.event(
            "user_signed_out",
            source=_SOURCE,
            principal=user.principal(),
            request=context,
            resource_type="session",
            resource_id=session.id,
        )

        def work(tx: Transaction) -> None:
            if self._store.sessions.end(tx, session.id):
                self._audit.append(tx, event)

        await self._audit.commit(work)

    async def change_password(self, found: SignedIn, current: str, new: str, context: RequestContext) -> int:
        """Give the signed-in user another password, end all their other sessions, and return how many those were.

        Raises:
            BadCredentials: `current` is wrong; that counts as a failed sign-in. LoginThrottled: too many of those.
            InvalidRequest: `new` cannot be a password. Conflict: it is the old one, or the name.
        """
        user = found.user
        check_new_password(new, username=user.username, param="new_password")
        async with self._throttle.attempt(user.username, context) as place:
            if not await self._passwords.check(current, user.password_hash):
                await self._record_failure(user, context, is_right=False)
                raise BadCredentials("The current password is wrong.", param="current_password")
            if new == current:
                raise Conflict("new_password must be another than the current one.", param="new_password")
            return await self._set_password(found, await self._passwords.hash(new), place, context)

    async def page(self, wanted: SessionFilter) -> Page[SignedIn]:
        """List the live sessions, newest first."""
        now_at = self._clock.now_at()
        return await self._store.db.read(lambda tx: self._store.sessions.page(tx, wanted, now_at=now_at))

    async def end_one(self, principal: Principal, session_id: str, context: RequestContext) -> None:
        """End a session, whose ever it is.

        Raises:
            NotFound: there is none.
        """

        def work(tx: Transaction) -> None:
            found = self._store.sessions.by_id(tx, session_id)
            if found is None:
                raise NotFound("There is no such session.")
            self._store.sessions.end(tx, session_id)
            event = self._audit.event(
                "session_ended",
                source=source_of(principal),
                principal=principal,
                request=context,
                resource_type="session",
                resource_id=session_id,
                details={"username": found.user.username},
            )
            self._audit.append(tx, event)

        await self._audit.commit(work)

    async def end_of_user(
        self, principal: Principal, user_id: str, context: RequestContext, *, but_id: str = ""
    ) -> int:
        """End all sessions of a user, but for one; return how many there were.

        Raises:
            NotFound: there is no such user.
        """

        def work(tx: Transaction) -> int:
            user = self._store.users.by_id(tx, user_id)
            if user is None:
                raise NotFound("There is no such user.")
            count = self._store.sessions.end_of_user(tx, user_id, but_id=but_id)
            event = self._audit.event(
                "sessions_ended",
                source=source_of(principal),
                principal=principal,
                request=context,
                resource_type="user",
                resource_id=user_id,
                details={"username": user.username, "count": count},
            )
            self._audit.append(tx, event)
            return count

        return await self._audit.commit(work)

    async def _record_failure(self, user: User | None, context: RequestContext, *, is_right: bool) -> None:
        # The name of nobody is not kept: it may be a password that was typed into the wrong field.
        stranger = Principal("user", "unknown", "unknown", frozenset(), frozenset())
        await self._audit.record(
            self._audit.event(
                "sign_in_failed",
                source=_SOURCE,
                outcome="failed",
                reason="unknown_user" if user is None else "user_disabled" if is_right else "wrong_password",
                principal=user.principal() if user else stranger,
                request=context,
                resource_type="user",
                resource_id=user.id if user else None,
            )
        )

    async def _set_password(
        self, found: SignedIn, password_hash: str, place: SignInOrigin, context: RequestContext
    ) -> int:
        user = found.user
        event = self._audit.event(
            "user_password_changed",
            source=_SOURCE,
            principal=user.principal(),
            request=context,
            resource_type="user",
            resource_id=user.id,
        )

        def work(tx: AuthorityTransaction) -> int:
            self._check_unchanged(tx, user, NotSignedIn("The account was changed meanwhile; sign in again."))
            self._store.users.change(tx, replace(user, password_hash=password_hash))
            ended = self._store.sessions.end_of_user(tx, user.id, but_id=found.session.id)
            self._throttle.forget(tx, place)
            self._audit.append(tx, event)
            return ended

        return await self._audit.commit_authority(work)

    def _check_unchanged(self, tx: Transaction, user: User, error: GatewayError) -> None:
        """Raise `error` unless the record that the password was checked against still stands."""
        if self._store.users.by_id(tx, user.id) != user:
            raise error

    async def _begin(
        self, user: User, place: SignInOrigin, context: RequestContext, *, old_digest: str | None
    ) -> NewSession:
        now_at = self._clock.now_at()
        token = make_token(self._ids.random_bytes(TOKEN_RANDOM_BYTES))
        session = Session(
            id=self._ids.new("ses"),
            digest=hash_token(token) or "",
            user_id=user.id,
            created_at=now_at,
            last_seen_at=now_at,
            expires_at=now_at + SESSION_MS,
            ip=context.ip,
            user_agent=context.user_agent,
        )
        event = self._audit.event(
            "user_signed_in",
            source=_SOURCE,
            principal=user.principal(),
            request=context,
            resource_type="session",
            resource_id=session.id,
        )

        def work(tx: Transaction) -> None:
            self._check_unchanged(tx, user, BadCredentials(_WRONG))
            old = self._store.sessions.by_digest(tx, old_digest) if old_digest else None
            if old is not None:
                self._store.sessions.end(tx, old.session.id)
            self._throttle.forget(tx, place)
            self._store.sessions.insert(tx, session)
            self._audit.append(tx, event)

        await self._audit.commit(work)
        return NewSession(token, SignedIn(session, user))
