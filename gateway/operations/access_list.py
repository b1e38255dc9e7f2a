"""The rows of the access list on the internal API. Rules are kept in `services.access_list`."""

from dataclasses import dataclass, field
from typing import Literal

from gateway.app import Gateway
from gateway.domain.access_forms import ADDRESS_PATTERN, DOMAIN_PATTERN, NETWORK_PATTERN
from gateway.domain.access_list import (
    DEFAULT_ENTRY_LIMIT,
    GLOBAL,
    MAX_ENTRY_LIMIT,
    AccessEntry,
    EntryFilter,
    EntryType,
    ListName,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.field_types import LINE_PATTERN
from gateway.operations.operation import Answer, ById, Door, Operation, choice, cursor, kind, limit
from gateway.operations.views import project
from gateway.services.access_list import WantedChange, WantedEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryQuery:
    """Which entries to list."""

    list: ListName | None = None
    type: EntryType | None = None
    limit: int = DEFAULT_ENTRY_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEntry(WantedChange):
    """What is to change of the entry `id`."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveEntry:
    """The entry `id`. force: even if its maker is locked out without it."""

    id: str
    force: Literal["true", "false"] = "false"


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry as it stands now."""

    id: str
    list_name: ListName = field(metadata={"json_name": "list"})
    entry_type: EntryType = field(metadata={"json_name": "type"})
    value: str
    scope: str
    reason: str | None
    status: Literal["active", "expired"]
    hits: int
    created_at: int
    created_by: str
    expires_at: int | None
    version: int


def view_entry(entry: AccessEntry, now_at: int) -> EntryView:
    """Return what is shown of an entry."""
    return project(EntryView, entry, status="active" if entry.is_live(now_at) else "expired")


async def list_entries(
    gateway: Gateway, who: Principal, wanted: EntryQuery, context: RequestContext
) -> Page[EntryView]:
    """Return a page of entries."""
    chosen = EntryFilter(list_name=wanted.list, entry_type=wanted.type, limit=wanted.limit, cursor=wanted.cursor)
    page = await gateway.access_list.page(chosen)
    now_at = gateway.clock.now_at()
    return Page(tuple(view_entry(entry, now_at) for entry in page.items), page.limit, page.next)


async def add_entry(gateway: Gateway, who: Principal, command: WantedEntry, context: RequestContext) -> EntryView:
    """Make an entry."""
    return view_entry(await gateway.access_list.add(who, command, context), gateway.clock.now_at())


async def show_entry(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> EntryView:
    """Return one entry."""
    return view_entry(await gateway.access_list.show(command.id), gateway.clock.now_at())


async def change_entry(gateway: Gateway, who: Principal, command: PatchEntry, context: RequestContext) -> EntryView:
    """Change an entry."""
    entry = await gateway.access_list.change(who, command.id, command, context)
    return view_entry(entry, gateway.clock.now_at())


async def remove_entry(gateway: Gateway, who: Principal, command: RemoveEntry, context: RequestContext) -> EntryView:
    """Remove an entry and show it a last time."""
    entry = await gateway.access_list.remove(who, command.id, context, force=command.force == "true")
    return view_entry(entry, gateway.clock.now_at())


_KINDS = (
    kind(type={"enum": ["IP"]}, value={"pattern": ADDRESS_PATTERN}),
    kind(type={"enum": ["CIDR"]}, value={"pattern": NETWORK_PATTERN}),
    kind(type={"enum": ["DOMAIN"]}, value={"pattern": DOMAIN_PATTERN}),
    kind(type={"enum": ["KEY"]}, value={"pattern": LINE_PATTERN}, scope={"enum": [GLOBAL]}),
    kind(type={"enum": ["MODEL", "PROVIDER", "TOOL", "AGENT"]}, value={"pattern": LINE_PATTERN}),
)

ACCESS_OPERATIONS = (
    Operation(
        name="access.list",
        route=("GET", "/api/access"),
        door=Door.SESSION,
        needs=Permission.ACCESS_READ,
        answer=Answer.PAGE,
        takes=EntryQuery,
        gives=EntryView,
        call=list_entries,
        query=(
            choice("list", ListName, "Only entries of this list."),
            choice("type", EntryType, "Only entries of this type."),
            limit(MAX_ENTRY_LIMIT, DEFAULT_ENTRY_LIMIT),
            cursor(),
        ),
        summary="List the entries of the access list, newest first.",
    ),
    Operation(
        name="access.add",
        route=("POST", "/api/access"),
        door=Door.SESSION,
        needs=Permission.ACCESS_MANAGE,
        takes=WantedEntry,
        gives=EntryView,
        call=add_entry,
        kinds=_KINDS,
        status=201,
        summary="Add an entry: `list` allow or deny, `type`, `value`, `scope`?, `reason`?, `expires_at`?, `force`?.",
    ),
    Operation(
        name="access.show",
        route=("GET", "/api/access/{id}"),
        door=Door.SESSION,
        needs=Permission.ACCESS_READ,
        takes=ById,
        gives=EntryView,
        call=show_entry,
        summary="Show one entry of the access list.",
    ),
    Operation(
        name="access.change",
        route=("PATCH", "/api/access/{id}"),
        door=Door.SESSION,
        needs=Permission.ACCESS_MANAGE,
        takes=PatchEntry,
        gives=EntryView,
        call=change_entry,
        summary="Change `list`, `value`, `scope`, `reason` or `expires_at` (null: never); `version`, `If-Match` guard.",
    ),
    Operation(
        name="access.remove",
        route=("DELETE", "/api/access/{id}"),
        door=Door.SESSION,
        needs=Permission.ACCESS_MANAGE,
        takes=RemoveEntry,
        gives=EntryView,
        call=remove_entry,
        query=(choice("force", ("true", "false"), "Even if it locks the caller out."),),
        summary="Remove an entry; `force=true` in the query even if it locks the caller out. Holds in every worker.",
    ),
)
