"""Without RBAC only this host's own user gets to the internal API, the dashboard and `/metrics`: on the wire, by nginx."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proxies import Proxies
from running import Served, free_port, start

KEYS = "/api/config/api-keys"
NEW_KEY = json.dumps({"name": "mine", "scopes": ["audit:read"]}).encode()
DOORS = ("/", "/dashboard/0/app.js", KEYS, "/api/auth/session", "/metrics")
PROXY_HEADERS = (
    "Forwarded: for=198.51.100.7",
    "X-Forwarded-For: 127.0.0.1",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: localhost",
    "X-Forwarded-Server: a",
    "x-forwarded-anything: ",
    "X-Real-IP: 127.0.0.1",
    "Via: 1.1 varnish",
    "CF-Connecting-IP: 198.51.100.7",
    "True-Client-IP: 198.51.100.7",
    "X-Forwarded: 198.51.100.7",
    "X-Client-IP: 198.51.100.7",
    "Fastly-Client-IP: 198.51.100.7",
    "X-Envoy-External-Address: 198.51.100.7",
    "CDN-Loop: example",
)
STRANGE_HOSTS = (
    "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example", "10.0.0.1:{port}",
    "0.0.0.0:{port}", "[::]:{port}", "[2001:db8::1]:{port}",
)  # fmt: skip
OWN_HOSTS = (
    "127.0.0.1:{port}",
    "127.0.0.1",
    "localhost:{port}",
    "LOCALHOST",
    "localhost.",
    "127.9.8.7:80",
    "[::1]:{port}",
)
STRANGE_ORIGINS = (
    "http://evil.example",
    "http://evil.example:{port}",
    "null",
    "http://127.0.0.1.evil.example",
    "file://",
)


@pytest.fixture(scope="module")
def open_gateway(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without RBAC, which trusts the proxies of this host."""
    served = start(archive, tmp_path_factory.mktemp("open"), GATEWAY_TRUSTED_PROXIES="127.0.0.0/8")
    yield served
    assert served.process.stop() == 0


