"""The tool that adds, removes and lists entries of the access list."""

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.access_list import GLOBAL, MAX_ENTRY_LIMIT, AccessEntry, EntryFilter, EntryType, ListName
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import InvalidRequest
from gateway.field_types import Expiry
from gateway.mcp.tool import Tool, ToolOutput, one_line
from gateway.operations.access_list import EntryView, view_entry
from gateway.schema import encode, json_schema
from gateway.services.access_list import WantedEntry
from gateway.strict_json import write_time


@dataclass(frozen=True, slots=True)
class ManageAccess:
    """What to do with the access list."""

    action: Annotated[
        Literal["list", "add", "remove"],
        "list (default); add: needs list_type, entry_type and value; remove: needs id, or those three.",
    ] = "list"
    list_type: Annotated[ListName | None, "allow or deny."] = None
    entry_type: Annotated[EntryType | None, "What the value is compared with."] = None
    value: Annotated[str | None, "An address, network, key, domain, or a name that may hold * and ?."] = None
    id: Annotated[str | None, "The entry to remove, acl_ and so on."] = None
    reason: Annotated[str | None, "Why, for whoever reads the list later."] = None
    expires_at: Annotated[Expiry | None, "When it stops to count, such as 12h or RFC 3339; never if left out."] = None
    force: Annotated[bool | None, "Do it even if it shuts out you, this host or every API key."] = None


@dataclass(frozen=True, slots=True)
class EntryList:
    """The entries that were listed, newest first, or the one that was added or removed."""

    action: Literal["list", "add", "remove"]
    entries: tuple[EntryView, ...]


async def _manage(gateway: Gateway, principal: Principal, command: ManageAccess, context: RequestContext) -> ToolOutput:
    match command.action:
        case "add":
            entries = [await _add(gateway, principal, command, context)]
            head = "Added:"
        case "remove":
            entries = [await _remove(gateway, principal, command, context)]
            head = "Removed:"
        case _:
            wanted = EntryFilter(list_name=command.list_type, entry_type=command.entry_type, limit=MAX_ENTRY_LIMIT)
            page = await gateway.access_list.page(wanted)
            entries = list(page.items)
            head = f"{len(entries)} entries, newest first:" if entries else "No entry is on the list."
            if page.next is not None:
                head = f"The newest {len(entries)} entries; name list_type or entry_type for fewer:"
    now_at = gateway.clock.now_at()
    views = tuple(view_entry(entry, now_at) for entry in entries)
    text = "\n".join([head, *(_line(view) for view in views)])
    return ToolOutput(text, encode(EntryList(command.action, views)))


async def _add(gateway: Gateway, principal: Principal, command: ManageAccess, context: RequestContext) -> AccessEntry:
    list_name, entry_type, value = _named(command)
    wanted = WantedEntry(
        list_name=list_name,
        entry_type=entry_type,
        value=value,
        reason=command.reason,
        expires_at=command.expires_at,
        force=bool(command.force),
    )
    return await gateway.access_list.create(principal, wanted, context)


async def _remove(
    gateway: Gateway, principal: Principal, command: ManageAccess, context: RequestContext
) -> AccessEntry:
    entry_id = command.id
    if entry_id is None:
        if (command.list_type, command.entry_type, command.value) == (None, None, None):
            raise InvalidRequest("id is missing, or list_type, entry_type and value: which entry?", param="id")
        entry_id = (await gateway.access_list.find(*_named(command))).id
    elif (command.list_type, command.entry_type, command.value) != (None, None, None):
        raise InvalidRequest("Give id, or list_type, entry_type and value.", param="id")
    return await gateway.access_list.remove(principal, entry_id, context, force=bool(command.force))


def _named(command: ManageAccess) -> tuple[ListName, EntryType, str]:
    if command.list_type is None:
        raise InvalidRequest("list_type is missing: allow or deny?", param="list_type")
    if command.entry_type is None:
        raise InvalidRequest(f"entry_type is missing: one of {', '.join(EntryType)}.", param="entry_type")
    if command.value is None:
        raise InvalidRequest("value is missing.", param="value")
    return command.list_type, command.entry_type, command.value


def _line(view: EntryView) -> str:
    scope = "" if view.scope == GLOBAL else f" for {view.scope}"
    until = "" if view.expires_at is None else f", until {write_time(view.expires_at)}"
    told = f"- {view.id} {view.list_name.value} {view.entry_type.value} {one_line(view.value)}{scope}"
    reason = f" Reason: {one_line(view.reason)}" if view.reason else ""
    return f"{told} ({view.status}, {view.hits} hits, by {one_line(view.created_by)}{until}){reason}"


MANAGE_ACCESS = Tool(
    name="manage_access",
    title="Manage the access list",
    description=(
        "Add, remove or list entries of the access list: who and what may pass the gateway, by address, network, API "
        "key, model, provider, tool, agent or domain. Deny entries come first; where allow entries of a kind exist, "
        "one of them must match. An entry that would shut out you, this host or every key is refused without force."
    ),
    takes=ManageAccess,
    gives=lambda: json_schema(EntryList, written=True),
    call=_manage,
    is_read_only=False,
    is_destructive=True,
    is_idempotent=False,
    actions={
        "list": ("list_type", "entry_type"),
        "add": ("list_type", "entry_type", "value", "reason", "expires_at", "force"),
        "remove": ("id", "list_type", "entry_type", "value", "force"),
    },
)
