"""Answer sign-in requests: session cookie, CSRF token and current user. Checks no password itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from gateway.api.credentials import Callers
from gateway.api.reading import read_body, read_query
from gateway.api.responses import Headers, envelope_response
from gateway.app import Gateway
from gateway.auth.csrf import csrf_token
from gateway.auth.sessions import clear_cookie, read_cookie, set_cookie
from gateway.domain.principals import Principal, RequestContext, Role
from gateway.domain.users import SESSION_MS, SignedIn
from gateway.errors import InvalidRequest, NotSignedIn
from gateway.http.messages import Request, Response
from gateway.operations.users import END_OF_USER, Password
from gateway.schema import Bounds, decode
from gateway.strict_json import write_json, write_time

_COOKIE_SECONDS = SESSION_MS // 1000


@dataclass(frozen=True, slots=True)
class Login:
    """The body of a sign-in. Bounded, because hashing a long password costs CPU."""

    username: Annotated[str, Bounds(1, 256)]
    password: Annotated[str, Bounds(1, 1024)] = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewPassword:
    """The body of a change of one's own password."""

    current_password: Annotated[str, Bounds(1, 1024)] = field(repr=False)
    new_password: Password = field(repr=False)


class SignInEdge:
    """Answers the operations that read or set the session cookie."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._callers = Callers(gateway.settings.trusted_proxies)

    async def login(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Sign in and set the cookie of the new session."""
        body = decode(Login, read_body(request))
        new = await self._gateway.signin.begin(
            body.username, body.password, context, old_token=read_cookie(request.headers.get("cookie"))
        )
        cookie = set_cookie(new.token, seconds=_COOKIE_SECONDS, is_secure=self._callers.is_secure(request))
        return self._answer(_about(new.signed_in, new.token), context, (("set-cookie", cookie),))

    async def session(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Say who is signed in, and give the token that changes need."""
        if who.kind != "user":
            user = {"id": who.id, "username": who.name, "role": Role.ADMIN.value}
            permissions = sorted(who.permissions)
            about: dict[str, object] = {
                "user": user,
                "permissions": permissions,
                "csrf_token": None,
                "expires_at": None,
            }
            about["is_first_password"] = False
            return self._answer(about, context)
        token = read_cookie(request.headers.get("cookie")) or ""
        return self._answer(_about(self._gateway.signin.find(token), token), context)

    async def logout(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """End the session and clear the cookie."""
        await self._gateway.signin.end(self._found(request), context)
        cookie = clear_cookie(is_secure=self._callers.is_secure(request))
        return self._answer({}, context, (("set-cookie", cookie),))

    async def password(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """Change one's own password."""
        found = self._found(request)
        body = decode(NewPassword, read_body(request))
        ended = await self._gateway.signin.change_password(found, body.current_password, body.new_password, context)
        return self._answer({"sessions_ended": ended}, context)

    async def end_all(self, request: Request, who: Principal, context: RequestContext) -> Response:
        """End all sessions of a user except the current one."""
        values = read_query(request.query, {"user_id": END_OF_USER}, now_at=0)
        user_id = values.get("user_id", who.id if who.kind == "user" else None)
        if user_id is None:
            raise InvalidRequest("Name the user whose sessions end: user_id.", param="user_id")
        own_id = self._found(request).session.id if who.kind == "user" else ""
        ended = await self._gateway.signin.end_of_user(who, str(user_id), context, but_id=own_id)
        return self._answer({"sessions_ended": ended}, context)

    def _found(self, request: Request) -> SignedIn:
        """Return the session of the cookie. Without RBAC nobody has looked it up yet.

        Raises:
            NotSignedIn: there is none.
        """
        token = read_cookie(request.headers.get("cookie"))
        if token is None:
            raise NotSignedIn("Sign in first: POST /api/auth/login.")
        return self._gateway.signin.find(token)

    def _answer(self, data: Mapping[str, object], context: RequestContext, headers: Headers = ()) -> Response:
        timestamp = write_time(self._gateway.clock.now_at())
        return envelope_response(
            write_json(data), None, request_id=context.request_id, timestamp=timestamp, headers=headers
        )


def _about(found: SignedIn, token: str) -> dict[str, object]:
    user = found.user
    return {
        "user": {"id": user.id, "username": user.username, "role": user.role.value},
        "permissions": sorted(user.principal().permissions),
        "csrf_token": csrf_token(token),
        "expires_at": write_time(found.session.expires_at),
        # The record was never changed, so the password is still the one that an administrator set.
        "is_first_password": user.version == 1,
    }
