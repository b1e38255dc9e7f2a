"""Audit events, the filter over them and their hash chain. Pure: the store decides what is written where.

The chain. The hash of an event is the SHA-256 of the previous hash (64 ASCII hex digits; zeros before the first event)
followed by the canonical JSON of the event. The canonical JSON has every field except `prev_hash` and `hash`, under its
API name, with sorted keys, no blanks, UTF-8, and the time as Unix milliseconds. `agent` and `direction` are left out
when they are null, because events of older versions lack them.

`seq` counts from 1 without gaps within one instance. A change, a gap, a swap or a missing part in the middle therefore
breaks the chain at that event. A record that the store keeps beside the chain protects its end.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from gateway.domain.paging import PageQuery
from gateway.strict_json import json_writer

GENESIS_HASH = "0" * 64
MAX_AUDIT_LIMIT = 1000

Outcome = Literal["success", "refused", "failed"]

canonical_text = json_writer(sort_keys=True)
"""Encode a value as JSON with sorted keys and no blanks."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event of the audit log.

    occurred_at: Unix milliseconds. source: the part that recorded it, such as ``api``, ``mcp`` or ``cli``. actor: the
    name of the principal. agent: the name that the caller gave, unchecked. direction: ``inbound`` or ``outbound`` for
    detections in a text. before, after: the changed fields of the resource. details: JSON values only. seq, prev_hash,
    hash: 0 and empty until the store has appended the event.
    """

    id: str
    seq: int = 0
    occurred_at: int = field(default=0, metadata={"json_name": "timestamp"})
    source: str = ""
    action: str = ""
    outcome: Outcome = "success"
    reason: str | None = None
    actor: str = ""
    actor_type: str = ""
    actor_id: str | None = None
    key_prefix: str | None = None
    agent: str | None = None
    direction: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    resource_type: str | None = None
    resource_id: str | None = None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    request_id: str | None = None
    instance_id: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    prev_hash: str = ""
    hash: str = ""


# The fields that the hash covers, by their API name.
_HASHED = tuple(
    (one.metadata.get("json_name", one.name), one.name)
    for one in fields(AuditEvent)
    if one.name not in ("prev_hash", "hash")
)
# Fields of later versions: the hash covers them only when they are not None.
_OMITTED_IF_NULL = ("agent", "direction")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter(PageQuery):
    """The events to list, newest first. None matches all. since, until: Unix milliseconds, both inclusive.

    search: in action, actor, agent, key, address, request id, resource or details; ASCII case does not matter.
    request_id: of the event, or one that a sum of refusals names or that the event marks as harmless.
    """

    source: str | None = None
    action: str | None = None
    actor: str | None = None
    resource_type: str | None = None
    since: int | None = None
    until: int | None = None
    exclude_actions: tuple[str, ...] = ()
    search: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The result of a verification. events: the number of good ones. first_broken_seq, reason: None when `ok`."""

    ok: bool
    events: int
    first_broken_seq: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last link of an instance's chain, or an earlier one."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The position up to which a chain was verified, and when."""

    instance_id: str
    seq: int
    hash: str
    occurred_at: int


def canonical(event: AuditEvent) -> bytes:
    """Return the canonical JSON of `event`. Raises ValueError or TypeError if one of its mappings is not JSON."""
    hashed = {name: getattr(event, field) for name, field in _HASHED}
    for name in _OMITTED_IF_NULL:
        if hashed[name] is None:
            del hashed[name]
    return canonical_text(hashed).encode()


def chain(prev_hash: str, event: AuditEvent) -> str:
    """Return the hash of `event` after the event whose hash is `prev_hash`."""
    return hashlib.sha256(prev_hash.encode() + canonical(event)).hexdigest()


def link(head: ChainHead, event: AuditEvent) -> AuditEvent:
    """Return `event` as the successor of `head`, with `seq`, `prev_hash` and `hash` set."""
    event = replace(event, seq=head.seq + 1, prev_hash=head.hash)
    return replace(event, hash=chain(head.hash, event))


def check_links(head: ChainHead, events: Iterable[AuditEvent]) -> tuple[ChainHead, ChainReport]:
    """Verify `events` in the order of the chain from `head`. Return the last good link and the report.

    Stops at the first event whose content, position or predecessor does not match its hash.
    """
    good = 0
    for event in events:
        reason = None
        if event.seq != head.seq + 1:
            reason = f"event {head.seq + 1} is missing or out of order"
        elif event.prev_hash != head.hash:
            reason = f"event {event.seq} does not follow the event before it"
        elif _recomputed(head.hash, event) != event.hash:
            reason = f"event {event.seq} was changed"
        if reason is not None:
            return head, ChainReport(ok=False, events=good, first_broken_seq=head.seq + 1, reason=reason)
        head = ChainHead(event.seq, event.hash)
        good += 1
    return head, ChainReport(ok=True, events=good)


def _recomputed(prev_hash: str, event: AuditEvent) -> str | None:
    try:
        return chain(prev_hash, event)
    except (ValueError, TypeError):
        return None
