"""A request in, an answer out: status, shape, headers, order of refusals. Drives the real dispatch over fakes."""

import gzip
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gateway.api import reading
from gateway.domain.alerts import AlertFilter, AlertSource, AlertStatus
from gateway.domain.audit import AuditFilter
from gateway.errors import AuditUnavailable, Overloaded, ShieldUnavailable, UpstreamUnavailable
from gateway.http.messages import HttpError
from gateway.llm.base import UpstreamFault
from gateway.operations.every import ALL_OPERATIONS, PUBLIC_OPERATIONS
from gateway.services.scans import ScanText
from gateway.shield.detections import Direction, Severity
from gateway.strict_json import read_json

ALL = "svc_" + "a" * 40
NONE = "svc_" + "b" * 40
REVOKED = "svc_" + "c" * 40
SLOW = "svc_" + "d" * 40
FLEET = "svc_" + "e" * 40
SCAN = "/api/v1/shield/scan"
KEYED = [operation for operation in PUBLIC_OPERATIONS if operation.door.value == "key"]


async def test_scan_is_answered_in_the_envelope_with_every_header(house: Any) -> None:
    reply = await house.ask("POST", SCAN, {"text": "hello"})
    assert reply.status == 200
    assert reply.json == {
        "ok": True,
        "data": {
            "verdict": "ALLOW", "score": 0, "detections": [], "action": "none", "elapsed_ms": 0.1,
            "stats": {"total": 0, "critical": 0, "high": 0, "medium": 0, "low": 0, "categories": {}},
        },
        "meta": {"request_id": reply.headers["x-request-id"], "timestamp": "2023-11-14T22:13:20.000Z"},
    }  # fmt: skip
    assert reply.headers == {
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "x-service-request-id": reply.headers["x-request-id"],
        "x-request-id": reply.headers["x-request-id"],
        "x-ratelimit-limit": "1000",
        "x-ratelimit-remaining": "999",
        "x-ratelimit-reset": "60",
    }
    assert reply.headers["x-request-id"].startswith("req_")


async def test_scan_passes_the_command_and_where_it_came_from(house: Any) -> None:
    await house.ask(
        "POST", SCAN, {"text": "hé", "direction": "outbound"}, headers={"user-agent": "curl", "x-service-agent": "bot"}
    )
    principal, command, context = house.scans.seen[0]
    assert command == ScanText("hé", Direction.OUTBOUND)
    assert principal.name == "all"
    assert (context.ip, context.user_agent, context.agent) == ("192.0.2.1", "curl", "bot")


@pytest.mark.parametrize("operation", KEYED, ids=lambda operation: operation.name)
@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        (None, 401, "missing_api_key"),
        ("nope", 401, "invalid_api_key"),
        (ALL[:-1], 401, "invalid_api_key"),
        (REVOKED, 403, "key_revoked"),
        (NONE, 403, "insufficient_scope"),
    ],
)
async def test_operation_is_refused_without_a_good_key_of_its_scope(
    house: Any, operation: Any, key: str | None, status: int, code: str
) -> None:
    method, path = operation.route
    reply = await house.ask(method, path, {} if method == "POST" else None, key=key)
    assert (reply.status, reply.code) == (status, code)
    assert reply.json["error"]["type"] == ("authentication_error" if status == 401 else "permission_error")
    assert ("www-authenticate" in reply.headers) == (status == 401)
    assert key is None or key not in reply.body.decode()


async def test_scope_failure_counts_and_says_what_is_left(house: Any) -> None:
    for remaining in (2, 1, 0):
        reply = await house.ask("POST", SCAN, {"text": "x"}, key=NONE)
        assert (reply.code, reply.headers["x-ratelimit-remaining"]) == ("insufficient_scope", str(remaining))
    reply = await house.ask("POST", SCAN, {"text": "x"}, key=NONE)
    assert reply.code == "rate_limited"


