"""Events in the schemas that SIEMs read: OCSF has every required field, CEF is one line that a parser reads back."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.alerts import Alert, AlertSource
from gateway.domain.audit import AuditEvent
from gateway.domain.event_formats import SYSLOG_BYTES, WEBHOOK_BYTES, cef, file_line, ocsf, syslog_message, webhook_body
from gateway.domain.event_outputs import EventSeverity, OutEvent, OutputFormat, from_alert, from_audit
from gateway.shield.detections import Severity

# The required fields of OCSF 1.3 (https://schema.ocsf.io), as paths: those of every class, and those of each.
EVERY = ("activity_id", "category_uid", "class_uid", "type_uid", "severity_id", "time", "metadata.version")
EVERY += ("metadata.product.name", "metadata.product.vendor_name")
REQUIRED = {
    2004: ("finding_info.uid", "finding_info.title"),
    3001: ("user.uid",),
    3002: ("user.name", "service.name"),
    6003: ("actor.user.name", "api.operation", "src_endpoint"),
}
# The key of a CEF field: an `=` in a value is escaped.
KEY = re.compile(r"(?:^| )([A-Za-z0-9]+)=")
NASTY = "a|b=c\\d\ne\x1b[31m cs1=forged \u2028é"


def event(action: str, **fields: Any) -> OutEvent:
    base = {"id": "evt_1", "occurred_at": 1_800_000_000_123, "source": "api", "actor": "ann", "action": action}
    return from_audit(AuditEvent(**(base | fields)))


def alert(**fields: Any) -> OutEvent:
    base: dict[str, Any] = {"id": "alr_1", "title": "A key leaves", "description": "A reply contains a key."}
    base |= {"severity": Severity.CRITICAL, "source": AlertSource.SHIELD, "rule": "aws-key", "fingerprint": "f" * 64}
    return from_alert(Alert(**(base | {"first_seen_at": 1, "last_seen_at": 2} | fields)))


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[name]
    return value


@pytest.mark.parametrize(
    ("one", "of_class", "activity"),
    [
        (alert(), 2004, 1),
        (event("chat_blocked", outcome="refused"), 2004, 1),
        (event("shield_scan_review"), 2004, 1),
        (event("user_signed_in"), 3002, 1),
        (event("sign_in_failed", outcome="refused", actor=""), 3002, 1),
        (event("sessions_ended"), 3002, 2),
        (event("user_created", resource_type="user", resource_id="usr_1"), 3001, 1),
        (event("api_key_created", resource_type="api_key", resource_id="key_1"), 6003, 1),
        (event("provider_changed"), 6003, 3),
        (event("api_key_revoked", ip="192.0.2.7"), 6003, 4),
        (event("audit_exported"), 6003, 2),
        (event("mcp:shield_scan:invoked"), 6003, 99),
        (OutEvent("evt_1", "test", EventSeverity.INFO, 1, {"message": "A test."}), 6003, 99),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_an_event_has_what_its_class_of_ocsf_requires(one: OutEvent, of_class: int, activity: int) -> None:
    written = ocsf(one)
    assert (written["class_uid"], written["activity_id"]) == (of_class, activity)
    assert written["type_uid"] == of_class * 100 + activity and written["category_uid"] == of_class // 1000
    for path in (*EVERY, *REQUIRED[of_class]):
        assert at(written, path) not in (None, "", {}), path
    assert 1 <= at(written, "severity_id") <= 5
    assert activity != 99 or written["activity_name"]


def test_severity_status_and_what_has_no_place_are_kept() -> None:
    written = ocsf(alert())
    assert (written["severity_id"], written["status_id"]) == (5, 1)
    assert at(written, "unmapped.rule") == "aws-key" and at(written, "unmapped.last_seen")
    assert at(ocsf(event("chat_blocked", ip="192.0.2.7")), "unmapped.ip") == "192.0.2.7"
    refused = event("api_key_refused", outcome="refused", reason="revoked", details={"a": 1}, hash="h" * 64)
    assert (ocsf(refused)["status_id"], ocsf(refused)["status_detail"]) == (2, "revoked")
    assert at(ocsf(refused), "unmapped.details") == {"a": 1} and at(ocsf(refused), "unmapped.hash") == "h" * 64
    assert ocsf(from_alert(alert_record(), reopened=AuditEvent(id="evt_2")))["activity_id"] == 2


def alert_record() -> Alert:
    base: dict[str, Any] = {"id": "alr_1", "title": "t", "description": "d", "severity": Severity.LOW, "rule": "r"}
    return Alert(**base, source=AlertSource.AUTH, fingerprint="f", first_seen_at=1, last_seen_at=2)


def read_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """Return the header and the extension of a line as a SIEM reads them."""
    parts = re.split(r"(?<!\\)(?:\\\\)*\|", line, maxsplit=7)
    _, *pieces = KEY.split(parts[7])
    return parts, {key: re.sub(r"\\(.)", r"\1", value) for key, value in zip(pieces[::2], pieces[1::2], strict=True)}


def test_a_line_of_cef_has_seven_fields_of_header_and_an_extension() -> None:
    one = event("chat_blocked", outcome="refused", ip="192.0.2.7", agent="order-bot", request_id="req_1")
    parts, fields = read_cef(cef(one))
    assert parts[0] == "CEF:0" and parts[4:7] == ["audit.chat_blocked", "chat blocked", "8"]
    assert fields["src"] == "192.0.2.7" and fields["rt"] == "1800000000123" and fields["suser"] == "ann"
    assert (fields["cs1Label"], fields["cs1"], fields["cs2Label"], fields["cs2"]) == (
        "request",
        "req_1",
        "agent",
        "order-bot",
    )
    assert read_cef(cef(alert()))[0][6] == "10"


@given(st.text(max_size=60))
@pytest.mark.parametrize("form", [OutputFormat.OCSF, OutputFormat.CEF])
def test_what_strangers_write_adds_no_line_and_no_field(form: OutputFormat, text: str) -> None:
    one = event(f"x{text}", agent=text, reason=NASTY + text, details={"text": text})
    line = file_line(one, form).decode()
    assert line.endswith("\n") and line.count("\n") == 1
    if form is OutputFormat.OCSF:
        assert json.loads(line)["unmapped"]["agent"] == text
        return
    parts, fields = read_cef(line)
    assert len(parts) == 8 and "cs1" not in fields
    assert fields["reason"].startswith("a|b=c\\d e [31m cs1=forged")


@pytest.mark.parametrize("form", [OutputFormat.OCSF, OutputFormat.CEF])
def test_an_event_that_is_too_long_goes_without_its_details(form: OutputFormat) -> None:
    long = event("chat_blocked", details={"text": "x" * 100_000}, reason="y" * 100_000)
    assert len(webhook_body(long, form)) <= WEBHOOK_BYTES
    assert len(syslog_message(long, form, host="h")) <= SYSLOG_BYTES + 300
