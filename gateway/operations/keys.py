"""The rows of API keys on the internal API, and the views of a key. The rules are in `services.keys`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.keys import (
    DEFAULT_GRACE_SECONDS,
    MAX_GRACE_SECONDS,
    MAX_KEY_LIMIT,
    ChangedKey,
    KeyRecord,
    NewKey,
)
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import ById
from gateway.operations.rows import Noun, PageOf100, paging
from gateway.operations.views import project
from gateway.schema import Bounds

Status = Literal["active", "revoked", "expired"]


@dataclass(frozen=True, slots=True)
class RotateKey:
    """The key `id`, and how long it still works beside the new one."""

    id: str
    grace_seconds: Annotated[int, Bounds(0, MAX_GRACE_SECONDS)] = DEFAULT_GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class KeyView:
    """The record of a key and its present status. Never holds the key itself."""

    id: str
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    rate_limit: int
    status: Status
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    rotated_from: str | None
    version: int
    policy: str | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreatedKeyView:
    """A new key. This answer alone contains the key itself."""

    id: str
    key: str = field(repr=False)
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    rate_limit: int
    status: Status
    created_at: int
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class RotatedKeyView(CreatedKeyView):
    """A new key that replaces another. rotated_from: the id of the replaced key."""

    rotated_from: str | None


def view_key(record: KeyRecord, now_at: int) -> KeyView:
    """Return the view of a key at `now_at`."""
    return project(KeyView, record, status=record.status(now_at))


async def create_key(gateway: Gateway, who: Principal, command: NewKey, context: RequestContext) -> CreatedKeyView:
    """Create a key and show it this once."""
    created = await gateway.keys.create(who, command, context)
    status = created.record.status(gateway.clock.now_at())
    return project(CreatedKeyView, created.record, key=created.key, status=status)


async def rotate_key(gateway: Gateway, who: Principal, command: RotateKey, context: RequestContext) -> RotatedKeyView:
    """Create a key that replaces another, and show it this once."""
    created = await gateway.keys.rotate(who, command.id, context, grace_seconds=command.grace_seconds)
    status = created.record.status(gateway.clock.now_at())
    return project(RotatedKeyView, created.record, key=created.key, status=status)


_KEYS = Noun(
    name="keys",
    path="/api/config/api-keys",
    service=lambda gateway: gateway.keys,
    gives=KeyView,
    view=lambda gateway, record: view_key(record, gateway.clock.now_at()),
    reads=Permission.API_KEYS_READ,
    manages=Permission.API_KEYS_MANAGE,
)

KEY_OPERATIONS = (
    _KEYS.list("List the API keys, newest first.", takes=PageOf100, query=paging(MAX_KEY_LIMIT)),
    _KEYS.create(
        NewKey,
        "Create a key: `name`, `scopes`, `rate_limit`?, `expires_at`?, `policy`?, `models`?. Shows `key` once.",
        gives=CreatedKeyView,
        call=create_key,
        has_secret=True,
    ),
    _KEYS.show("Show one API key's record, by id or prefix."),
    _KEYS.change(
        ChangedKey,
        "Change `name`, `scopes`, `rate_limit`, `expires_at`, `policy` or `models`; `version` or `If-Match`.",
    ),
    _KEYS.row(
        "revoke",
        "POST /{id}/revoke",
        "Revoke an API key. It is refused from now on, by every worker.",
        takes=ById,
        call=_KEYS.showing(lambda keys, who, command, context: keys.revoke(who, command.id, context)),
    ),
    _KEYS.row(
        "rotate",
        "POST /{id}/rotate",
        "Make a key that takes this one's place; this one is revoked after `grace_seconds` (24 h).",
        takes=RotateKey,
        gives=RotatedKeyView,
        call=rotate_key,
        status=201,
        has_secret=True,
    ),
)