async def test_call_over_the_rate_limit_is_429_until_the_window_frees_one(house: Any) -> None:
    assert (await house.ask("GET", "/api/v1/alerts", key=SLOW)).status == 200
    house.clock.seconds += 20.5
    for _ in range(3):
        reply = await house.ask("GET", "/api/v1/alerts", key=SLOW)
        assert (reply.status, reply.code) == (429, "rate_limited")
        assert reply.json["error"]["type"] == "rate_limit_error"
        assert reply.headers["retry-after"] == "40"
        assert reply.headers["x-ratelimit-limit"] == "1"
        assert reply.headers["x-ratelimit-remaining"] == "0"
        assert reply.headers["x-ratelimit-reset"] == "40"
    house.clock.seconds += 40
    assert (await house.ask("GET", "/api/v1/alerts", key=SLOW)).status == 200


async def test_unknown_path_is_404_with_and_without_a_key(house: Any) -> None:
    for key in (None, "nope", ALL):
        for path in ("/api/v1/no-such", "/api/v1", "/no-such", "/api/v1/shield/scan/", "/api/v3/alerts"):
            reply = await house.ask("GET", path, key=key)
            assert (reply.status, reply.code) == (404, "not_found")
    assert house.authentication.asked == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"])
async def test_wrong_method_is_405_with_allow_before_any_key_is_read(house: Any, method: str) -> None:
    reply = await house.ask(method, SCAN, key=None, headers={"origin": "http://evil.example"})
    assert (reply.status, reply.code, reply.headers["allow"]) == (405, "method_not_allowed", "POST")
    assert not any(name.startswith("access-control") for name in reply.headers)
    assert house.authentication.asked == []


