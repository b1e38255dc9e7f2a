"""The record of an API key. Only `CreatedKey` ever holds the key itself."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.domain.principals import Principal, Scope
from gateway.field_types import Expiry, line
from gateway.schema import Bounds

DEFAULT_RATE_LIMIT = 60
MAX_RATE_LIMIT = 10_000_000
MAX_NAME_CHARS = 100
MAX_MODELS = 100
MAX_MODEL_CHARS = 256
MAX_KEY_LIMIT = 500
DEFAULT_GRACE_SECONDS = 24 * 3600
MAX_GRACE_SECONDS = 30 * 24 * 3600

_Name = Annotated[str, line(MAX_NAME_CHARS), "For people."]
_Scopes = Annotated[tuple[Scope, ...], Bounds(1, 100)]
_Rate = Annotated[int, Bounds(1, MAX_RATE_LIMIT), "Requests in any 60 seconds."]
_Models = Annotated[
    tuple[Annotated[str, line(MAX_MODEL_CHARS)], ...], Bounds(0, MAX_MODELS), "Globs of models; empty for all."
]
_Policy = Annotated[str, line(100), "The id or the name of a policy."]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored API key. Times in Unix milliseconds.

    prefix: ``svc_`` and the first 6 hex digits, which identify the key in lists. digest: SHA-256 of the key, 64 hex
    digits, never shown. rate_limit: requests in any 60 seconds. created_by: the name of its creator. rotated_from: the
    id of the key it replaces. revoked_at: in the future during the grace period of a rotation. version: rises with
    every change. policy: an id, None for the policy of the settings. models: globs of the allowed models, empty for
    all. lineage: the id of the first key in its chain of rotations.
    """

    id: str
    name: str
    prefix: str
    digest: str = field(metadata={"json_name": None})
    scopes: tuple[Scope, ...]
    rate_limit: int
    created_at: int
    created_by: str
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    rotated_from: str | None = None
    version: int = 1
    policy: str | None = None
    models: tuple[str, ...] = ()
    lineage: str | None = field(default=None, metadata={"json_name": None})

    def status_at(self, now_at: int) -> Literal["active", "revoked", "expired"]:
        """Return the state at `now_at`. A revoked key stays revoked after its expiry."""
        if self.revoked_at is not None and self.revoked_at <= now_at:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now_at:
            return "expired"
        return "active"

    def principal(self) -> Principal:  # of any key, active or not
        return Principal(
            kind="key",
            id=self.id,
            name=self.name,
            scopes=frozenset(self.scopes),
            permissions=frozenset(),
            key_prefix=self.prefix,
            rate_limit=self.rate_limit,
            policy=self.policy,
            models=self.models,
            lineage=self.lineage or self.id,
        )


@dataclass(frozen=True, slots=True)
class NewKey:
    """The fields of a key to create. `services.keys` checks them."""

    name: _Name
    scopes: _Scopes
    rate_limit: _Rate = DEFAULT_RATE_LIMIT
    expires_at: Expiry | None = None
    policy: _Policy | None = None
    models: _Models = ()


KEEP_AT = -(2**62)
"""Keeps the expiry. No text decodes to this time."""
KEEP_TEXT = "\0"
"""Keeps a text field. It is neither a name nor an id."""


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """Changes of a key; None keeps a field. version: the change is refused if the record has another one."""

    name: _Name | None = None
    scopes: _Scopes | None = None
    rate_limit: _Rate | None = None
    expires_at: Expiry | None = KEEP_AT
    policy: _Policy | None = KEEP_TEXT
    models: _Models | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key and its record. The gateway returns it once and stores it nowhere."""

    key: str = field(repr=False)
    record: KeyRecord
