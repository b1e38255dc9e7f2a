"""Entries of the access list, the forms of their values, and the decision over them. Pure: knows no store.

Theory of operation. Deny first: an entry of the deny list that matches refuses. Then, if the allow list has entries
of that kind in scope, one of them must match. Else it is allowed. IP and CIDR are one kind: both are about the
address. An entry is in scope for everybody (`global`) or for one key. `Rules` is the list made ready: exact values in
dictionaries, networks by the length of their prefix, globs as patterns, so that a list of thousands costs a few
look-ups.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache

from gateway.domain.hosts import read_domain, suffixes
from gateway.errors import InvalidRequest
from gateway.field_types import is_line

GLOBAL = "global"
MAX_ENTRIES = 10_000
MAX_VALUE_CHARS = 253
MAX_REASON_CHARS = 500
DEFAULT_ENTRY_LIMIT = 100
MAX_ENTRY_LIMIT = 500
_MAPPED = "::ffff:"
_NEVER_AT = 2**62


class ListName(StrEnum):
    """Which list an entry stands on."""

    ALLOW = "allow"
    DENY = "deny"


class EntryType(StrEnum):
    """What the value of an entry is compared with."""

    IP = "IP"
    CIDR = "CIDR"
    KEY = "KEY"
    MODEL = "MODEL"
    PROVIDER = "PROVIDER"
    TOOL = "TOOL"
    AGENT = "AGENT"
    DOMAIN = "DOMAIN"


class Subject(StrEnum):
    """What is decided upon: the kind of an entry, where IP and CIDR are one."""

    ADDRESS = "address"
    KEY = "key"
    MODEL = "model"
    PROVIDER = "provider"
    TOOL = "tool"
    AGENT = "agent"
    DOMAIN = "domain"


_SUBJECTS = {EntryType.IP: Subject.ADDRESS, EntryType.CIDR: Subject.ADDRESS} | {
    one: Subject(one.value.lower()) for one in EntryType if one not in (EntryType.IP, EntryType.CIDR)
}
OF_REQUEST = (Subject.ADDRESS, Subject.KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntry:
    """One entry. Times in Unix milliseconds.

    value: in the form of `read_value`. scope: ``global`` or a key's id. hits: how often it refused or let in; written
    about once a second. version: rises with every change, not with hits.
    """

    id: str
    list_name: ListName
    entry_type: EntryType
    value: str
    scope: str = GLOBAL
    reason: str | None = None
    created_at: int
    created_by: str
    expires_at: int | None = None
    hits: int = 0
    version: int = 1

    @property
    def subject(self) -> Subject:
        """What the entry decides upon."""
        return _SUBJECTS[self.entry_type]

    def is_live(self, now_at: int) -> bool:
        """Tell whether the entry still counts."""
        return self.expires_at is None or self.expires_at > now_at


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries to list, newest first. None means any."""

    list_name: ListName | None = None
    entry_type: EntryType | None = None
    limit: int = DEFAULT_ENTRY_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something may pass. entry: what refused it or let it in; None when no entry is about it."""

    is_allowed: bool
    entry: AccessEntry | None = None
    is_listed: bool = True


OPEN = Decision(True)


def read_value(entry_type: EntryType, text: str) -> str:
    """Return `text` in the one form that a value of this type has.

    Raises:
        InvalidRequest: it is no such value. `param` is ``value``.
    """
    value = text.strip()
    if not 1 <= len(value) <= MAX_VALUE_CHARS or not is_line(value):
        raise InvalidRequest(f"value must be 1 to {MAX_VALUE_CHARS} printable characters.", param="value")
    match entry_type:
        case EntryType.IP:
            address = read_address(value)
            if address is None:
                raise InvalidRequest("value must be an IP address such as 192.0.2.7 or 2001:db8::7.", param="value")
            return str(address)
        case EntryType.CIDR:
            try:
                return str(ipaddress.ip_network(value.removeprefix(_MAPPED) if "." in value else value))
            except ValueError:
                raise InvalidRequest(
                    "value must be a network such as 192.0.2.0/24, without bits set beyond its prefix.", param="value"
                ) from None
        case EntryType.DOMAIN:
            domain = read_domain(value)
            if domain is None:
                raise InvalidRequest("value must be a domain such as example.com or *.example.com.", param="value")
            return domain
        case EntryType.KEY:
            return value
        case _:
            return value.casefold()


class Rules:
    """All live entries, ready to decide. Never changed; made anew when an entry is, or expires.

    until_at: when the first entry expires. has: the subjects that any entry is about.
    """

    __slots__ = ("_entries", "_tables", "has", "until_at")

    def __init__(self, entries: Iterable[AccessEntry], now_at: int) -> None:
        self._entries = tuple(entry for entry in entries if entry.is_live(now_at))
        self.until_at = min((entry.expires_at for entry in self._entries if entry.expires_at), default=_NEVER_AT)
        self._tables: dict[tuple[ListName, Subject, str], _Table] = {}
        for entry in self._entries:
            where = (entry.list_name, entry.subject, entry.scope)
            self._tables.setdefault(where, _Table(entry.subject)).add(entry)
        self.has = frozenset(entry.subject for entry in self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def later(self, now_at: int) -> "Rules":
        """Return the rules as they stand at `now_at`."""
        return Rules(self._entries, now_at)

    def has_allow(self, subject: Subject, key_id: str | None) -> bool:
        """Tell whether the allow list is about this subject, for this key."""
        return any(True for _ in self._of(ListName.ALLOW, subject, key_id))

    def decide(self, subject: Subject, value: str, key_id: str | None) -> Decision:
        """Decide upon one value. "" is a value that nobody knows: it is on no list."""
        if subject not in self.has:
            return OPEN
        denied = self.denied(subject, value, key_id)
        return Decision(False, denied) if denied else self._allowed(subject, value, key_id)

    def denied(self, subject: Subject, value: str, key_id: str | None) -> AccessEntry | None:
        """Return the entry of the deny list that `value` is on."""
        return _find(self._of(ListName.DENY, subject, key_id), value)

    def _allowed(self, subject: Subject, value: str, key_id: str | None) -> Decision:
        tables = list(self._of(ListName.ALLOW, subject, key_id))
        if not tables:
            return OPEN
        found = _find(tables, value)
        return Decision(True, found) if found else Decision(False, tables[0].first, is_listed=False)

    def _of(self, list_name: ListName, subject: Subject, key_id: str | None) -> "Iterator[_Table]":
        for scope in (GLOBAL, key_id):
            if scope is not None and (table := self._tables.get((list_name, subject, scope))) is not None:
                yield table


def _find(tables: "Iterable[_Table]", value: str) -> AccessEntry | None:
    for table in tables:
        if (found := table.find(value)) is not None:
            return found
    return None


class _Table:
    """The entries of one list, subject and scope. first: the oldest."""

    __slots__ = ("_exact", "_globs", "_networks", "_subject", "first")

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._exact: dict[str, AccessEntry] = {}
        self._globs: list[tuple[re.Pattern[str], AccessEntry]] = []
        self._networks: dict[tuple[int, int], dict[int, AccessEntry]] = {}
        self.first: AccessEntry | None = None

    def add(self, entry: AccessEntry) -> None:
        self.first = self.first or entry
        if self._subject is Subject.ADDRESS:
            network = ipaddress.ip_network(entry.value)
            host_bits = network.max_prefixlen - network.prefixlen
            prefixes = self._networks.setdefault((network.version, host_bits), {})
            prefixes.setdefault(int(network.network_address) >> host_bits, entry)
        elif self._subject not in (Subject.KEY, Subject.DOMAIN) and any(sign in entry.value for sign in "*?["):
            self._globs.append((_glob(entry.value), entry))
        else:
            self._exact.setdefault(entry.value, entry)

    def find(self, value: str) -> AccessEntry | None:
        """Return the entry that `value` is on."""
        if not value:
            return None
        match self._subject:
            case Subject.ADDRESS:
                return self._find_address(value)
            case Subject.KEY:
                return self._exact.get(value)
            case Subject.DOMAIN:
                # `example.com` is the domain and all below it, `*.example.com` only what is below.
                for number, suffix in enumerate(suffixes(value)):
                    found = self._exact.get(suffix) or (self._exact.get(f"*.{suffix}") if number else None)
                    if found:
                        return found
                return None
        folded = value.strip().casefold()
        if found := self._exact.get(folded):
            return found
        return next((entry for pattern, entry in self._globs if pattern.match(folded)), None)

    def _find_address(self, value: str) -> AccessEntry | None:
        address = read_address(value)
        if address is None:
            return None
        number = int(address)
        for (version, host_bits), prefixes in self._networks.items():
            if version == address.version and (found := prefixes.get(number >> host_bits)) is not None:
                return found
        return None


@lru_cache(MAX_ENTRIES)
def _glob(value: str) -> re.Pattern[str]:
    return re.compile(translate(value))


def without(entries: Sequence[AccessEntry], entry_id: str) -> list[AccessEntry]:
    """Return the entries but the one of this id."""
    return [entry for entry in entries if entry.id != entry_id]


def same(first: AccessEntry, second: AccessEntry) -> bool:
    """Tell whether two entries say the same of the same thing."""
    return (first.list_name, first.entry_type, first.value, first.scope) == (
        second.list_name,
        second.entry_type,
        second.value,
        second.scope,
    )


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that `text` is, an IPv4 one where it is mapped into IPv6; None if it is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
