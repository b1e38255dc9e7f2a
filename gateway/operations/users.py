"""The rows of users and their sessions, and the views of both. The rules are in `services.users` and `.signin`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.principals import Caller, Permission, Role
from gateway.domain.users import (
    MAX_SESSION_LIMIT,
    ChangedUser,
    NewUser,
    Password,
    Session,
    SessionFilter,
    SignedIn,
    User,
)
from gateway.operations.operation import ById, Door, text
from gateway.operations.rows import Noun, paging, row
from gateway.records import project
from gateway.schema import Bounds
from gateway.store.sessions import SORTS

# The OpenAPI document describes it as required, as it is when nobody signs in.
END_OF_USER = replace(
    text("user_id", "Whose sessions end. A signed-in user may leave it out to end their own others."), is_required=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView(User):
    """A user without the password's hash."""

    status: Literal["active", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView(Session):
    """A live session, without its secrets."""

    username: str


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


@dataclass(frozen=True, slots=True)
class CurrentUser:
    """The user who is signed in."""

    id: str
    username: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentSession:
    """Who is signed in, and what they may do. csrf_token, expires_at: None for the local user without RBAC."""

    user: CurrentUser
    permissions: tuple[Permission, ...]
    csrf_token: str | None = None
    expires_at: int | None = None
    is_first_password: bool = False


@dataclass(frozen=True, slots=True)
class SignedOut:
    """The answer to a sign-out, which holds nothing."""


@dataclass(frozen=True, slots=True)
class EndSessions:
    """Whose sessions end; those of the caller if left out."""

    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionsEnded:
    """How many sessions were ended."""

    sessions_ended: Annotated[int, Bounds(low=0)]


def _view_user(gateway: Gateway, user: User) -> UserView:
    status = "active" if user.disabled_at is None else "disabled"
    return project(UserView, user, password_hash="", status=status)


def _view_session(gateway: Gateway, found: SignedIn) -> SessionView:
    return project(SessionView, found.session, digest="", username=found.user.username)


async def _end_session(gateway: Gateway, caller: Caller, command: ById) -> ById:
    await gateway.signin.end_one(caller, command.id)
    return command


SIGN_IN_OPERATIONS = (
    row(
        "auth.login",
        "POST /api/auth/login",
        None,
        "Sign in with `username`, `password`. Sets the cookie `service_session`, answers `csrf_token`.",
        door=Door.SIGN_IN,
        takes=Login,
        gives=CurrentSession,
        has_secret=True,
    ),
    row(
        "auth.session",
        "GET /api/auth/session",
        None,
        "Say who is signed in, what they may do, and the session's `csrf_token`.",
        gives=CurrentSession,
        has_secret=True,
    ),
    row("auth.logout", "POST /api/auth/logout", None, "End the session.", gives=SignedOut),
    row(
        "auth.password",
        "POST /api/auth/password",
        None,
        "Change your own password: `current_password`, `new_password`. Ends your other sessions.",
        takes=NewPassword,
        gives=SessionsEnded,
    ),
)

_USERS = Noun("users", UserView, Permission.USERS_READ, Permission.USERS_MANAGE, view=_view_user)
_SESSIONS = Noun(
    "sessions", SessionView, Permission.USERS_READ, Permission.USERS_MANAGE, view=_view_session, service="signin"
)

USER_OPERATIONS = (
    _USERS.list("List the users, oldest first."),
    _USERS.create(NewUser, "Create a user: `username`, `password`, `role`."),
    _USERS.change(ChangedUser, "Change `role`, `disabled` or `password`; the last two end the user's sessions."),
    _SESSIONS.list(
        "List the live sessions, newest first.",
        takes=SessionFilter,
        query=(text("user_id", "Whose sessions; all if left out."), *paging(MAX_SESSION_LIMIT, sorts=SORTS)),
    ),
    row(
        "sessions.end_all",
        "DELETE /api/sessions",
        Permission.USERS_MANAGE,
        "End the sessions of `user_id`, or your own, except the current one.",
        takes=EndSessions,
        query=(END_OF_USER,),
        gives=SessionsEnded,
    ),
    _SESSIONS.row("end", "DELETE /{id}", "End one session.", takes=ById, gives=ById, call=_end_session),
)
OPERATIONS = SIGN_IN_OPERATIONS + USER_OPERATIONS
