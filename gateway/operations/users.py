"""The rows of users and their sessions, and what is shown of them. Rules are kept in `services`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Role
from gateway.domain.sessions import DEFAULT_SESSION_LIMIT, MAX_SESSION_LIMIT, SignedIn
from gateway.domain.users import (
    MAX_PASSWORD_CHARS,
    MIN_PASSWORD_CHARS,
    NOT_ONE_SIGN_REPEATED,
    USERNAME_PATTERN,
    ChangedUser,
    NewUser,
    User,
)
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, limit, text
from gateway.operations.views import project
from gateway.schema import Bounds

Password = Annotated[
    str,
    Bounds(MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS, promise=NOT_ONE_SIGN_REPEATED),
    "Neither the username nor one character repeated.",
]
END_OF_USER = replace(
    text("user_id", "Whose sessions end. Who is signed in may leave it out: their own others end."), is_required=True
)
"""What ends all sessions of a user. Without a sign-in it must be there, and the document knows of one case alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeUser(NewUser):
    """A user to be made, with the bounds of its fields."""

    username: Annotated[str, Bounds(pattern=f"^{USERNAME_PATTERN}$")]
    password: Password = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchUser(ChangedUser):
    """What is to change of the user `id`."""

    id: str
    password: Password | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserView:
    """A user without the password's hash."""

    id: str
    username: str
    role: Role
    status: Literal["active", "disabled"]
    created_at: int
    disabled_at: int | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions to list."""

    user_id: str | None = None
    limit: int = DEFAULT_SESSION_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session that is not over, without what would let somebody in."""

    id: str
    user_id: str
    username: str
    created_at: int
    last_seen_at: int
    expires_at: int
    ip: str | None
    user_agent: str | None


@dataclass(frozen=True, slots=True)
class Done:
    """The thing of this id is no more."""

    id: str


def view_user(user: User) -> UserView:
    """Return what is shown of a user."""
    return project(UserView, user, status="active" if user.disabled_at is None else "disabled")


def view_session(found: SignedIn) -> SessionView:
    """Return what is shown of a session."""
    return project(SessionView, found.session, username=found.user.username)


async def list_users(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[UserView]:
    """Return all users as one page."""
    users = tuple(view_user(user) for user in await gateway.users.list())
    return Page(users, len(users), None)


async def create_user(gateway: Gateway, who: Principal, command: NewUser, context: RequestContext) -> UserView:
    """Make a user."""
    return view_user(await gateway.users.create(who, command, context))


async def change_user(gateway: Gateway, who: Principal, command: PatchUser, context: RequestContext) -> UserView:
    """Change a user's record."""
    return view_user(await gateway.users.change(who, command.id, command, context))


async def list_sessions(
    gateway: Gateway, who: Principal, wanted: SessionFilter, context: RequestContext
) -> Page[SessionView]:
    """Return a page of sessions."""
    page = await gateway.signin.page(user_id=wanted.user_id, limit=wanted.limit, cursor=wanted.cursor)
    return Page(tuple(view_session(found) for found in page.items), page.limit, page.next)


async def end_session(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> Done:
    """End one session."""
    await gateway.signin.end_one(who, command.id, context)
    return Done(command.id)


SIGN_IN_OPERATIONS = (
    Operation(
        name="auth.login",
        route=("POST", "/api/auth/login"),
        door=Door.SIGN_IN,
        needs=None,
        has_secret=True,
        summary="Sign in with `username`, `password`. Sets the cookie `service_session`, answers `csrf_token`.",
    ),
    Operation(
        name="auth.session",
        route=("GET", "/api/auth/session"),
        door=Door.SESSION,
        needs=None,
        has_secret=True,
        summary="Say who is signed in, what they may do, and the session's `csrf_token`.",
    ),
    Operation(
        name="auth.logout",
        route=("POST", "/api/auth/logout"),
        door=Door.SESSION,
        needs=None,
        summary="End the session.",
    ),
    Operation(
        name="auth.password",
        route=("POST", "/api/auth/password"),
        door=Door.SESSION,
        needs=None,
        summary="Change one's own password: `current_password`, `new_password`. Ends one's other sessions.",
    ),
)

USER_OPERATIONS = (
    Operation(
        name="users.list",
        route=("GET", "/api/users"),
        door=Door.SESSION,
        needs=Permission.USERS_READ,
        answer=Answer.PAGE,
        gives=UserView,
        call=list_users,
        summary="List the users, oldest first.",
    ),
    Operation(
        name="users.create",
        route=("POST", "/api/users"),
        door=Door.SESSION,
        needs=Permission.USERS_MANAGE,
        takes=MakeUser,
        gives=UserView,
        call=create_user,
        status=201,
        summary="Create a user: `username`, `password`, `role`.",
    ),
    Operation(
        name="users.change",
        route=("PATCH", "/api/users/{id}"),
        door=Door.SESSION,
        needs=Permission.USERS_MANAGE,
        takes=PatchUser,
        gives=UserView,
        call=change_user,
        summary="Change `role`, `disabled` or `password`; the last two end the user's sessions.",
    ),
    Operation(
        name="sessions.list",
        route=("GET", "/api/sessions"),
        door=Door.SESSION,
        needs=Permission.USERS_READ,
        answer=Answer.PAGE,
        takes=SessionFilter,
        gives=SessionView,
        call=list_sessions,
        query=(
            text("user_id", "Whose sessions; everybody's if left out."),
            limit(MAX_SESSION_LIMIT, DEFAULT_SESSION_LIMIT),
            cursor(),
        ),
        summary="List the sessions that are not over, newest first.",
    ),
    Operation(
        name="sessions.end_all",
        route=("DELETE", "/api/sessions"),
        door=Door.SESSION,
        needs=Permission.USERS_MANAGE,
        query=(END_OF_USER,),
        summary="End the sessions of `user_id`, or one's own, but for the one that asks.",
    ),
    Operation(
        name="sessions.end",
        route=("DELETE", "/api/sessions/{id}"),
        door=Door.SESSION,
        needs=Permission.USERS_MANAGE,
        takes=ById,
        gives=Done,
        call=end_session,
        summary="End one session.",
    ),
)
