"""How an event is written for each receiver, whatever is in it."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.addresses import check_host
from gateway.domain.event_formats import SYSLOG_BYTES, WEBHOOK_BYTES, file_line, syslog_message, webhook_body
from gateway.domain.event_outputs import (
    FILE_PROMISE,
    SECRET_PROMISE,
    SYSLOG_PROMISE,
    EventSeverity,
    OutEvent,
    OutputFormat,
    OutputKind,
    kind_of_target,
    read_file_target,
    read_secret,
    read_syslog_target,
    webhook_headers,
)
from gateway.domain.providers import read_key
from gateway.errors import InvalidRequest

# RFC 5424 section 6, as strict as its grammar.
MESSAGE = re.compile(
    rb"<(\d{1,3})>1 (\S+) ([!-~]{1,255}) gateway - ([!-~]{1,32}) "
    rb"\[gateway@32473(?: [a-z]+=\"(?:[^\"\\\]]|\\[\"\\\]])*\")+\] (\{.*\})"
)
NASTY = 'x" ] \\ \n \x1b[31m \x00 \u2028 é 😀 <13>1 - forged'


def event(**data: Any) -> OutEvent:
    return OutEvent("evt_1", f"audit.{NASTY}", EventSeverity.HIGH, 1_800_000_000_123, {"id": "evt_1", **data})


def test_the_signature_is_that_of_the_specification() -> None:
    """Values: the example of the Standard Webhooks specification's libraries."""
    key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    headers = dict(webhook_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", body, key, now_at=1_614_265_330_000))
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!", "whsec_é"]
)
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_secret(text)
    assert raised.value.param == "secret" and (len(text) < 8 or text not in raised.value.message)


@given(st.from_regex(SECRET_PROMISE, fullmatch=True))
def test_every_secret_that_the_schema_promises_is_taken(text: str) -> None:
    if text.startswith("whsec_"):
        assert 24 <= len(read_secret(text)) <= 64
    else:
        assert read_key(text) == (text, None)


@pytest.mark.parametrize("length", range(24, 65))
def test_the_schema_promises_secrets_of_every_length(length: int) -> None:
    text = "whsec_" + base64.b64encode(bytes(length)).decode()
    assert re.fullmatch(SECRET_PROMISE, text) and len(read_secret(text)) == length


@given(st.from_regex(SYSLOG_PROMISE, fullmatch=True))
def test_every_syslog_server_that_the_schema_promises_is_taken(text: str) -> None:
    check_host(read_syslog_target(text)[1], allow_private=False)
    assert kind_of_target(text) is OutputKind.SYSLOG


@given(st.from_regex(FILE_PROMISE, fullmatch=True))
def test_every_file_that_the_schema_promises_is_taken(text: str) -> None:
    assert read_file_target(text) == text
    assert kind_of_target(text) is OutputKind.JSONL


def test_a_syslog_message_is_one_line_of_ascii_whatever_strangers_wrote() -> None:
    message = syslog_message(event(reason=NASTY), OutputFormat.JSON, host="host name\n")
    found = MESSAGE.fullmatch(message)
    assert found is not None
    assert int(found[1]) == 13 * 8 + 3 and found[2] == b"2027-01-15T08:00:00.123Z" and found[3] == b"host_name_"
    assert json.loads(found[5])["reason"] == NASTY
    assert all(32 <= byte < 127 for byte in message)


def test_a_long_event_goes_without_its_details_and_says_so() -> None:
    long = event(details={"text": "x" * 100_000}, reason="y" * 100_000)
    body = webhook_body(long, OutputFormat.JSON)
    assert len(body) <= WEBHOOK_BYTES
    assert json.loads(body)["data"] == {"id": "evt_1", "reason": "y" * 500, "is_cut": True}
    assert len(syslog_message(long, OutputFormat.JSON, host="h")) <= SYSLOG_BYTES


def test_a_line_of_a_file_is_one_line() -> None:
    line = file_line(event(reason=NASTY), OutputFormat.JSON)
    assert line.count(b"\n") == 1 and json.loads(line)["data"]["reason"] == NASTY


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("udp://siem.example:514", ("udp", "siem.example", 514)),
        ("tls://[2001:db8::1]:6514", ("tls", "2001:db8::1", 6514)),
        ("tcp://10.0.0.1:0", None),
        ("tcp://10.0.0.1:70000", None),
        ("tcp://10.0.0.1", None),
        ("tcp://a b:1", None),
        ("http://a:1", None),
        ("tcp://a:1/x", None),
    ],
)
def test_a_syslog_target_is_a_way_a_host_and_a_port(text: str, target: Any) -> None:
    if target is None:
        with pytest.raises(InvalidRequest):
            read_syslog_target(text)
    else:
        assert read_syslog_target(text) == target
