"""Which web pages may use the public API: those of named origins, with its errors, and never the internal API."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from gateway_site import Site, open_site

from gateway.errors import SetupError
from gateway.http.messages import Headers, Request, Response
from gateway.settings import load

APP, OTHER = "https://app.example", "https://other.example"
CHAT, SCAN = "/api/v1/chat/completions", "/api/v1/shield/scan"
ALLOW_ORIGIN = "access-control-allow-origin"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site(cors_origins=(APP, "http://localhost:3000"), max_scan_body_bytes=1000) as one:
        yield one


async def preflight(site: Site, path: str, origin: str, asked: str = "authorization", method: str = "POST") -> Response:
    fields = {
        "host": "gateway.example", "origin": origin, "access-control-request-method": method,
        "access-control-request-headers": asked,
    }  # fmt: skip
    return await site.dispatch.handle(Request("OPTIONS", path, "", Headers(fields), b"", "192.0.2.1", False, 0.0))


async def test_a_preflight_of_a_named_page_is_answered_without_a_key(site: Site) -> None:
    asked = "authorization,content-type, X-Stainless-OS,x-stainless-retry-count,x-service-key,x-api-key,x-evil,cookie"
    for origin in (APP, "http://localhost:3000"):
        answer = await preflight(site, CHAT, origin, asked)
        fields = dict(answer.headers)
        assert answer.status == 204
        assert fields[ALLOW_ORIGIN] == origin
        assert fields["vary"] == "Origin"
        assert "POST" in fields["access-control-allow-methods"]
        allowed = fields["access-control-allow-headers"].split(", ")
        assert set(allowed) == {
            "authorization", "content-type", "x-stainless-os", "x-stainless-retry-count", "x-service-key", "x-api-key",
        }  # fmt: skip
        assert "access-control-allow-credentials" not in fields


@pytest.mark.parametrize(
    "origin",
    [OTHER, "null", "http://app.example", "https://app.example:8443", "https://app.example.evil.example", "*", ""],
)
async def test_the_page_of_another_origin_is_told_nothing(site: Site, origin: str) -> None:
    answer = await preflight(site, CHAT, origin)
    assert answer.status == 405
    assert ALLOW_ORIGIN not in dict(answer.headers)
    key = await site.key("chat:completions")
    plain = await site.ask("GET", "/api/v1/models", key=key, origin=origin)
    assert ALLOW_ORIGIN not in plain["headers"]
    assert plain["headers"]["vary"] == "Origin"  # a cache must not give this answer to the page that is named


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/api/config/api-keys", "/api/auth/session", "/api/users", "/v1/models"]
)
async def test_nothing_but_the_public_api_is_for_other_pages(site: Site, path: str) -> None:
    assert (await preflight(site, path, APP)).status in (403, 404, 405)
    for fields in (dict((await preflight(site, path, APP)).headers), await headers_of(site, path)):
        assert not any(name.startswith("access-control") for name in fields)


async def headers_of(site: Site, path: str) -> dict[str, str]:
    fields = {"host": "127.0.0.1", "origin": APP}
    answer = await site.dispatch.handle(Request("GET", path, "", Headers(fields), b"", "127.0.0.1", False, 0.0))
    return dict(answer.headers)


async def test_a_named_page_reads_answers_and_errors_with_their_headers(site: Site) -> None:
    key = await site.key("chat:completions", rate_limit=2)
    asked: list[tuple[str, str, Any, str, int]] = [
        ("GET", "/api/v1/models", None, key, 200),
        ("POST", CHAT, {"model": 5}, key, 400),
        ("POST", CHAT, {"model": 5}, key, 429),
        ("GET", "/api/v1/models", None, "", 401),
        ("GET", "/api/v1/embeddings", None, "", 404),
        ("DELETE", "/api/v1/models", None, key, 405),
    ]
    for method, path, body, sent, status in asked:
        answer = await site.ask(method, path, body, key=sent, origin=APP)
        assert answer["status_code"] == status
        assert answer["headers"][ALLOW_ORIGIN] == APP
        exposed = answer["headers"]["access-control-expose-headers"].split(", ")
        assert {"x-request-id", "retry-after", "x-ratelimit-reset-requests", "x-service-shield-verdict"} <= set(exposed)


async def test_no_page_is_named_by_default() -> None:
    async with open_site() as site:
        assert (await preflight(site, CHAT, APP)).status == 405
        answer = await site.ask("GET", "/api/v1/models", origin=APP)
        assert not any(name.startswith("access-control") or name == "vary" for name in answer["headers"])


@pytest.mark.parametrize(
    "text",
    ["*", "https://app.example/", "app.example", "https://App.example", "https://a b", "null", "https://*.app.example",
     "https://app.example:443", "http://app.example:80", "https://u@app.example", "https://app.example,*", "https://a:0"],
)  # fmt: skip
def test_what_is_no_origin_refuses_to_start_and_is_told(text: str) -> None:
    with pytest.raises(SetupError) as refused:
        load({}, {"GATEWAY_CORS_ORIGINS": text, "GATEWAY_DATA_DIR": ":memory:"})
    assert refused.value.param == "cors_origins"
    assert "https://app.example.com" in refused.value.message


def test_origins_are_taken_as_browsers_send_them() -> None:
    text = "https://app.example, http://localhost:3000,http://[::1]:8080,chrome-extension://abcdef"
    loaded = load({}, {"GATEWAY_CORS_ORIGINS": text, "GATEWAY_DATA_DIR": ":memory:"})
    assert len(loaded.cors_origins) == 4
