"""Entries of the access list, the valid forms of their values, and the decision over them. Pure: uses no store.

Theory of operation. Deny comes first: a matching entry of the deny list refuses the value. Then, if the allow list has
entries of that kind in scope, one of them must match. Otherwise the value is allowed. IP and CIDR entries are one kind,
because both concern the address. The scope of an entry is every caller (`global`) or one key.

`Rules` indexes the list for fast decisions: a dictionary for exact values, one for the networks of each prefix length,
and compiled globs. A list of thousands of entries costs a few look-ups.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.globs import glob
from gateway.domain.hosts import read_domain, suffixes
from gateway.domain.paging import PageQuery
from gateway.errors import InvalidRequest
from gateway.field_types import is_line

GLOBAL = "global"
MAX_ENTRIES = 10_000
MAX_VALUE_CHARS = 253
MAX_REASON_CHARS = 500
MAX_ENTRY_LIMIT = 500


class ListName(StrEnum):
    """The list that an entry belongs to."""

    ALLOW = "allow"
    DENY = "deny"


class EntryType(StrEnum):
    """The kind of value that an entry holds."""

    IP = "IP"
    CIDR = "CIDR"
    KEY = "KEY"
    MODEL = "MODEL"
    PROVIDER = "PROVIDER"
    TOOL = "TOOL"
    AGENT = "AGENT"
    DOMAIN = "DOMAIN"


class Subject(StrEnum):
    """The kind of value that a decision is about. IP and CIDR entries are both about the address."""

    ADDRESS = "address"
    KEY = "key"
    MODEL = "model"
    PROVIDER = "provider"
    TOOL = "tool"
    AGENT = "agent"
    DOMAIN = "domain"


OF_REQUEST = (Subject.ADDRESS, Subject.KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntry:
    """One entry. Times in Unix milliseconds.

    value: as `read_value` returns it. scope: ``global`` or the id of a key. hits: how often the entry decided; the
    store updates it about once a second. version: rises with every change except a hit.
    """

    id: str
    list_name: ListName = field(metadata={"json_name": "list"})
    entry_type: EntryType = field(metadata={"json_name": "type"})
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
        if self.entry_type in (EntryType.IP, EntryType.CIDR):
            return Subject.ADDRESS
        return Subject(self.entry_type.value.lower())

    def is_live(self, now_at: int) -> bool:
        return self.expires_at is None or self.expires_at > now_at


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter(PageQuery):
    """The entries to list, newest first. None matches everything."""

    list: ListName | None = None
    type: EntryType | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a value is allowed.

    entry: the entry that decided, None when none applies. is_listed: False when the allow list lacks the value.
    """

    is_allowed: bool
    entry: AccessEntry | None = None
    is_listed: bool = True


def read_value(entry_type: EntryType, text: str) -> str:
    """Return `text` in the canonical form of its type. Raises InvalidRequest with `param` ``value`` if it has none."""
    value = text.strip()
    if not 1 <= len(value) <= MAX_VALUE_CHARS or not is_line(value):
        raise InvalidRequest(f"value must be 1 to {MAX_VALUE_CHARS} printable characters.", param="value")
    read, form = _FORMS.get(entry_type, (str if entry_type is EntryType.KEY else str.casefold, ""))
    found = read(value)
    if found is None:
        raise InvalidRequest(f"value must be {form}.", param="value")
    return str(found)


def _read_network(text: str) -> object:
    try:
        return ipaddress.ip_network(text.removeprefix("::ffff:") if "." in text else text)
    except ValueError:
        return None


class Rules:
    """An immutable index of all live entries. The gateway builds a new one when an entry changes or expires.

    until_at: when the first entry expires. has: the subjects of all entries.
    """

    def __init__(self, entries: Iterable[AccessEntry], now_at: int) -> None:
        self._entries = tuple(entry for entry in entries if entry.is_live(now_at))
        self.until_at = min((entry.expires_at for entry in self._entries if entry.expires_at), default=2**62)
        self._indexes: dict[tuple[ListName, Subject, str], _EntryIndex] = {}
        for entry in self._entries:
            key = (entry.list_name, entry.subject, entry.scope)
            self._indexes.setdefault(key, _EntryIndex(entry.subject)).add(entry)
        self.has = frozenset(entry.subject for entry in self._entries)

    def later(self, now_at: int) -> "Rules":
        return Rules(self._entries, now_at)

    def has_allow(self, subject: Subject, key_id: str | None) -> bool:
        return any(True for _ in self._of(ListName.ALLOW, subject, key_id))

    def decide(self, subject: Subject, value: str, key_id: str | None) -> Decision:
        """Decide about one value. The empty string stands for an unknown value, which is on no list."""
        if subject not in self.has:
            return Decision(True)
        if denied := self.denied(subject, value, key_id):
            return Decision(False, denied)
        allow = list(self._of(ListName.ALLOW, subject, key_id))
        if not allow:
            return Decision(True)
        found = _find(allow, value)
        return Decision(True, found) if found else Decision(False, allow[0].first, is_listed=False)

    def denied(self, subject: Subject, value: str, key_id: str | None) -> AccessEntry | None:
        return _find(self._of(ListName.DENY, subject, key_id), value)

    def _of(self, list_name: ListName, subject: Subject, key_id: str | None) -> "Iterator[_EntryIndex]":
        for scope in (GLOBAL, key_id):
            if scope is not None and (index := self._indexes.get((list_name, subject, scope))) is not None:
                yield index