async def test_both_headers_are_read_and_the_service_key_wins(house: Any) -> None:
    for headers, status in (
        ({"authorization": f"Bearer {ALL}"}, 200),
        ({"authorization": f"bearer {ALL}"}, 200),
        ({"authorization": f"Bearer {ALL}", "x-service-key": "nope"}, 401),
        ({"authorization": "Bearer nope", "x-service-key": ALL}, 200),
        ({"authorization": f"Bearer {ALL}, Bearer {NONE}"}, 401),
        ({"authorization": ALL}, 401),
        ({"authorization": "Basic eDp5"}, 401),
    ):
        assert (await house.ask("GET", "/api/v1/alerts", key=None, headers=headers)).status == status
    assert (await house.ask("GET", f"/api/v1/alerts?api_key={ALL}", key=None)).status == 401


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"[" * 100_000, "invalid_json", None),
        (b'{"text":"a","text":"b"}', "invalid_json", None),
        (b'{"text":"\\ud800"}', "invalid_json", None),
        (b'{"text":"\xff"}', "invalid_json", None),
        ([], "invalid_request", None),
        ("x", "invalid_request", None),
        ({}, "invalid_request", "text"),
        ({"text": 5}, "invalid_request", "text"),
        ({"text": None}, "invalid_request", "text"),
        ({"text": "x", "direction": "sideways"}, "invalid_request", "direction"),
        ({"text": "x", "mode": "observe"}, "invalid_request", "mode"),
    ],
)
async def test_bad_body_is_400_and_names_the_field(house: Any, body: object, code: str, param: str | None) -> None:
    reply = await house.ask("POST", SCAN, body)
    assert (reply.status, reply.code, reply.json["error"]["param"]) == (400, code, param)
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert "x-ratelimit-remaining" in reply.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": 'Application/JSON;charset="UTF-8"'}, 200),
        ({"content-encoding": "identity"}, 200),
        ({"content-type": ""}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/json; charset=utf-16"}, 415),
        ({"content-type": "application/jsonx"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-encoding": "identity, gzip"}, 415),
    ],
)
async def test_body_must_be_uncompressed_json_in_utf8(house: Any, headers: dict[str, str], status: int) -> None:
    reply = await house.ask("POST", SCAN, {"text": "x"}, headers=headers)
    assert reply.status == status
    assert status == 200 or reply.code == "unsupported_media_type"


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limti=5", "limti"),
        ("limit=5&limit=5", "limit"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=abc", "limit"),
        ("limit=", "limit"),
        ("limit=1e2", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("offset=-1", "offset"),
        ("page=1e9", "page"),
        ("status=OPEN", "status"),
        ("severity=", "severity"),
        ("source=nobody", "source"),
        ("scope=some", "scope"),
        ("since=yesterday", "since"),
        ("until=2024-02-30", "until"),
        ("cursor=%00%ff", "cursor"),
        ("since=%zz", "since"),
        ("%ff=1", "%ff"),
        ("a%20b=1", "a b"),
    ],
)
async def test_bad_query_is_400_and_names_the_parameter(house: Any, query: str, param: str) -> None:
    reply = await house.ask("GET", f"/api/v1/alerts?{query}")
    assert (reply.status, reply.code, reply.json["error"]["param"]) == (400, "invalid_request", param)
    assert param in reply.json["error"]["message"] or "percent-encoded" in reply.json["error"]["message"]


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/shield/rules", "/api/v1/openapi.json"])
async def test_operation_without_parameters_refuses_every_query(house: Any, path: str) -> None:
    reply = await house.ask("GET", path + "?x=1")
    assert (reply.status, reply.json["error"]["param"]) == (400, "x")


async def test_query_of_a_post_is_refused_and_of_a_chat_ignored(house: Any) -> None:
    assert (await house.ask("POST", SCAN + "?x=1", {"text": "a"})).status == 400
    assert (await house.ask("GET", "/api/v1/models?api-version=1")).status != 400


async def test_list_is_answered_with_its_page(house: Any) -> None:
    house.lists.next = "abc"
    reply = await house.ask("GET", "/api/v1/alerts?limit=7")
    assert reply.json["page"] == {"limit": 7, "count": 1, "total": 5, "next": "abc"}
    assert reply.json["data"][0]["first_seen"] == "1970-01-01T00:00:00.000Z"
    assert set(reply.json) == {"ok", "data", "meta", "page"}


async def test_filters_of_alerts_arrive(house: Any) -> None:
    await house.ask(
        "GET",
        "/api/v1/alerts?status=open&severity=high&source=shield&scope=active&since=24h&until=2023-11-14&limit=5&cursor=c",
    )
    assert house.lists.asked == [
        AlertFilter(
            status=AlertStatus.OPEN, severity=Severity.HIGH, source=AlertSource.SHIELD, scope="active",
            since=1_700_000_000_000 - 86_400_000, until=1_699_920_000_000, limit=5, cursor="c",
        )
    ]  # fmt: skip


async def test_filters_of_audit_arrive(house: Any) -> None:
    reply = await house.ask(
        "GET",
        "/api/v1/audit?source=api&action=a&actor=J%C3%BCrgen+K&resource_type=r&since=1970-01-01T00:00:00%2B01:00"
        "&exclude_actions=x,y&search=%26%3D&limit=1000",
    )
    assert house.lists.asked == [
        AuditFilter(
            source="api", action="a", actor="Jürgen K", resource_type="r", since=-3_600_000, exclude_actions=("x", "y"),
            search="&=", limit=1000,
        )
    ]  # fmt: skip
    assert reply.json["data"][0]["timestamp"] == "1970-01-01T00:00:00.005Z"
    assert (await house.ask("GET", "/api/v1/audit?limit=1001")).status == 400
    assert (await house.ask("GET", "/api/v1/audit?exclude_actions=x,,y")).status == 400


async def test_rules_are_listed_without_their_examples(house: Any) -> None:
    reply = await house.ask("GET", "/api/v1/shield/rules")
    assert reply.json["page"] == {"limit": 1, "count": 1, "total": 1, "next": None}
    assert reply.json["data"][0]["id"] == "ignore-previous"
    assert reply.json["data"][0]["direction"] == ["inbound"]
    assert "never shown" not in reply.body.decode()


@pytest.mark.parametrize("key", [None, "nope", REVOKED, ALL[:-1], ""])
async def test_health_says_the_same_to_everybody_without_a_good_key(house: Any, key: str | None) -> None:
    reply = await house.ask("GET", "/api/v1/health", key=key)
    assert (reply.status, reply.json) == (200, {"status": "ok", "name": "service"})
    assert "x-ratelimit-limit" not in reply.headers
    assert "www-authenticate" not in reply.headers


async def test_health_says_more_to_a_good_key_of_any_scope(house: Any) -> None:
    house.clock.at += 2500
    reply = await house.ask("GET", "/api/v1/health", key=NONE)
    assert reply.json["uptime_seconds"] == 2.5
    assert reply.json["checks"] == {"shield": "healthy", "database": "healthy", "upstream": "not_configured"}
    assert set(reply.json) == {"status", "name", "version", "build", "archive_sha256", "uptime_seconds", "checks"}
    assert reply.headers["x-ratelimit-limit"] == "3"
    house.health.states["database"] = "unavailable"
    assert (await house.ask("GET", "/api/v1/health")).json["status"] == "degraded"


async def test_health_is_never_refused_for_the_rate(house: Any) -> None:
    for _ in range(3):
        reply = await house.ask("GET", "/api/v1/health", key=SLOW)
        assert reply.status == 200
    assert "checks" not in reply.json


@pytest.mark.parametrize(
    ("peer", "key", "status"),
    [
        ("127.0.0.1", None, 200),
        ("::1", None, 200),
        ("127.0.0.1", "nope", 200),
        ("::ffff:127.0.0.1", None, 200),
        ("", None, 403),
        ("192.0.2.1", None, 403),
        ("192.0.2.1", "nope", 401),
        ("192.0.2.1", NONE, 403),
        ("192.0.2.1", FLEET, 200),
    ],
)
async def test_metrics_are_for_this_host_or_a_key_with_the_scope(
    house: Any, peer: str, key: str | None, status: int
) -> None:
    reply = await house.ask("GET", "/metrics", key=key, peer=peer, headers={"host": "127.0.0.1:5001"})
    assert reply.status == status
    if status == 200:
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_what_happens_is_counted_by_operation_and_never_by_key(house: Any) -> None:
    await house.ask("POST", SCAN, {"text": "x"})
    await house.ask("POST", SCAN, {"text": "x"}, key="nope-secret")
    await house.ask("GET", "/api/v1/zzz")
    await house.ask("BREW", "/api/v1/zzz")
    await house.ask("GET", "/api/v1/alerts", key=SLOW)
    await house.ask("GET", "/api/v1/alerts", key=SLOW)
    lines = house.metrics.render().splitlines()
    for line in (
        'gateway_requests_total{operation="shield.scan",method="POST",status="200"} 1',
        'gateway_requests_total{operation="shield.scan",method="POST",status="401"} 1',
        'gateway_requests_total{operation="unmatched",method="GET",status="404"} 1',
        'gateway_requests_total{operation="unmatched",method="other",status="404"} 1',
        'gateway_auth_failures_total{code="invalid_api_key"} 1',
        'gateway_scans_total{source="scan",verdict="ALLOW"} 1',
        'gateway_request_seconds_count{operation="alerts.list"} 2',
        "gateway_rate_limited_total 1",
    ):
        assert line in lines
    assert "nope-secret" not in house.metrics.render()
    assert "zzz" not in house.metrics.render()


async def test_unknown_error_is_a_500_that_tells_nothing(house: Any) -> None:
    house.scans.error = RuntimeError("the prompt was: secret")
    reply = await house.ask("POST", SCAN, {"text": "secret"})
    assert (reply.status, reply.code, reply.json["error"]["type"]) == (500, "internal_error", "api_error")
    assert "secret" not in reply.body.decode()
    logged = json.loads(house.log.getvalue().splitlines()[-1])
    assert (logged["error"], logged["request_id"]) == ("RuntimeError", reply.headers["x-request-id"])
    assert "secret" not in house.log.getvalue()


@pytest.mark.parametrize(
    ("error", "status", "code", "retry_after"),
    [
        (ShieldUnavailable("x"), 503, "shield_unavailable", "1"),
        (AuditUnavailable("x", retry_after_seconds=5), 503, "audit_unavailable", "5"),
        (Overloaded("x"), 503, "overloaded", "1"),
        (UpstreamUnavailable("x"), 502, "upstream_unavailable", None),
    ],
)
async def test_service_that_fails_is_a_5xx_with_its_code(
    house: Any, error: Exception, status: int, code: str, retry_after: str | None
) -> None:
    house.scans.error = error
    reply = await house.ask("POST", SCAN, {"text": "x"})
    assert (reply.status, reply.code, reply.headers.get("retry-after")) == (status, code, retry_after)
    assert code in house.log.getvalue()


async def test_the_log_says_why_no_model_has_answered(house: Any) -> None:
    house.scans.error = UpstreamFault("x", detail="the certificate or the TLS handshake of the upstream is bad")
    reply = await house.ask("POST", SCAN, {"text": "x"})
    assert "certificate" not in reply.body.decode()
    assert json.loads(house.log.getvalue().splitlines()[-1])["reason"] == house.scans.error.detail


async def test_long_answer_is_compressed_when_asked_for(house: Any) -> None:
    plain = await house.ask("POST", SCAN, {"text": "5000"})
    assert "content-encoding" not in plain.headers
    packed = await house.ask("POST", SCAN, {"text": "5000"}, headers={"accept-encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert json.loads(gzip.decompress(packed.body))["data"] == plain.json["data"]
    short = await house.ask("POST", SCAN, {"text": "5"}, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in short.headers


async def test_request_ids_differ_and_none_is_taken_from_the_caller(house: Any) -> None:
    first = await house.ask("GET", "/api/v1/health", headers={"x-request-id": "mine"})
    second = await house.ask("GET", "/api/v1/health", headers={"x-request-id": "mine"})
    assert len({first.headers["x-request-id"], second.headers["x-request-id"], "mine"}) == 3


async def test_hsts_is_sent_under_tls_alone(house: Any, house_with: Callable[..., Any]) -> None:
    assert "strict-transport-security" not in (await house.ask("GET", "/api/v1/health")).headers
    tls = house_with(tls_cert="c.pem", tls_key="k.pem")
    assert "max-age=31536000" in (await tls.ask("GET", "/api/v1/health")).headers["strict-transport-security"]


async def test_chat_answers_with_the_rate_headers_of_openai(house: Any) -> None:
    reply = await house.ask("GET", "/api/v1/models", key=NONE)
    assert reply.headers["x-ratelimit-limit-requests"] == reply.headers["x-ratelimit-limit"] == "3"
    assert reply.headers["x-ratelimit-remaining-requests"] == "2"
    assert reply.headers["x-ratelimit-reset"] == "60"
    assert reply.headers["x-ratelimit-reset-requests"] == "60s"


def test_bodies_are_bounded_by_path(house: Any) -> None:
    limit = house.dispatch.body_limit
    assert limit("POST", "/api/v1/chat/completions") == 16 * 1024 * 1024
    assert limit("POST", SCAN) == 4 * 1024 * 1024
    assert limit("GET", SCAN) == limit("POST", "/nowhere") == 1024 * 1024


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (431, "headers_too_large", "invalid_request_error"),
        (408, "request_timeout", "invalid_request_error"),
        (505, "http_version_not_supported", "api_error"),
        (503, "overloaded", "api_error"),
    ],
)
def test_refusal_of_the_server_has_the_one_shape(house: Any, status: int, code: str, kind: str) -> None:
    reply = house.reply(house.dispatch.refuse(HttpError(status, code, "No.", headers=(("x-a", "b"),))))
    assert (reply.status, reply.code, reply.json["error"]["type"]) == (status, code, kind)
    assert reply.headers["x-a"] == "b"
    assert ("retry-after" in reply.headers) == (status == 503)
    assert f'gateway_refused_requests_total{{code="{code}"}} 1' in house.metrics.render()


async def test_no_answer_is_kept_and_completed_twice(house: Any) -> None:
    for operation in ALL_OPERATIONS:
        if operation.route[0] == "GET":
            first, second = [await house.ask("GET", operation.route[1], peer="127.0.0.1") for _ in range(2)]
            assert first.response is not second.response, operation.name


@pytest.mark.parametrize("chars", [60_000, 70_000])
async def test_a_long_body_is_read_beside_the_event_loop(
    house: Any, monkeypatch: pytest.MonkeyPatch, chars: int
) -> None:
    readers: list[int] = []

    def read(raw: bytes) -> object:
        readers.append(threading.get_ident())
        return read_json(raw)

    monkeypatch.setattr(reading, "read_json", read)
    assert (await house.ask("POST", SCAN, {"text": "a" * chars})).status == 200
    assert (await house.ask("POST", SCAN, b"[" * chars)).code == "invalid_json"
    assert all((reader == threading.get_ident()) is (chars == 60_000) for reader in readers)
    assert len(readers) == 2
