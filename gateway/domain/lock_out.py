"""Who a change of the access list would lock out: its author, callers on this host, every key or every chat. Pure.

Theory of operation. `shut_out` compares the list before the change with the list after it: now, and at each later
expiry that may matter. The end of a narrow deny entry about somebody else does not matter, because it admits nobody
whom the check covers. Each comparison costs a pass over the list. If many entries about others expire, only the first
and the last expiries are checked.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from gateway.domain.access_list import GLOBAL, OF_REQUEST, AccessEntry, ListName, Rules, Subject, read_address

LOOPBACK = ("127.0.0.1", "::1")
_OF_CHAT = (Subject.MODEL, Subject.PROVIDER, Subject.AGENT)
_BROAD_BITS = 16
_MAX_OTHER_EXPIRIES = 16

Entries = Sequence[AccessEntry]


def shut_out(
    before: Entries, after: Entries, *, ip: str | None, key_id: str | None, keys: Sequence[str], now_at: int
) -> str | None:
    """Return who the change from `before` to `after` would lock out, now or later, as text. None: it locks out nobody.

    ip, key_id: of the author of the change, None where there is none. keys: the ids of all live keys.
    """
    for at in (now_at, *_expiries({*before, *after}, ip, key_id, now_at)):
        refused = _shut_out_at(at, before, after, ip, key_id, keys)
        if refused is not None:
            return f"{refused} would be refused" + ("" if at == now_at else " when an entry expires")
    return None


def _shut_out_at(
    at: int, before: Entries, after: Entries, ip: str | None, key_id: str | None, keys: Sequence[str]
) -> str | None:
    if _refuses_every_chat(after, keys, at) and not _refuses_every_chat(before, keys, at):
        return "Every chat"
    before = [entry for entry in before if entry.subject in OF_REQUEST]
    after = [entry for entry in after if entry.subject in OF_REQUEST]
    old, new = Rules(before, at), Rules(after, at)
    for subject, value in ((Subject.ADDRESS, ip), (Subject.KEY, key_id)):
        if value and _is_allowed(old, subject, value, key_id) and not _is_allowed(new, subject, value, key_id):
            return f"Your own {subject.value}"
    for address in LOOPBACK:
        if new.denied(Subject.ADDRESS, address, None) and not old.denied(Subject.ADDRESS, address, None):
            return f"Every caller on this host ({address})"
    if _any_loopback(old) and not _any_loopback(new):
        return "Every caller on this host (127.0.0.1)"
    if _any_key(old, before, keys) and not _any_key(new, after, keys):
        return "Every API key"
    return None


def _expiries(entries: Iterable[AccessEntry], ip: str | None, key_id: str | None, now_at: int) -> list[int]:
    """Return the expiry times after which somebody may be locked out, sorted."""
    known = [address for text in (*LOOPBACK, ip or "") if (address := read_address(text))]
    own: set[int] = set()  # of entries about this host or the author of the change
    others: set[int] = set()
    for entry in entries:
        if entry.expires_at is None or not entry.is_live(now_at):
            continue
        if entry.subject is Subject.ADDRESS:
            network = ipaddress.ip_network(entry.value)
            if any(address in network for address in known):
                own.add(entry.expires_at)
            elif entry.list_name is ListName.ALLOW or network.prefixlen <= _BROAD_BITS:
                others.add(entry.expires_at)
        elif _refuses_all(entry) or (entry.subject is Subject.KEY and entry.value == key_id):
            own.add(entry.expires_at)
        elif entry.subject is Subject.KEY:
            others.add(entry.expires_at)
    checked = sorted(others)
    if len(checked) > _MAX_OTHER_EXPIRIES:
        checked = checked[: _MAX_OTHER_EXPIRIES // 2] + checked[-_MAX_OTHER_EXPIRIES // 2 :]
    return sorted(own.union(checked))


def _refuses_all(entry: AccessEntry) -> bool:
    if entry.list_name is not ListName.DENY or entry.subject not in _OF_CHAT:
        return False
    return "*" in entry.value and not entry.value.strip("*?") and entry.value.count("?") <= 1


def _refuses_every_chat(entries: Iterable[AccessEntry], keys: Sequence[str], at: int) -> bool:
    scopes = {entry.scope for entry in entries if entry.is_live(at) and _refuses_all(entry)}
    return GLOBAL in scopes or (bool(keys) and scopes.issuperset(keys))


def _is_allowed(rules: Rules, subject: Subject, value: str, key_id: str | None) -> bool:
    return rules.decide(subject, value, key_id).is_allowed


def _any_loopback(rules: Rules) -> bool:
    return any(_is_allowed(rules, Subject.ADDRESS, address, None) for address in LOOPBACK)


def _any_key(rules: Rules, entries: Iterable[AccessEntry], keys: Sequence[str]) -> bool:
    """Return whether at least one key is admitted from at least one address."""
    scopes = {entry.scope for entry in entries}
    allowed = (key_id for key_id in keys if _is_allowed(rules, Subject.KEY, key_id, key_id))
    admitted = {key_id if key_id in scopes else None for key_id in allowed}
    return any(_is_allowed(rules, Subject.ADDRESS, ip, scope) for scope in admitted for ip in _edges(entries))


def _edges(entries: Iterable[AccessEntry]) -> Iterator[str]:
    """Yield the addresses at which a decision can change. If none of them is allowed, no address is."""
    yield from ("0.0.0.0", "::")  # noqa: S104
    for entry in entries:
        if entry.subject is Subject.ADDRESS:
            network = ipaddress.ip_network(entry.value)
            if entry.list_name is ListName.ALLOW:
                yield str(network[0])
            with suppress(ipaddress.AddressValueError):  # there is no address after the last one
                yield str(network[-1] + 1)
