"""`access list|add|remove`: the use-cases of the internal API for a host without a browser."""

import argparse
from enum import StrEnum
from typing import TypeVar

from gateway.app import Lasting
from gateway.cli.command import OK, Command, Console, nothing, shown, table
from gateway.cli.manage import context, moment, read_expiry, with_records
from gateway.clock import SystemClock
from gateway.domain.access_list import GLOBAL, MAX_ENTRY_LIMIT, AccessEntry, EntryFilter, EntryType, ListName
from gateway.domain.principals import local
from gateway.errors import InvalidRequest
from gateway.operations.access_list import view_entry
from gateway.schema import encode
from gateway.services.access_list import WantedEntry

Word = TypeVar("Word", bound=StrEnum)


def list_entries(options: argparse.Namespace, console: Console) -> int:
    """List every entry, newest first."""

    async def work(gateway: Lasting) -> int:
        entries: list[AccessEntry] = []
        cursor = None
        while True:
            page = await gateway.access_list.page(EntryFilter(limit=MAX_ENTRY_LIMIT, cursor=cursor))
            entries += page.items
            if (cursor := page.next) is None:
                break
        now_at = gateway.clock.now_at()
        if options.json:
            console.print_json([encode(view_entry(entry, now_at)) for entry in entries])
            return OK
        rows = [
            (
                entry.id,
                entry.list_name.value,
                entry.entry_type.value,
                shown(entry.value),
                entry.scope,
                str(entry.hits),
                moment(entry.expires_at) or "never",
                shown(entry.reason or ""),
            )
            for entry in entries
        ]
        console.print(table(rows, ("ID", "LIST", "TYPE", "VALUE", "SCOPE", "HITS", "EXPIRES", "REASON")))
        return OK

    return with_records(options, work)


def add(options: argparse.Namespace, console: Console) -> int:
    """Add an entry and print its id."""
    wanted = WantedEntry(
        list_name=read_word(ListName, options.list.lower(), "--list"),
        entry_type=read_word(EntryType, options.type.upper(), "--type"),
        value=options.value,
        scope=options.scope,
        reason=options.reason,
        expires_at=read_expiry(options.expires, SystemClock().now_at()) if options.expires else None,
        force=options.force,
    )

    async def work(gateway: Lasting) -> int:
        entry = await gateway.access_list.add(local("cli"), wanted, context(gateway))
        console.note(f"{entry.list_name.value} {entry.entry_type.value} {shown(entry.value)} is on the access list:")
        console.print(entry.id)
        return OK

    return with_records(options, work)


def remove(options: argparse.Namespace, console: Console) -> int:
    """Remove an entry. A running gateway no longer counts it at its next request."""

    async def work(gateway: Lasting) -> int:
        entry = await gateway.access_list.remove(local("cli"), options.id, context(gateway), force=options.force)
        console.note(f"{entry.id} ({entry.entry_type.value} {shown(entry.value)}) is removed")
        return OK

    return with_records(options, work)


def read_word(words: type[Word], text: str, flag: str) -> Word:
    """Return the word of this text."""
    known = [word.value for word in words]
    if text not in known:
        raise InvalidRequest(f"{flag} must be one of {', '.join(known)}", param=flag)
    return words(text)


def declare_add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `access add`."""
    parser.add_argument("--list", required=True, help="allow or deny")
    parser.add_argument("--type", required=True, help=f"one of {', '.join(EntryType)}")
    parser.add_argument("--value", required=True, help="address, network, key, domain, or a name that may hold * and ?")
    parser.add_argument("--scope", default=GLOBAL, metavar="KEY", help="id or prefix of the one key it is about")
    parser.add_argument("--reason", help="why, for whoever reads the list later")
    parser.add_argument("--expires", metavar="AGE|DATE", help="such as 90d or 2030-01-31; never if left out")
    _declare_force(parser)


def declare_remove(parser: argparse.ArgumentParser) -> None:
    """Declare the entry's id."""
    parser.add_argument("id", help="id (acl_…) of the entry")
    _declare_force(parser)


def _declare_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="even if it shuts out this host or every API key")


COMMANDS = (
    Command(
        "access list",
        "List the access list.",
        "gateway.pyz access list --json",
        nothing,
        list_entries,
        has_json=True,
    ),
    Command(
        "access add",
        "Let in or keep out an address, key, model, provider, tool, agent or domain.",
        "gateway.pyz access add --list deny --type CIDR --value 192.0.2.0/24 --reason abuse --expires 7d",
        declare_add,
        add,
    ),
    Command(
        "access remove",
        "Remove an entry of the access list.",
        "gateway.pyz access remove acl_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        declare_remove,
        remove,
    ),
)
