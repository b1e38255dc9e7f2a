"""How an event is written: for each kind of output, as the gateway's JSON, as OCSF or as CEF. Pure.

OCSF is the Open Cybersecurity Schema Framework (https://schema.ocsf.io). An alert, and an audit event about a text that
the shield reviewed or blocked, is a Detection Finding. Sign-ins and refused keys are Authentication, changes of users
are Account Change, and all other audit events are API Activity. What the schema has no place for is in `unmapped`.

CEF is the Common Event Format: one line with a header of seven fields and an extension of `key=value`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway import __version__
from gateway.domain.event_outputs import EventSeverity, OutEvent, OutputFormat
from gateway.strict_json import write_json, write_time

WEBHOOK_BYTES = 18_000
SYSLOG_BYTES = 8_000
LINE_BYTES = 1_000_000
OCSF_VERSION = "1.3.0"
PRODUCT, VENDOR = "Security Gateway", "Security Gateway"
CONTENT_TYPES = {
    OutputFormat.JSON: "application/json",
    OutputFormat.OCSF: "application/json",
    OutputFormat.CEF: "text/plain; charset=utf-8",
}
_FACILITY = 13  # log audit (RFC 5424 section 6.2.1)
_LONG_FIELDS = ("details", "before", "after", "evidence")
_SYSLOG_SEVERITY = dict(zip(EventSeverity, (6, 5, 4, 3, 2), strict=True))
_CEF_SEVERITY = dict(zip(EventSeverity, (1, 3, 5, 8, 10), strict=True))

_FINDING, _AUTHENTICATION, _ACCOUNT, _API = 2004, 3002, 3001, 6003
_OTHER = 99
# By audit action: class and activity of OCSF. Every other action is an API Activity.
_CLASSES = {
    **dict.fromkeys(("chat_blocked", "shield_scan_block", "shield_scan_review"), (_FINDING, 1)),
    **dict.fromkeys(("user_signed_in", "sign_in_failed", "sign_in_throttled"), (_AUTHENTICATION, 1)),
    **dict.fromkeys(("api_key_refused", "session_refused"), (_AUTHENTICATION, 1)),
    **dict.fromkeys(("user_signed_out", "session_ended", "sessions_ended"), (_AUTHENTICATION, 2)),
    "user_created": (_ACCOUNT, 1),
    "user_password_changed": (_ACCOUNT, 3),
    "user_changed": (_ACCOUNT, _OTHER),
}
# By the last word of an audit action: activity of an API Activity.
_ACTIVITIES = {
    **dict.fromkeys(("created", "added", "registered", "imported", "accepted", "made", "raised", "generated"), 1),
    **dict.fromkeys(("exported", "read"), 2),
    **dict.fromkeys(("changed", "rotated", "reloaded", "reopened", "overridden", "acknowledged", "resolved"), 3),
    **dict.fromkeys(("removed", "revoked", "deleted", "pruned"), 4),
}
_FINDING_STATUS = {"open": 1, "acknowledged": 2, "investigating": 2, "suppressed": 3, "false_positive": 3}
# Fields that have a place in every class, so that `unmapped` does not repeat them.
_MAPPED = ("id", "timestamp", "title", "description", "request_id")


def webhook_body(event: OutEvent, form: OutputFormat) -> bytes:
    """Return the payload. JSON has type, timestamp and data. An event that is too long goes without its details."""
    about = {"type": event.type, "timestamp": write_time(event.occurred_at)}
    return _line(event, form, WEBHOOK_BYTES, lambda one: write_json(about | {"data": dict(one.data)}))


def syslog_message(event: OutEvent, form: OutputFormat, *, host: str) -> bytes:
    """Return one message of RFC 5424: structured data for filters, and the whole event. All but CEF is ASCII."""
    head = f"<{_FACILITY * 8 + _SYSLOG_SEVERITY[event.severity]}>1 {write_time(event.occurred_at)} {_token(host, 255)}"
    fields = (("id", event.id), ("type", event.type), ("severity", event.severity.value))
    known = " ".join(f'{name}="{_param(value)}"' for name, value in fields)
    head += f" gateway - {_token(event.type.partition('.')[2] or event.type, 32)} [gateway@32473 {known}] "
    max_bytes = SYSLOG_BYTES - len(head) if form is OutputFormat.JSON else SYSLOG_BYTES
    line = _line(event, form, max_bytes, lambda one: _ascii(one.data))
    return head.encode("ascii", "replace") + (_ascii(json.loads(line)) if form is OutputFormat.OCSF else line)


def file_line(event: OutEvent, form: OutputFormat) -> bytes:
    """Return the event as one line of a file. JSON has all details, however long."""
    about = {"id": event.id, "type": event.type, "severity": event.severity.value}
    about["timestamp"] = write_time(event.occurred_at)
    return _line(event, form, LINE_BYTES, lambda _: write_json(about | {"data": dict(event.data)})) + b"\n"


def ocsf(event: OutEvent) -> dict[str, object]:
    """Return the event as OCSF, with every field that its class requires."""
    data = event.data
    kind, _, action = event.type.partition(".")
    if kind == "alert":
        of_class, activity = _FINDING, 1 if action == "opened" else 2
    else:
        known = _CLASSES.get(action), _ACTIVITIES.get(action.rpartition("_")[2], _OTHER)
        of_class, activity = known[0] or (_API, known[1])
    given = {name: value for name, value in data.items() if value is not None and name not in _MAPPED}
    common: dict[str, object] = {
        "class_uid": of_class,
        "category_uid": of_class // 1000,
        "activity_id": activity,
        "type_uid": of_class * 100 + activity,
        "severity_id": event.severity.rank + 1,
        "time": event.occurred_at,
        "message": str(data.get("title") or action or event.type),
        "metadata": {
            "version": OCSF_VERSION,
            "product": {"name": PRODUCT, "vendor_name": VENDOR, "version": __version__},
            "uid": event.id,
            "event_code": event.type,
            **_given(correlation_uid=data.get("request_id")),
        },
        "unmapped": given,
    }
    if activity == _OTHER:
        common["activity_name"] = action or event.type
    return common | (_finding(event) if of_class == _FINDING else _activity(event, of_class))


def _finding(event: OutEvent) -> dict[str, object]:
    data = event.data
    first = {"created_time": event.occurred_at, **_given(desc=data.get("description"))}
    info = {"uid": str(data.get("fingerprint") or event.id), "title": str(data.get("title") or event.type), **first}
    status = _FINDING_STATUS.get(str(data.get("status", "open")), 4)
    return {"finding_info": info, "status_id": status, "is_alert": True, **_given(count=data.get("count"))}


def _activity(event: OutEvent, of_class: int) -> dict[str, object]:
    data = event.data
    status = _given(status_detail=data.get("reason"), status_id=1 if data.get("outcome", "success") == "success" else 2)
    account = _given(
        name=data.get("actor") or "unknown", uid=data.get("actor_id"), credential_uid=data.get("key_prefix")
    )
    source = _given(ip=data.get("ip")) or {"name": str(data.get("source") or PRODUCT)}
    base: dict[str, object] = {"actor": {"user": account}, "src_endpoint": source, **status}
    if of_class == _AUTHENTICATION:
        return base | {"user": account, "service": {"name": PRODUCT}}
    if of_class == _ACCOUNT:
        return base | {"user": {"uid": str(data.get("resource_id") or "unknown")}}
    resource = _given(type=data.get("resource_type"), uid=data.get("resource_id"))
    return (
        base
        | {"api": {"operation": event.type.partition(".")[2] or event.type}}
        | _given(resources=resource and [resource])
    )


def cef(event: OutEvent) -> str:
    """Return the event as one line of CEF."""
    data = event.data
    name = str(data.get("title") or event.type.partition(".")[2] or event.type).replace("_", " ")
    head = (VENDOR, PRODUCT, __version__, event.type, name, str(_CEF_SEVERITY[event.severity]))
    fields = _given(
        rt=event.occurred_at,
        externalId=event.id,
        cat=event.type.partition(".")[0],
        act=data.get("action"),
        outcome=data.get("outcome") or data.get("status"),
        reason=data.get("reason") or data.get("description"),
        suser=data.get("actor"),
        suid=data.get("actor_id"),
        src=data.get("ip"),
        requestClientApplication=data.get("user_agent"),
        cnt=data.get("count"),
        **_custom(1, "request", data.get("request_id")),
        **_custom(2, "agent", data.get("agent")),
        **_custom(3, "key", data.get("key_prefix")),
        **_custom(4, "resource", data.get("resource_id")),
        **_custom(5, "direction", data.get("direction") or data.get("origin")),
        **_custom(6, "rule", data.get("rule")),
        msg=json.dumps(data["details"], separators=(",", ":"), ensure_ascii=False) if data.get("details") else None,
    )
    parts = [text.replace("\\", "\\\\").replace("|", "\\|") for text in map(_one_line, head)]
    extension = " ".join(f"{key}={_cef_value(value)}" for key, value in fields.items())
    return f"CEF:0|{'|'.join(parts)}|{extension}"


def _line(event: OutEvent, form: OutputFormat, max_bytes: int, as_json: Callable[[OutEvent], bytes]) -> bytes:
    """Return the event as one line of its form. An event that is too long goes without its details."""
    writers: Mapping[OutputFormat, Callable[[OutEvent], bytes]] = {
        OutputFormat.JSON: as_json,
        OutputFormat.OCSF: lambda one: write_json(ocsf(one)),
        OutputFormat.CEF: lambda one: cef(one).encode(),
    }
    write = writers[form]
    line = write(event)
    return line if len(line) <= max_bytes else write(replace(event, data=_brief(event.data)))


def _ascii(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None and value != "" and value != {}}


def _custom(number: int, label: str, value: object) -> dict[str, object]:
    """Return a custom field of CEF and its label, if there is a value."""
    return {} if value in (None, "") else {f"cs{number}Label": label, f"cs{number}": value}


def _one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _cef_value(value: object) -> str:
    return _one_line(str(value)).replace("\\", "\\\\").replace("=", "\\=")


def _brief(data: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value[:500] if isinstance(value, str) else value
        for name, value in data.items()
        if name not in _LONG_FIELDS
    } | {"is_cut": True}


def _token(text: str, max_chars: int) -> str:
    """Return a header field: visible ASCII without blanks."""
    return "".join(sign if "!" <= sign <= "~" else "_" for sign in text[:max_chars]) or "-"


def _param(text: str) -> str:
    """Escape a value of structured data (RFC 5424 section 6.3.3)."""
    plain = "".join(sign if " " <= sign <= "~" else "_" for sign in text[:200])
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")
