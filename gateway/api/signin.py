"""Answer sign-in requests: session cookie, CSRF token and current user. Checks no password itself."""

from gateway.api.credentials import Callers
from gateway.app import Gateway
from gateway.auth.csrf import csrf_token
from gateway.auth.sessions import clear_cookie, read_cookie, set_cookie
from gateway.domain.principals import Caller, RequestContext, Role
from gateway.domain.users import SESSION_MS, SignedIn
from gateway.errors import InvalidRequest, NotSignedIn
from gateway.http.messages import Request, Response
from gateway.operations.users import (
    CurrentSession,
    CurrentUser,
    EndSessions,
    Login,
    NewPassword,
    SessionsEnded,
    SignedOut,
)
from gateway.responses import Headers, envelope_response
from gateway.schema import encode

_COOKIE_SECONDS = SESSION_MS // 1000


class SignInEdge:
    """Answers the operations that read or set the session cookie."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._callers = Callers(gateway.settings.trusted_proxies)

    async def login(self, request: Request, caller: Caller, body: Login) -> Response:
        """Sign in and set the cookie of the new session."""
        old_token = read_cookie(request.headers.get("cookie"))
        new = await self._gateway.signin.begin(body.username, body.password, caller.context, old_token=old_token)
        cookie = set_cookie(new.token, seconds=_COOKIE_SECONDS, is_secure=self._callers.is_secure(request))
        return self._answer(_about(new.signed_in, new.token), caller.context, (("set-cookie", cookie),))

    async def session(self, request: Request, caller: Caller, command: None) -> Response:
        """Say who is signed in, and give the token that changes need."""
        if caller.principal.kind != "user":
            user = CurrentUser(id=caller.principal.id, username=caller.principal.name, role=Role.ADMIN)
            return self._answer(
                CurrentSession(user=user, permissions=tuple(sorted(caller.principal.permissions))), caller.context
            )
        token = read_cookie(request.headers.get("cookie")) or ""
        return self._answer(_about(await self._gateway.signin.find(token), token), caller.context)

    async def logout(self, request: Request, caller: Caller, command: None) -> Response:
        """End the session and clear the cookie."""
        await self._gateway.signin.end(await self._found(request), caller.context)
        cookie = clear_cookie(is_secure=self._callers.is_secure(request))
        return self._answer(SignedOut(), caller.context, (("set-cookie", cookie),))

    async def password(self, request: Request, caller: Caller, body: NewPassword) -> Response:
        """Change one's own password."""
        found = await self._found(request)
        ended = await self._gateway.signin.change_password(
            found, body.current_password, body.new_password, caller.context
        )
        return self._answer(SessionsEnded(ended), caller.context)

    async def end_all(self, request: Request, caller: Caller, wanted: EndSessions) -> Response:
        """End all sessions of a user except the current one."""
        user_id = wanted.user_id or (caller.principal.id if caller.principal.kind == "user" else None)
        if user_id is None:
            raise InvalidRequest("Name the user whose sessions end: user_id.", param="user_id")
        own_id = (await self._found(request)).session.id if caller.principal.kind == "user" else ""
        ended = await self._gateway.signin.end_of_user(caller, user_id, but_id=own_id)
        return self._answer(SessionsEnded(ended), caller.context)

    async def _found(self, request: Request) -> SignedIn:
        """Return the session of the cookie. Without RBAC the dispatch has not looked it up."""
        token = read_cookie(request.headers.get("cookie"))
        if token is None:
            raise NotSignedIn("Sign in first: POST /api/auth/login.")
        return await self._gateway.signin.find(token)

    def _answer(self, data: object, context: RequestContext, headers: Headers = ()) -> Response:
        now_at = self._gateway.clock.now_at()
        return envelope_response(encode(data), None, request_id=context.request_id, now_at=now_at, headers=headers)


def _about(found: SignedIn, token: str) -> CurrentSession:
    user = found.user
    return CurrentSession(
        user=CurrentUser(id=user.id, username=user.username, role=user.role),
        permissions=tuple(sorted(user.principal().permissions)),
        csrf_token=csrf_token(token),
        expires_at=found.session.expires_at,
        # The record was never changed, so the password is still the one that an administrator set.
        is_first_password=user.version == 1,
    )
