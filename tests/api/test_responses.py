"""The one error shape, its statuses and types, and what every answer gets on its way out."""

import gzip
import json
from typing import Any

import pytest

from gateway.api import dispatch
from gateway.auth.ratelimit import Admission
from gateway.errors import STATUS_BY_CODE, GatewayError, InvalidRequest, RateLimited, error_shape
from gateway.http.messages import Headers, Response
from gateway.responses import (
    accepts_gzip,
    error_response,
    finish,
    json_response,
    rate_headers,
)

# The error table of the API, as its users were told.
TABLE = {
    400: "invalid_request invalid_json unsupported_value content_policy_violation",
    401: "missing_api_key invalid_api_key not_signed_in bad_credentials",
    403: "insufficient_scope key_revoked key_expired permission_denied csrf_failed access_denied",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "body_too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    417: "expectation_failed",
    421: "host_not_allowed",
    429: "rate_limited budget_exceeded login_throttled",
    431: "headers_too_large",
    500: "internal_error",
    501: "not_implemented",
    502: "upstream_unavailable",
    503: "overloaded shield_unavailable audit_unavailable",
    505: "http_version_not_supported",
}


def every_error(root: type[GatewayError] = GatewayError) -> set[type[GatewayError]]:
    return {root}.union(*(every_error(child) for child in root.__subclasses__()))


def test_codes_and_statuses_are_the_table() -> None:
    assert {code: status for status, codes in TABLE.items() for code in codes.split()} == STATUS_BY_CODE


def test_every_error_of_the_gateway_has_a_status() -> None:
    assert dispatch  # imported, so that the errors of every service are known
    ours = {error.code for error in every_error() if error.__module__.startswith("gateway.")}
    assert ours - set(STATUS_BY_CODE) <= {"setup_error"}  # that one ends the program before anything is served


@pytest.mark.parametrize("status", TABLE)
def test_type_of_an_error_is_a_word_of_the_openai_api(status: int) -> None:
    expected = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    shape: Any = error_shape(status, "code", "No.", None, "req_1")
    assert shape["error"]["type"] == expected.get(status, "api_error" if status >= 500 else "invalid_request_error")


def test_error_has_the_one_shape() -> None:
    response = error_response(InvalidRequest("No.", param="a[1]"), request_id="req_1", headers=(("x-a", "b"),))
    assert response.status == 400
    assert response.headers == (("content-type", "application/json"), ("x-a", "b"))
    assert json.loads(response.body) == {
        "ok": False,
        "error": {
            "message": "No.", "type": "invalid_request_error", "code": "invalid_request", "param": "a[1]",
            "request_id": "req_1",
        },
    }  # fmt: skip


def test_retry_after_is_at_least_a_second() -> None:
    response = error_response(RateLimited("No.", retry_after_seconds=0), request_id="req_1")
    assert ("retry-after", "1") in response.headers


def test_openai_clients_get_both_names_of_the_rate_headers() -> None:
    few = rate_headers(Admission(True, 1, 2, 3, 0), is_openai=False)
    assert few == (("x-ratelimit-limit", "1"), ("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "3"))
    both = rate_headers(Admission(True, 1, 2, 3, 0), is_openai=True)
    names = ("limit", "1"), ("remaining", "2"), ("reset", "3s")
    assert both == few + tuple((f"x-ratelimit-{name}-requests", value) for name, value in names)


@pytest.mark.parametrize(
    ("header", "accepts"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("x-gzip", True),
        ("deflate,gzip; q=1", True),
        ("", False),
        ("identity", False),
        ("*", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("notgzip", False),
    ],
)
def test_gzip_is_used_only_where_it_is_named(header: str, accepts: bool) -> None:
    assert accepts_gzip(header) is accepts


def test_long_answer_says_that_it_varies_even_when_it_is_sent_plain() -> None:
    finished = finish(json_response("x" * 5000), "req_1", asked=Headers({"accept-encoding": "br"}))
    assert ("vary", "Accept-Encoding") in finished.headers
    assert finished.body == json_response("x" * 5000).body


def test_answer_with_a_secret_is_never_compressed() -> None:
    finished = finish(json_response("x" * 5000), "req_1")
    assert "content-encoding" not in dict(finished.headers)


def test_compressed_answer_is_the_answer() -> None:
    finished = finish(Response(200, (), b"y" * 5000), "req_1", is_tls=True, asked=Headers({"accept-encoding": "gzip"}))
    assert gzip.decompress(finished.body) == b"y" * 5000
