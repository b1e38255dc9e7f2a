"""Where a key is read from, where a request came from, and what is not believed."""

import pytest

from gateway.api.credentials import Callers, sole_key, traceparent
from gateway.http.messages import Headers, Request

GOOD_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def request(peer: str, **headers: str) -> Request:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("GET", "/", "", Headers(fields), b"", peer, False, 0.0)


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({}, None),
        ({"x-service-key": "k1"}, "k1"),
        ({"x-api-key": "k1"}, "k1"),
        ({"api-key": "k1"}, "k1"),
        ({"api-key": "k1", "x-api-key": "k1", "x-service-key": "k1", "authorization": "Bearer k1"}, "k1"),
        ({"api-key": "k1", "authorization": "Basic eDp5"}, "k1"),
        ({"x-api-key": "k1", "authorization": "Bearer"}, "k1"),
        ({"authorization": "Bearer k2"}, "k2"),
        ({"authorization": "bearer k2"}, "k2"),
        ({"authorization": "BEARER  k2"}, "k2"),
        ({"x-service-key": "k1", "authorization": "Bearer k2"}, "k1"),
        ({"x-service-key": "", "authorization": "Bearer k2"}, ""),
        ({"authorization": "Bearer"}, ""),
        ({"authorization": "Bearer "}, ""),
        ({"authorization": "Basic eDp5"}, ""),
        ({"authorization": "k2"}, ""),
        ({"authorization": "Bearerk2"}, ""),
        ({"cookie": "key=k3", "apikey": "k4", "x-auth-token": "k5"}, None),
    ],
)
def test_key_is_read_from_four_headers_alone(headers: dict[str, str], key: str | None) -> None:
    assert sole_key(Headers(headers)) == key


def test_two_authorization_headers_make_no_key() -> None:
    key = sole_key(Headers({"authorization": "Bearer svc_1, Bearer svc_2"}))
    assert key is not None
    assert "," in key


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.1", None, "203.0.113.1"),
        ("203.0.113.1", "198.51.100.7", "203.0.113.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7,10.0.0.3, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "198.51.100.7, nonsense", "10.0.0.1"),
        ("10.0.0.1", "nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("10.0.0.1", "[2001:db8::1]:4711, 10.0.0.2:80", "2001:db8::1"),
        ("10.0.0.1", "198.51.100.7:99999999", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("fd00::1", "198.51.100.7", "198.51.100.7"),
        ("", None, None),
    ],
)
def test_forwarded_address_counts_from_trusted_proxies_only(peer: str, forwarded: str | None, address: str) -> None:
    callers = Callers(("10.0.0.0/8", "fd00::/8"))
    made = request(peer) if forwarded is None else request(peer, x_forwarded_for=forwarded)
    assert callers.context(made, "req_1").ip == address


def test_without_trusted_proxies_the_peer_is_the_client() -> None:
    assert Callers(()).context(request("::ffff:192.0.2.1", x_forwarded_for="198.51.100.7"), "req_1").ip == "192.0.2.1"


@pytest.mark.parametrize(
    "value",
    [
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        GOOD_TRACE + "-extra",
        GOOD_TRACE + ", " + GOOD_TRACE,
        GOOD_TRACE[:-1],
        "",
    ],
)
def test_malformed_traceparent_is_dropped(value: str) -> None:
    assert traceparent(Headers({"traceparent": value})) is None


def test_context_holds_what_the_audit_wants_and_bounds_it() -> None:
    made = request("192.0.2.1", user_agent="u" * 5000, x_service_agent="a" * 5000, traceparent=GOOD_TRACE)
    context = Callers(()).context(made, "req_1")
    assert (context.request_id, context.ip, context.traceparent) == ("req_1", "192.0.2.1", GOOD_TRACE)
    assert (len(context.user_agent or ""), len(context.agent or "")) == (256, 100)
    plain = Callers(()).context(request("192.0.2.1"), "req_2")
    assert (plain.user_agent, plain.agent, plain.traceparent) == (None, None, None)


@pytest.mark.parametrize("before", ["", "client/1 ", "u" * 80])
def test_a_key_that_was_put_into_another_header_is_not_kept(before: str) -> None:
    key = "svc_" + "0123456789" * 4
    made = request("192.0.2.1", user_agent=before + key + " end", x_service_agent=before + key)
    context = Callers(()).context(made, "req_1")
    assert context.user_agent == before + "svc_012345... end"
    assert context.agent == before + "svc_012345..."
