"""A person who may sign in, and the forms of names and passwords. Pure: hashes nothing."""

import re
from dataclasses import dataclass, field

from gateway.domain.common_passwords import COUNT, is_common
from gateway.domain.principals import ROLE_PERMISSIONS, Principal, Role, scopes_within
from gateway.errors import Conflict, InvalidRequest

MAX_USERNAME_CHARS = 64
MIN_PASSWORD_CHARS = 8
# Four bytes a character at most: the whole password is hashed.
MAX_PASSWORD_CHARS = 256
NOT_ONE_SIGN_REPEATED = "^(?!(.|[\\n\\r\\u2028\\u2029])\\1*$)"
"""What a password is that `check_new_password` takes of whoever has another name: not one character repeated."""
USERNAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}"
_USERNAME = re.compile(USERNAME_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class User:
    """A user's record. password_hash: as made by `auth.passwords`. disabled_at: Unix ms, or None while active."""

    id: str
    username: str
    password_hash: str = field(repr=False)
    role: Role
    created_at: int
    disabled_at: int | None
    version: int = 1

    def principal(self) -> Principal:
        """Return who acts when this user does. Whether the user is disabled is not looked at."""
        permissions = ROLE_PERMISSIONS[self.role]
        return Principal(
            kind="user",
            id=self.id,
            name=self.username,
            scopes=scopes_within(permissions),
            permissions=permissions,
        )


@dataclass(frozen=True, slots=True)
class NewUser:
    """What is said of a user to be made. Checked by `services.users`."""

    username: str
    password: str = field(repr=False)
    role: Role


@dataclass(frozen=True, slots=True)
class ChangedUser:
    """What is to change of a user; None leaves a field as it is. version: refused unless the record still has it."""

    role: Role | None = None
    disabled: bool | None = None
    password: str | None = field(default=None, repr=False)
    version: int | None = None


def check_username(text: str) -> str:
    """Return `text` if a user may have it as a name. Names differ in more than the case of their letters.

    Raises:
        InvalidRequest: it has another form.
    """
    if _USERNAME.fullmatch(text) is None:
        raise InvalidRequest(
            f"username must be 1 to {MAX_USERNAME_CHARS} letters, digits or ._@+- and begin with a letter or digit.",
            param="username",
        )
    return text


def check_new_password(text: str, *, username: str, param: str = "password") -> str:
    """Return `text` if it may become the password of `username`.

    Raises:
        InvalidRequest: it is too short, too long, one character repeated, or one of the most common. Conflict: it is
            the name itself. The message never repeats it.
    """
    if not MIN_PASSWORD_CHARS <= len(text) <= MAX_PASSWORD_CHARS:
        raise InvalidRequest(f"{param} must be {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.", param=param)
    if len(set(text)) == 1:
        raise InvalidRequest(f"{param} must not be one character repeated.", param=param)
    if is_common(text):
        raise InvalidRequest(f"{param} is one of the {COUNT:,} most common passwords: choose another.", param=param)
    if text.casefold() == username.casefold():
        raise Conflict(f"{param} must not be the username.", param=param)
    return text
