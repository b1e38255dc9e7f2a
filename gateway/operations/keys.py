"""The rows of API keys on the internal API, and what is shown of a key. Rules are kept in `services.keys`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.keys import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_KEY_LIMIT,
    MAX_GRACE_SECONDS,
    MAX_KEY_LIMIT,
    ChangedKey,
    KeyRecord,
    NewKey,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import Answer, ById, Door, Operation, cursor, limit
from gateway.operations.views import project
from gateway.schema import Bounds

Status = Literal["active", "revoked", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFilter:
    """Which part of the keys to list."""

    limit: int = DEFAULT_KEY_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchKey(ChangedKey):
    """What is to change of the key `id`."""

    id: str


@dataclass(frozen=True, slots=True)
class RotateKey:
    """The key `id`, and how long it works beside the new one."""

    id: str
    grace_seconds: Annotated[int, Bounds(0, MAX_GRACE_SECONDS)] = DEFAULT_GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key's record as it stands now. Never holds the key."""

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
    """A new key, in this answer and never again."""

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
    """A new key that takes another's place. rotated_from: the other's id."""

    rotated_from: str | None


def view_key(record: KeyRecord, now_at: int) -> KeyView:
    """Return what is shown of a key."""
    return project(KeyView, record, status=record.status(now_at))


async def list_keys(gateway: Gateway, who: Principal, wanted: KeyFilter, context: RequestContext) -> Page[KeyView]:
    """Return a page of keys."""
    page = await gateway.keys.page(limit=wanted.limit, cursor=wanted.cursor)
    now_at = gateway.clock.now_at()
    return Page(tuple(view_key(record, now_at) for record in page.items), page.limit, page.next)


async def create_key(gateway: Gateway, who: Principal, command: NewKey, context: RequestContext) -> CreatedKeyView:
    """Make a key."""
    created = await gateway.keys.create(who, command, context)
    status = created.record.status(gateway.clock.now_at())
    return project(CreatedKeyView, created.record, key=created.key, status=status)


async def show_key(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> KeyView:
    """Return one key's record."""
    return view_key(await gateway.keys.show(command.id), gateway.clock.now_at())


async def change_key(gateway: Gateway, who: Principal, command: PatchKey, context: RequestContext) -> KeyView:
    """Change a key's record."""
    return view_key(await gateway.keys.change(who, command.id, command, context), gateway.clock.now_at())


async def revoke_key(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> KeyView:
    """Revoke a key."""
    return view_key(await gateway.keys.revoke(who, command.id, context), gateway.clock.now_at())


async def rotate_key(gateway: Gateway, who: Principal, command: RotateKey, context: RequestContext) -> RotatedKeyView:
    """Make a key that takes another's place."""
    created = await gateway.keys.rotate(who, command.id, context, grace_seconds=command.grace_seconds)
    status = created.record.status(gateway.clock.now_at())
    return project(RotatedKeyView, created.record, key=created.key, status=status)


KEY_OPERATIONS = (
    Operation(
        name="keys.list",
        route=("GET", "/api/config/api-keys"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_READ,
        answer=Answer.PAGE,
        takes=KeyFilter,
        gives=KeyView,
        call=list_keys,
        query=(limit(MAX_KEY_LIMIT, DEFAULT_KEY_LIMIT), cursor()),
        summary="List the API keys, newest first.",
    ),
    Operation(
        name="keys.create",
        route=("POST", "/api/config/api-keys"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_MANAGE,
        takes=NewKey,
        gives=CreatedKeyView,
        call=create_key,
        status=201,
        has_secret=True,
        summary="Create a key: `name`, `scopes`, `rate_limit`?, `expires_at`?, `policy`?, `models`?. Shows `key` once.",
    ),
    Operation(
        name="keys.show",
        route=("GET", "/api/config/api-keys/{id}"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_READ,
        takes=ById,
        gives=KeyView,
        call=show_key,
        summary="Show one API key's record, by id or prefix.",
    ),
    Operation(
        name="keys.change",
        route=("PATCH", "/api/config/api-keys/{id}"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_MANAGE,
        takes=PatchKey,
        gives=KeyView,
        call=change_key,
        summary="Change `name`, `scopes`, `rate_limit`, `expires_at`, `policy` or `models`; `version` or `If-Match`.",
    ),
    Operation(
        name="keys.revoke",
        route=("POST", "/api/config/api-keys/{id}/revoke"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_MANAGE,
        takes=ById,
        gives=KeyView,
        call=revoke_key,
        summary="Revoke an API key. It is refused from now on, by every worker.",
    ),
    Operation(
        name="keys.rotate",
        route=("POST", "/api/config/api-keys/{id}/rotate"),
        door=Door.SESSION,
        needs=Permission.API_KEYS_MANAGE,
        takes=RotateKey,
        gives=RotatedKeyView,
        call=rotate_key,
        status=201,
        has_secret=True,
        summary="Make a key that takes this one's place; this one is revoked after `grace_seconds` (24 h).",
    ),
)
