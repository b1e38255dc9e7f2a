"""The shape of an API key's record. The key itself is in `CreatedKey` alone, once."""

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
DEFAULT_KEY_LIMIT = 100
MAX_KEY_LIMIT = 500
DEFAULT_GRACE_SECONDS = 24 * 3600
MAX_GRACE_SECONDS = 30 * 24 * 3600

_Name = Annotated[str, line(MAX_NAME_CHARS), "For people."]
_Scopes = Annotated[tuple[Scope, ...], Bounds(1, 100)]
_Rate = Annotated[int, Bounds(1, MAX_RATE_LIMIT), "Requests in any 60 seconds."]
_Models = Annotated[
    tuple[Annotated[str, line(MAX_MODEL_CHARS)], ...], Bounds(0, MAX_MODELS), "Globs of models; none for all."
]
_Policy = Annotated[str, line(100), "The id or the name of a policy."]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is stored of an API key. All times in Unix milliseconds.

    prefix: ``svc_`` and the first 6 hex digits, to recognize the key by. digest: SHA-256 of the key, 64 hex digits,
    never shown.
    rate_limit: requests in any 60 seconds. created_by: the maker's name. rotated_from: id of the key it replaces.
    revoked_at: in the future while a rotation's grace lasts. version: rises with every change.
    policy: id of its own one, None for that of the settings. models: globs of the models it may use, none for all.
    lineage: id of the first key of its row of rotations, its own for one that takes nobody's place.
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
    lineage: str | None = None

    def status(self, now_at: int) -> Literal["active", "revoked", "expired"]:
        """Return the state at `now_at`. A revoked key stays revoked after its expiry."""
        if self.revoked_at is not None and self.revoked_at <= now_at:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now_at:
            return "expired"
        return "active"

    def principal(self) -> Principal:
        """Return who calls with this key. Whether the key is still good is not looked at."""
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
    """What its maker says of a key to be made. Checked by `services.keys`, not here."""

    name: _Name
    scopes: _Scopes
    rate_limit: _Rate = DEFAULT_RATE_LIMIT
    expires_at: Expiry | None = None
    policy: _Policy | None = None
    models: _Models = ()


KEEP_AT = -(2**62)
"""The time that no text reads as: the expiry stays as it is."""
KEEP_TEXT = "\0"
"""The text that is no name and no id: the field stays as it is."""


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """What is to change of a key; None leaves a field as it is. version: refused unless the record still has it."""

    name: _Name | None = None
    scopes: _Scopes | None = None
    rate_limit: _Rate | None = None
    expires_at: Expiry | None = KEEP_AT
    policy: _Policy | None = KEEP_TEXT
    models: _Models | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key and its record. The only record that holds a key; it is answered once and kept nowhere."""

    key: str
    record: KeyRecord

    def __repr__(self) -> str:
        """Leave the key out, so that no log line can hold it."""
        return f"CreatedKey(record={self.record!r})"
