"""The rows of the access list on the internal API. The rules are in `services.access_list`."""

from dataclasses import dataclass
from typing import Literal

from gateway.app import Gateway
from gateway.domain.access_list import (
    ADDRESS_PATTERN,
    DOMAIN_PATTERN,
    GLOBAL,
    MAX_ENTRY_LIMIT,
    NETWORK_PATTERN,
    AccessEntry,
    EntryFilter,
    EntryType,
    ListName,
)
from gateway.domain.principals import Permission
from gateway.field_types import LINE_PATTERN
from gateway.operations.operation import choice, kind
from gateway.operations.rows import Noun, paging
from gateway.records import project
from gateway.services.access_list import WantedChange, WantedEntry
from gateway.store.tables import ENTRY_SORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveEntry:
    """Which entry to remove. force: even if that locks the caller out."""

    id: str
    force: Literal["true", "false"] = "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView(AccessEntry):
    """An entry and its present status."""

    status: Literal["active", "expired"]


def _view(gateway: Gateway, entry: AccessEntry) -> EntryView:
    return project(EntryView, entry, status="active" if entry.is_live(gateway.clock.now_at()) else "expired")


_KINDS = (
    kind(type={"enum": ["IP"]}, value={"pattern": ADDRESS_PATTERN}),
    kind(type={"enum": ["CIDR"]}, value={"pattern": NETWORK_PATTERN}),
    kind(type={"enum": ["DOMAIN"]}, value={"pattern": DOMAIN_PATTERN}),
    kind(type={"enum": ["KEY"]}, value={"pattern": LINE_PATTERN}, scope={"enum": [GLOBAL]}),
    kind(type={"enum": ["MODEL", "PROVIDER", "TOOL", "AGENT"]}, value={"pattern": LINE_PATTERN}),
)

_ACCESS = Noun("access", EntryView, Permission.ACCESS_READ, Permission.ACCESS_MANAGE, view=_view, service="access_list")

OPERATIONS = (
    _ACCESS.list(
        "List the entries of the access list, newest first.",
        takes=EntryFilter,
        query=(
            choice("list", ListName, "Only entries of this list."),
            choice("type", EntryType, "Only entries of this type."),
            *paging(MAX_ENTRY_LIMIT, sorts=ENTRY_SORTS),
        ),
    ),
    _ACCESS.create(
        WantedEntry,
        "Add an entry: `list` allow or deny, `type`, `value`, `scope`?, `reason`?, `expires_at`?, `force`?.",
        verb="add",
        kinds=_KINDS,
    ),
    _ACCESS.show("Show one entry of the access list."),
    _ACCESS.change(
        WantedChange,
        "Change `list`, `value`, `scope`, `reason` or `expires_at` (null: never); `version`, `If-Match` guard.",
    ),
    _ACCESS.remove(
        "Remove an entry; `force=true` in the query even if it locks the caller out. Applies in every worker.",
        takes=RemoveEntry,
        call=lambda gateway, caller, command: gateway.access_list.remove(
            caller, command.id, force=command.force == "true"
        ),
        query=(choice("force", ("true", "false"), "Even if it locks the caller out."),),
    ),
)
