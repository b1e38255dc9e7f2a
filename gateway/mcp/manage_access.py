"""The tool that adds, removes and lists entries of the access list."""

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.domain.access_list import GLOBAL, MAX_ENTRY_LIMIT, EntryType, ListName
from gateway.errors import InvalidRequest
from gateway.field_types import Expiry
from gateway.mcp.tool import Effect, Tool, ToolCall, ToolOutput, one_line
from gateway.operations.access_list import EntryView
from gateway.schema import encode, json_schema
from gateway.strict_json import write_time

_NAMES = ("list_type", "entry_type", "value")


@dataclass(frozen=True, slots=True)
class ManageAccess:
    """What to do with the access list."""

    action: Annotated[
        Literal["list", "add", "remove"],
        "list (default); add: needs list_type, entry_type and value; remove: needs id, or those three.",
    ] = "list"
    list_type: Annotated[ListName | None, "allow or deny."] = None
    entry_type: Annotated[EntryType | None, "What the value is compared with."] = None
    value: Annotated[str | None, "An address, network, key, domain, or a name that may contain * and ?."] = None
    id: Annotated[str | None, "The entry to remove, acl_ and so on."] = None
    reason: Annotated[str | None, "Why, for later readers of the list."] = None
    expires_at: Annotated[Expiry | None, "When it expires, such as 12h or RFC 3339; never if left out."] = None
    force: Annotated[bool | None, "Do it even if it locks out you, this host or every API key."] = None


@dataclass(frozen=True, slots=True)
class EntryList:
    """The entries that were listed, newest first, or the one that was added or removed."""

    action: Literal["list", "add", "remove"]
    entries: tuple[EntryView, ...]


async def _manage(call: ToolCall, command: ManageAccess) -> ToolOutput:
    given = encode(command)
    values = {"list": given["list_type"], "type": given["entry_type"]}
    match command.action:
        case "add":
            _named(command)
            values |= {name: given[name] for name in ("value", "reason", "expires_at", "force")}
            entries: tuple[EntryView, ...] = (await call.operate("access.add", values),)
            head = "Added:"
        case "remove":
            wanted = {"id": await _entry_id(call, command), "force": "true" if command.force else None}
            entries = (await call.operate("access.remove", wanted),)
            head = "Removed:"
        case _:
            page = await call.operate("access.list", values | {"limit": MAX_ENTRY_LIMIT})
            entries = tuple(page.items)
            head = f"{len(entries)} entries, newest first:" if entries else "No entry is on the list."
            if page.next is not None:
                head = f"The newest {len(entries)} entries; name list_type or entry_type for fewer:"
    return ToolOutput("\n".join([head, *map(_line, entries)]), encode(EntryList(command.action, entries)))


async def _entry_id(call: ToolCall, command: ManageAccess) -> str:
    """Return the id of the entry to remove: as given, or of the entry with this list, type and value."""
    is_described = any(getattr(command, name) is not None for name in _NAMES)
    if command.id is None:
        if not is_described:
            raise InvalidRequest("id is missing, or list_type, entry_type and value: which entry?", param="id")
        return (await call.gateway.access_list.find_global(*_named(command))).id
    if is_described:
        raise InvalidRequest("Give id, or list_type, entry_type and value.", param="id")
    return command.id


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
    entry = f"- {view.id} {view.list_name.value} {view.entry_type.value} {one_line(view.value)}{scope}"
    reason = f" Reason: {one_line(view.reason)}" if view.reason else ""
    return f"{entry} ({view.status}, {view.hits} hits, by {one_line(view.created_by)}{until}){reason}"


MANAGE_ACCESS = Tool(
    name="manage_access",
    title="Manage the access list",
    description=(
        "Add, remove or list entries of the access list: who and what may pass the gateway, by address, network, API "
        "key, model, provider, tool, agent or domain. Deny entries come first; where allow entries of a kind exist, "
        "one of them must match. An entry that would lock out you, this host or every key is refused without force."
    ),
    takes=ManageAccess,
    gives=lambda: json_schema(EntryList, written=True),
    call=_manage,
    effect=Effect.DESTROYS,
    actions={
        "list": ("list_type", "entry_type"),
        "add": (*_NAMES, "reason", "expires_at", "force"),
        "remove": ("id", *_NAMES, "force"),
    },
)
