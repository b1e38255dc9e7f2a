"""The head of a request with a large body: who may not come in is told so before the body is read."""

import json
from typing import Any

import pytest

from gateway.http.messages import Headers, Request

ALL = "svc_" + "a" * 40
NONE = "svc_" + "b" * 40
REVOKED = "svc_" + "c" * 40
SLOW = "svc_" + "d" * 40
SCAN = "/api/v1/shield/scan"


def head(method: str = "POST", path: str = SCAN, key: str | None = ALL) -> Request:
    """Return a request of which only the head has arrived."""
    fields = {"host": "gateway.test", "content-type": "application/json"}
    if key is not None:
        fields["x-service-key"] = key
    return Request(method, path, "", Headers(fields), b"", "192.0.2.1", False, 0.0)


@pytest.mark.parametrize(
    ("path", "key", "status", "code"),
    [
        (SCAN, None, 401, "missing_api_key"),
        (SCAN, "nope", 401, "invalid_api_key"),
        (SCAN, REVOKED, 403, "key_revoked"),
        (SCAN, NONE, 403, "insufficient_scope"),
        ("/api/v1/no-such", ALL, 404, "not_found"),
        ("/api/v1/alerts", ALL, 405, "method_not_allowed"),
    ],
)
async def test_a_head_is_refused_as_the_whole_request_would_be(
    house: Any, path: str, key: str | None, status: int, code: str
) -> None:
    refused = house.reply(await house.dispatch.check(head(path=path, key=key)))
    assert (refused.status, refused.code) == (status, code)
    assert refused.headers["x-request-id"].startswith("req_")
    assert f'status="{status}"' in house.metrics.render()


async def test_a_request_is_counted_once_and_keeps_its_id(house: Any) -> None:
    request = head(key=SLOW)
    assert await house.dispatch.check(request) is None
    request.body = json.dumps({"text": "x"}).encode()
    reply = house.reply(await house.dispatch.handle(request))
    assert reply.status == 200
    assert reply.headers["x-ratelimit-remaining"] == "0"
    first, second = (context.request_id for _, context in house.authentication.asked)
    assert first == second == reply.headers["x-request-id"]
    refused = house.reply(await house.dispatch.check(head(key=SLOW)))
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert refused.headers["retry-after"] == "60"


async def test_a_key_that_is_revoked_while_the_body_arrives_is_refused(house: Any) -> None:
    request = head()
    assert await house.dispatch.check(request) is None
    del house.authentication.principals[ALL]
    request.body = json.dumps({"text": "x"}).encode()
    assert house.reply(await house.dispatch.handle(request)).code == "invalid_api_key"
    assert house.scans.seen == []


async def test_a_wrong_key_on_health_is_let_in_like_none(house: Any) -> None:
    for key in (None, "nope"):
        assert await house.dispatch.check(head("GET", "/api/v1/health", key)) is None
