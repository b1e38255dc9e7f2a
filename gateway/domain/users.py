"""A person who may sign in. Pure."""

from dataclasses import dataclass

from gateway.domain.principals import Role


@dataclass(frozen=True, slots=True)
class User:
    """A user's record. password_hash: as made by `auth.passwords`. disabled_at: Unix ms, or None while active."""

    id: str
    username: str
    password_hash: str
    role: Role
    created_at: int
    disabled_at: int | None