@pytest.fixture(scope="module")
def guarded_gateway(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with RBAC."""
    served = start(archive, tmp_path_factory.mktemp("guarded"), RBAC_ENABLED="true")
    yield served
    assert served.process.stop() == 0


def raw(
    port: int, path: str, *lines: str, host: str = "127.0.0.1", version: str = "1.1", body: bytes = b""
) -> tuple[int, str]:
    """Send one request as it stands; return status and body."""
    method = "POST" if body else "GET"
    fields = [f"Host: {host}".replace("{port}", str(port)), "Connection: close", *lines]
    if body:
        fields += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    head = "\r\n".join([f"{method} {path} HTTP/{version}", *fields, "", ""]).replace("{port}", str(port))
    with socket.create_connection(("127.0.0.1", port), 15) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    top, _, rest = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), rest.decode("utf-8", "replace")


def assert_refused(answer: tuple[int, str]) -> None:
    status, body = answer
    assert status == 403, body[:200]
    error = json.loads(body)["error"]
    assert error["code"] == "access_denied"
    assert "RBAC_ENABLED=true" in error["message"]


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_the_own_user_gets_in_under_every_name_of_the_loopback_address(open_gateway: Served, host: str) -> None:
    page = raw(open_gateway.port, "/", host=host)[1]
    script = re.search(r"/dashboard/\w+/app\.js", page)
    assert script is not None
    for path in (script[0], KEYS, "/api/auth/session", "/metrics"):
        assert raw(open_gateway.port, path, host=host)[0] == 200, path
    origin = f"Origin: http://{host}"
    assert raw(open_gateway.port, KEYS, origin, host=host, body=NEW_KEY)[0] == 201


@pytest.mark.parametrize("line", PROXY_HEADERS)
def test_a_header_that_a_proxy_adds_is_refused(open_gateway: Served, line: str) -> None:
    for path in DOORS:
        assert_refused(raw(open_gateway.port, path, line))
    assert_refused(raw(open_gateway.port, KEYS, line, body=NEW_KEY))


def test_http_1_0_is_refused(open_gateway: Served) -> None:
    for path in DOORS:
        assert_refused(raw(open_gateway.port, path, version="1.0"))
    assert_refused(raw(open_gateway.port, KEYS, version="1.0", body=NEW_KEY))
    large = NEW_KEY + b" " * 100_000
    assert_refused(raw(open_gateway.port, KEYS, version="1.0", body=large))


@pytest.mark.parametrize("host", STRANGE_HOSTS)
def test_another_host_is_refused(open_gateway: Served, host: str) -> None:
    for path in DOORS:
        assert_refused(raw(open_gateway.port, path, host=host))
    own_page = f"Origin: http://{host}", "Sec-Fetch-Site: same-origin"  # after DNS rebinding a page is its own site
    assert_refused(raw(open_gateway.port, KEYS, *own_page, host=host, body=NEW_KEY))


@pytest.mark.parametrize("origin", STRANGE_ORIGINS)
def test_another_origin_is_refused(open_gateway: Served, origin: str) -> None:
    for path in DOORS:
        assert_refused(raw(open_gateway.port, path, f"Origin: {origin}"))


def test_whoever_is_refused_metrics_gets_them_with_a_key(open_gateway: Served, guarded_gateway: Served) -> None:
    for served in (open_gateway, guarded_gateway):
        for lines in ({"host": "evil.example"}, {"version": "1.0"}):
            with_key = raw(served.port, "/metrics", f"Authorization: Bearer {served.key}", **lines)
            assert with_key[0] == 200
            assert "gateway_requests_total" in with_key[1]
        made = raw(open_gateway.port, KEYS, body=NEW_KEY)[1]
    lacking = json.loads(made)["data"]["key"]
    assert raw(open_gateway.port, "/metrics", f"X-Service-Key: {lacking}", host="evil.example")[0] == 403


def test_with_rbac_only_metrics_ask_who_is_on_this_host(guarded_gateway: Served) -> None:
    port = guarded_gateway.port
    assert raw(port, "/metrics")[0] == 200
    for answer in (
        raw(port, "/metrics", host="evil.example"), raw(port, "/metrics", version="1.0"),
        raw(port, "/metrics", "Origin: http://evil.example"), raw(port, "/metrics", "Via: 1.1 a"),
    ):  # fmt: skip
        assert answer[0] == 401
    for lines in (*PROXY_HEADERS, "Host-Of-Nobody: a"):
        assert raw(port, "/", lines)[0] == 200
        assert raw(port, KEYS, lines, host="gateway.example", version="1.0")[0] == 401


Proxy = Callable[[int, str], int]


@pytest.fixture
def nginx(proxies: Proxies) -> Proxy:
    """Start a real nginx before a port, with more lines in its location; return its own port."""

    def run(upstream_port: int, more: str = "") -> int:
        port = free_port()
        location = f"location / {{ proxy_pass http://127.0.0.1:{upstream_port}; {more} }}"
        proxies.nginx(f"server {{ listen 127.0.0.1:{port}; {location} }}", port)
        return port

    return run


@pytest.mark.parametrize(
    ("more", "host"),
    [
        ("", "gateway.example"),
        ("", "127.0.0.1"),
        ("proxy_http_version 1.1; proxy_set_header Host $host;", "gateway.example"),
        ("proxy_http_version 1.1; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;", "gateway.example"),
        ("proxy_http_version 1.1; proxy_set_header X-Real-IP $remote_addr;", "127.0.0.1"),
    ],
)
def test_nobody_becomes_an_administrator_through_nginx(
    open_gateway: Served, nginx: Proxy, more: str, host: str
) -> None:
    port = nginx(open_gateway.port, more)
    for path in DOORS:
        assert_refused(raw(port, path, host=host))
    assert_refused(raw(port, KEYS, host=host, body=NEW_KEY))
    assert raw(port, "/api/v1/health", host=host)[0] == 200
    assert raw(port, "/api/v1/audit", f"X-Service-Key: {open_gateway.key}", host=host)[0] == 200
