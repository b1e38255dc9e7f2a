"""Audit events, the filter over them and their hash chain. Pure: what is written where is the store's affair.

The chain. An event's hash is the SHA-256 of the hash before it (64 ASCII hex digits; zeros before the first) followed
by the event's canonical JSON: every field but `prev_hash` and `hash` under the names of the API, keys sorted, no
blanks, UTF-8, the time as Unix milliseconds; `agent` and `direction` only if they are not null, since events of older
versions have neither. `seq` counts from 1 without gaps within one instance. So a change, a gap,
a swap or a missing piece in the middle breaks the chain at that place; its end is guarded by what the store keeps
beside it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from gateway.records import record
from gateway.strict_json import json_writer

GENESIS_HASH = "0" * 64
MAX_AUDIT_LIMIT = 1000
DEFAULT_AUDIT_LIMIT = 100

Outcome = Literal["success", "refused", "failed"]

canonical_text = json_writer(sort_keys=True)
"""Write a value as JSON with sorted keys and no blanks."""


@record
class AuditEvent:
    """One thing that happened, for ever.

    occurred_at: Unix milliseconds, ``timestamp`` in JSON. source: which part saw it, such as ``api``, ``mcp``, ``cli``.
    actor: the name of who did it. agent: what the caller calls itself, a claim. direction: ``inbound`` or ``outbound``,
    where something was found in a text. before, after: the changed fields of the resource. details: JSON values only.
    seq, prev_hash, hash: 0 and empty until the store has appended the event.
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


# The fields of an event that its hash covers, under the names of the API.
_HASHED = tuple(
    (one.metadata.get("json_name", one.name), one.name)
    for one in fields(AuditEvent)
    if one.name not in ("prev_hash", "hash")
)
# Those that came later: a hash covers them where they are not None.
_NEWER = ("agent", "direction")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which events to list, newest first. None means any. since, until: Unix milliseconds, both included.

    search: found without regard to ASCII case in action, actor, agent, key, address, request id, resource or details.
    request_id: of the event, or one of those that a sum of refusals names.
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
    limit: int = DEFAULT_AUDIT_LIMIT
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a check of the chain found.

    events: how many were read and found good. first_broken_seq, reason: None when all is well.
    """

    ok: bool
    events: int
    first_broken_seq: int | None = None
    reason: str | None = None


@record
class ChainHead:
    """The last link of an instance's chain, or a place in it."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place of a chain up to which it was found whole at a time."""

    instance_id: str
    seq: int
    hash: str
    occurred_at: int


def canonical(event: AuditEvent, *, seq: int | None = None) -> bytes:
    """Return the canonical JSON of `event`, without `prev_hash` and `hash`, as if its place were `seq`.

    Raises:
        ValueError, TypeError: `details`, `before` or `after` holds something that is no JSON value.
    """
    hashed = {name: getattr(event, field) for name, field in _HASHED}
    hashed["seq"] = event.seq if seq is None else seq
    for name in _NEWER:
        if hashed[name] is None:
            del hashed[name]
    return canonical_text(hashed).encode()


def chain(prev_hash: str, event: AuditEvent, *, seq: int | None = None) -> str:
    """Return the hash of `event` at its place, or at `seq`, after the event whose hash is `prev_hash`."""
    return hashlib.sha256(prev_hash.encode() + canonical(event, seq=seq)).hexdigest()


def link(head: ChainHead, event: AuditEvent) -> AuditEvent:
    """Return `event` as the next one after `head`, with `seq`, `prev_hash` and `hash` set."""
    return placed(event, head, ChainHead(head.seq + 1, chain(head.hash, event, seq=head.seq + 1)))


def placed(event: AuditEvent, before: ChainHead, after: ChainHead) -> AuditEvent:
    """Return `event` as it stands in its chain between two heads, the second of which is its own."""
    return replace(event, seq=after.seq, prev_hash=before.hash, hash=after.hash)


def check_links(head: ChainHead, events: Iterable[AuditEvent]) -> tuple[ChainHead, ChainReport]:
    """Follow `events` in the order of the chain from `head`; return the last good place and the report.

    Stops at the first event that is not what its hash or its place says.
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
