"""Events that the gateway sends out, and the outputs they go to. Pure. `event_formats` writes the events."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from gateway.domain.addresses import HOST_PROMISE, PORT_PROMISE
from gateway.domain.alerts import Alert
from gateway.domain.audit import AuditEvent
from gateway.domain.providers import REFERENCE_PROMISE
from gateway.errors import InvalidRequest
from gateway.schema import encode

REOPENED = "alert_reopened"
EventKind = Literal["audit", "alert"]
ALL_KINDS: tuple[EventKind, ...] = ("audit", "alert")
SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret of this standard
MAX_WAITING = 10_000
"""The most events that wait for one output. The oldest of further ones are dropped and counted."""

_SYSLOG_TARGET = re.compile(r"(udp|tcp|tls)://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):([0-9]{1,5})")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,57}\.jsonl")
SYSLOG_PROMISE = f"^(?:udp|tcp|tls)://{HOST_PROMISE}{PORT_PROMISE}$"
"""The pattern of the syslog targets that are valid even without `allow_private`."""
FILE_PROMISE = "^[A-Za-z0-9](?:\\.?[A-Za-z0-9_-]){0,28}\\.jsonl$"
"""The pattern of valid file names."""
SECRET_PROMISE = (
    "^(?:whsec_(?:(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==)?|(?:[A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{3}=)"
    f"|{REFERENCE_PROMISE})$"
)
"""The pattern of valid webhook secrets."""


class OutputKind(StrEnum):
    """The kind of receiver."""

    WEBHOOK = "webhook"
    SYSLOG = "syslog"
    JSONL = "jsonl"


class OutputFormat(StrEnum):
    """The form of the events of an output: the gateway's own JSON, or that of a schema which SIEMs read."""

    JSON = "json"
    OCSF = "ocsf"
    CEF = "cef"


class EventSeverity(StrEnum):
    """The severity of an event, lowest first."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return tuple(EventSeverity).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOutput:
    """One receiver of events.

    target: a URL, ``tcp://host:port``, or the name of a file. secret: a reference to the secret of the signature, never
    the secret. audit_position, alert_position: the last event that was sent. failed: events that the receiver refused.
    """

    id: str
    name: str
    kind: OutputKind
    target: str
    secret: str | None = field(default=None, repr=False)
    kinds: tuple[EventKind, ...] = ALL_KINDS
    min_severity: EventSeverity = EventSeverity.INFO
    format: OutputFormat = OutputFormat.JSON
    allow_private: bool = False
    enabled: bool = True
    created_at: int
    created_by: str
    version: int = 1
    audit_position: int = field(default=0, metadata={"json_name": None})
    alert_position: int = field(default=0, metadata={"json_name": None})
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    last_sent_at: int | None = None
    last_error: str | None = None
    last_error_at: int | None = None


@dataclass(frozen=True, slots=True)
class OutEvent:
    """One outgoing event. type: such as ``audit.api_key_created`` or ``alert.opened``. data: JSON without secrets."""

    id: str
    type: str
    severity: EventSeverity
    occurred_at: int
    data: Mapping[str, object]


def from_audit(event: AuditEvent) -> OutEvent:
    """Return the outgoing form of an audit event."""
    if event.action in ("shield_scan_block", "chat_blocked"):
        severity = EventSeverity.HIGH
    elif event.action.endswith("_review"):
        severity = EventSeverity.MEDIUM
    else:
        severity = EventSeverity.INFO if event.outcome == "success" else EventSeverity.LOW
    return OutEvent(event.id, f"audit.{event.action}", severity, event.occurred_at, encode(event))


def from_alert(alert: Alert, reopened: AuditEvent | None = None) -> OutEvent:
    """Return the outgoing form of an alert that was opened, or of one that the audit event `reopened` is about."""
    severity, data = EventSeverity(alert.severity.value), encode(alert)
    if reopened is not None:
        return OutEvent(reopened.id, "alert.reopened", severity, reopened.occurred_at, data)
    return OutEvent(alert.id, "alert.opened", severity, alert.first_seen_at, data)


def is_wanted(output: EventOutput, event: OutEvent) -> bool:
    """Return whether an output takes an event."""
    return event.type.partition(".")[0] in output.kinds and event.severity.rank >= output.min_severity.rank


def webhook_headers(
    event_id: str, body: bytes, key: bytes, *, now_at: int, content_type: str = "application/json"
) -> tuple[tuple[str, str], ...]:
    """Return the headers of the Standard Webhooks specification: id, time, and the signature over id, time and body."""
    stamp = str(now_at // 1000)
    signed = hmac.new(key, f"{event_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return (
        ("content-type", content_type),
        ("webhook-id", event_id),
        ("webhook-timestamp", stamp),
        ("webhook-signature", "v1," + base64.b64encode(signed).decode()),
    )


def read_secret(text: str) -> bytes:
    """Return the key in a secret: ``whsec_`` and 24 to 64 bytes in base64.

    Raises:
        InvalidRequest: the text is no such secret. The message never repeats it.
    """
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not text.startswith(SECRET_PREFIX) or not 24 <= len(key) <= 64:
        raise InvalidRequest("secret must be whsec_ and 24 to 64 bytes in base64.", param="secret")
    return key


def read_syslog_target(text: str) -> tuple[str, str, int]:
    """Return transport (``udp``, ``tcp`` or ``tls``), host and port. Raises InvalidRequest for any other text."""
    match = _SYSLOG_TARGET.fullmatch(text)
    if match is None or not 1 <= int(match[3]) <= 65535:
        raise InvalidRequest("target must be udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT.", param="target")
    return match[1], match[2].strip("[]").lower(), int(match[3])


def read_file_target(text: str) -> str:
    """Return the name of a file in the events folder. Raises InvalidRequest if the text is no file name, or a path."""
    if _FILE_NAME.fullmatch(text) is None or ".." in text:
        raise InvalidRequest(
            "target must be the name of a file, such as events.jsonl, without a folder.", param="target"
        )
    return text


def kind_of_target(text: str) -> OutputKind:
    """Return the kind of output by the scheme of its target. A file name has no scheme."""
    scheme, separator, _ = text.partition("://")
    if not separator:
        return OutputKind.JSONL
    return OutputKind.SYSLOG if scheme in ("udp", "tcp", "tls") else OutputKind.WEBHOOK