def _find(indexes: "Iterable[_EntryIndex]", value: str) -> AccessEntry | None:
    return next((found for index in indexes if (found := index.find(value)) is not None), None)


class _EntryIndex:
    """The entries of one list, subject and scope. first: the oldest."""

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
            self._globs.append((glob(entry.value), entry))
        else:
            self._exact.setdefault(entry.value, entry)

    def find(self, value: str) -> AccessEntry | None:
        if not value:
            return None
        match self._subject:
            case Subject.ADDRESS:
                return self._find_address(value)
            case Subject.KEY:
                return self._exact.get(value)
            case Subject.DOMAIN:
                # `example.com` covers the domain and its subdomains, `*.example.com` only the subdomains.
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


def is_duplicate(first: AccessEntry, second: AccessEntry) -> bool:
    """Return whether two entries are duplicates: same list, type, value and scope."""
    return all(getattr(first, name) == getattr(second, name) for name in ("list_name", "entry_type", "value", "scope"))


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address in `text`, or None if it is not one. An IPv4-mapped IPv6 address becomes the IPv4 address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# How a value is read, None for one of another form, and how it should look.
_FORMS: Mapping[EntryType, tuple[Callable[[str], object], str]] = {
    EntryType.IP: (read_address, "an IP address such as 192.0.2.7 or 2001:db8::7"),
    EntryType.CIDR: (_read_network, "a network such as 192.0.2.0/24, without bits set beyond its prefix"),
    EntryType.DOMAIN: (read_domain, "a domain such as example.com or *.example.com"),
}
# Patterns of the OpenAPI document: every text that matches is a valid value. `read_value` accepts more, such as
# addresses with a zone, IPv6 networks of any prefix length and domains in other alphabets.
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_GROUP = "[0-9A-Fa-f]{1,4}"
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_IPV4 = f"(?:{_OCTET}\\.){{3}}{_OCTET}"
_IPV6 = "|".join(
    (
        f"(?:{_GROUP}:){{7}}{_GROUP}",
        f"(?:{_GROUP}:){{1,7}}:",
        *(f"(?:{_GROUP}:){{{count}}}(?::{_GROUP}){{1,{7 - count}}}" for count in range(1, 7)),
        f"::(?:{_GROUP}(?::{_GROUP}){{0,6}})?",
    )
)


def _networks_4() -> str:
    """Return the pattern of all IPv4 networks without host bits."""
    forms = [_IPV4 + "(?:/32)?", "0\\.0\\.0\\.0/0"]
    for length in range(1, 32):
        whole, bits = divmod(length - 1, 8)  # octets before the one that the prefix ends in; bits in that one, less one
        zeros = "\\.0" * (3 - whole)
        octets = "|".join(str(octet) for octet in range(0, 256, 128 >> bits)) if bits < 7 else _OCTET
        forms.append(f"(?:{_OCTET}\\.){{{whole}}}(?:{octets}){zeros}/{length}")
    return "|".join(forms)


def _networks_6() -> str:
    """Return the pattern of IPv6 networks whose prefix ends at a hex digit and is followed by ``::``."""
    forms = [f"(?:{_IPV6})(?:/128)?", "::/0"]
    for whole in range(7):
        ends = [f"{_GROUP}::/{16 * whole + 16}"]
        ends += [f"[0-9A-Fa-f]{{{digits}}}{'0' * (4 - digits)}::/{16 * whole + 4 * digits}" for digits in (1, 2, 3)]
        forms.append(f"(?:{_GROUP}:){{{whole}}}(?:{'|'.join(ends)})")
    return "|".join(forms)


ADDRESS_PATTERN = f"^(?:{_IPV4}|{_IPV6})$"
NETWORK_PATTERN = f"^(?:{_networks_4()}|{_networks_6()})$"
DOMAIN_PATTERN = f"^(?:\\*\\.)?(?:localhost|(?:{_LABEL}\\.){{1,120}}{_LABEL})$"
