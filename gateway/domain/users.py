"""Users and their sessions, and the valid forms of user names and passwords. Pure: hashes nothing, knows no cookie."""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Annotated

from gateway import bundle
from gateway.domain.paging import PageQuery
from gateway.domain.principals import ROLE_PERMISSIONS, Principal, Role, scopes_within
from gateway.errors import Conflict, InvalidRequest
from gateway.schema import Bounds

MIN_PASSWORD_CHARS = 8
# At most four bytes a character, so that the whole password is hashed.
MAX_PASSWORD_CHARS = 256
USERNAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}"
SESSION_MS = 12 * 3_600_000
SESSION_IDLE_MS = 60 * 60_000
MAX_SESSION_LIMIT = 500
_COMMON_PASSWORDS = "gateway/domain/common-passwords.txt"
_PASSWORD_SUFFIX = re.compile(r"[0-9!]{1,4}\Z")

Username = Annotated[
    str,
    Bounds(
        pattern=f"^{USERNAME_PATTERN}$",
        says="must be 1 to 64 letters, digits or ._@+- and begin with a letter or digit",
    ),
]
Password = Annotated[
    str,
    # The OpenAPI document has a pattern for passwords: not one character repeated.
    Bounds(MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS, promise="^(?!(.|[\\n\\r\\u2028\\u2029])\\1*$)"),
    "Neither the username nor one character repeated.",
]


@dataclass(frozen=True, slots=True)
class User:
    """A stored user. password_hash: from `auth.passwords`. disabled_at: Unix milliseconds, or None while active."""

    id: str
    username: str
    password_hash: str = field(repr=False, metadata={"json_name": None})
    role: Role
    created_at: int
    disabled_at: int | None
    version: int = 1

    def principal(self) -> Principal:
        """Return the principal of this user. Does not check whether the user is disabled."""
        permissions = ROLE_PERMISSIONS[self.role]
        return Principal(
            kind="user", id=self.id, name=self.username, scopes=scopes_within(permissions), permissions=permissions
        )


@dataclass(frozen=True, slots=True)
class NewUser:
    """The fields of a user to create. `services.users` checks them."""

    username: Username
    password: Password = field(repr=False)
    role: Role


@dataclass(frozen=True, slots=True)
class ChangedUser:
    """Changes of a user; None keeps a field. version: the change is refused if the record has another one."""

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = field(default=None, repr=False)
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session of a user. Times in Unix milliseconds.

    digest: SHA-256 of the token that the browser holds. expires_at: the end even of an active session. last_seen_at:
    written every few seconds only. ip, user_agent: of the sign-in.
    """

    id: str
    digest: str = field(metadata={"json_name": None})
    user_id: str
    created_at: int
    last_seen_at: int
    expires_at: int
    ip: str | None = None
    user_agent: str | None = None

    def is_live(self, now_at: int) -> bool:
        return now_at < self.expires_at and now_at < self.last_seen_at + SESSION_IDLE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter(PageQuery):
    """The live sessions to list, newest first. user_id: None for those of all users."""

    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A live session and the present record of its user."""

    session: Session
    user: User


def is_common_password(password: str) -> bool:
    """Return whether a password is on the list of the 10,000 most common ones.

    Case, width and a suffix of up to four digits or exclamation marks do not matter.
    """
    folded = unicodedata.normalize("NFKC", password).strip().casefold()
    known = frozenset(bundle.read(_COMMON_PASSWORDS).decode().split("\n"))
    return not known.isdisjoint({folded, _PASSWORD_SUFFIX.sub("", folded)} - {""})


def check_new_password(text: str, *, username: str, param: str = "password") -> str:
    """Return `text` if it may become the password of `username`.

    Raises:
        InvalidRequest: the password is too short, too long, one character repeated, or a common one.
        Conflict: the password is the user name.
    """
    if not MIN_PASSWORD_CHARS <= len(text) <= MAX_PASSWORD_CHARS:
        raise InvalidRequest(f"{param} must be {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.", param=param)
    if len(set(text)) == 1:
        raise InvalidRequest(f"{param} must not be one character repeated.", param=param)
    if is_common_password(text):
        raise InvalidRequest(f"{param} is one of the 10,000 most common passwords: choose another.", param=param)
    if text.casefold() == username.casefold():
        raise Conflict(f"{param} must not be the username.", param=param)
    return text
