"""Whom a change of the access list would shut out: its maker, the callers on this host, every API key. Pure."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from gateway.domain.access_list import OF_REQUEST, AccessEntry, ListName, Rules, Subject

LOOPBACK = ("127.0.0.1", "::1")


def shut_out(
    before: Sequence[AccessEntry],
    after: Sequence[AccessEntry],
    *,
    ip: str | None,
    key_id: str | None,
    keys: Sequence[str],
    now_at: int,
) -> str | None:
    """Return whom the change from `before` to `after` would refuse, in words; None: nobody who gets in now.

    ip, key_id: of the maker of the change; None where there is none. keys: the ids of all keys that are live.
    """
    before = [entry for entry in before if entry.subject in OF_REQUEST]
    after = [entry for entry in after if entry.subject in OF_REQUEST]
    old, new = Rules(before, now_at), Rules(after, now_at)
    for subject, value in ((Subject.ADDRESS, ip), (Subject.KEY, key_id)):
        if value is None or _is_allowed(new, subject, value, key_id):
            continue
        if _is_allowed(old, subject, value, key_id):
            return f"Your own {subject.value}"
    for address in LOOPBACK:
        if new.denied(Subject.ADDRESS, address, None) and not old.denied(Subject.ADDRESS, address, None):
            return f"Every caller on this host ({address})"
    if _any_loopback(old) and not _any_loopback(new):
        return "Every caller on this host (127.0.0.1)"
    if _any_key(old, before, keys) and not _any_key(new, after, keys):
        return "Every API key"
    return None


def _is_allowed(rules: Rules, subject: Subject, value: str, key_id: str | None) -> bool:
    return rules.decide(subject, value, key_id).is_allowed


def _any_loopback(rules: Rules) -> bool:
    return any(_is_allowed(rules, Subject.ADDRESS, address, None) for address in LOOPBACK)


def _any_key(rules: Rules, entries: Iterable[AccessEntry], keys: Sequence[str]) -> bool:
    """Tell whether some key is let in from some address."""
    scopes = {entry.scope for entry in entries}
    found: dict[str | None, bool] = {}
    for key_id in keys:
        if _is_allowed(rules, Subject.KEY, key_id, key_id):
            scope = key_id if key_id in scopes else None
            if scope not in found:
                found[scope] = any(_is_allowed(rules, Subject.ADDRESS, ip, scope) for ip in _edges(entries))
            if found[scope]:
                return True
    return False


def _edges(entries: Iterable[AccessEntry]) -> Iterator[str]:
    """Give the addresses at which a decision can change. If none of them is allowed, no address is."""
    yield from ("0.0.0.0", "::")  # noqa: S104
    networks = [
        (entry.list_name, ipaddress.ip_network(entry.value)) for entry in entries if entry.subject is Subject.ADDRESS
    ]
    yield from (str(network[0]) for name, network in networks if name is ListName.ALLOW)
    for _, network in networks:
        with suppress(ipaddress.AddressValueError):  # nothing comes after the last address of all
            yield str(network[-1] + 1)
