"""The one form of a base URL, and which addresses may be connected to."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.addresses import (
    BASE_URL_PROMISE,
    MAX_URL_CHARS,
    Reach,
    address_check,
    reach_of,
    read_base_url,
)
from gateway.errors import InvalidRequest

V4 = st.ip_addresses(v=4)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("https://API.Example.com/v1/", "https://api.example.com/v1"),
        ("HTTPS://api.example.com.:8443", "https://api.example.com:8443"),
        ("https://[2606:4700:0:0::1111]/v1", "https://[2606:4700::1111]/v1"),
        ("http://93.184.216.34:80/a//b/", "http://93.184.216.34:80/a//b"),
        ("https://api.example.com/openai/deployments/x%20y", "https://api.example.com/openai/deployments/x%20y"),
    ],
)
def test_a_url_has_one_form(text: str, form: str) -> None:
    assert read_base_url(text, allow_private=False) == form
    assert read_base_url(form, allow_private=False) == form


@pytest.mark.parametrize(
    "text",
    [
        "", "api.example.com", "https://", "https://.", "https://a..b/", "https://a b/", "https://exa%6dple.com/",
        "https://127.0.0.1%00.example.com", "https://127.0.0.1\\@example.com/", "https://[::1", "https://[v1.x]/",
        "https://host:0/", "https://host:port/", "https://host:-1", "https://１２７.0.0.1/", "file:///etc/passwd",
        "gopher://example.com", "https://[fe80::1%25eth0]/", "https://1.2.3/", "https://0x1.example/\t",
        "https://a@b/", "https://@b/", "https://0x7f000001/", "https://256.1.1.1/", "https://1.1.1.1.1/",
    ],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused_whatever_is_allowed(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_base_url(text, allow_private=True)
    assert caught.value.param == "base_url"


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_base_url("https://ann:hunter2@example.com/v1", allow_private=False)
    assert "hunter2" not in caught.value.message


@given(st.from_regex(BASE_URL_PROMISE, fullmatch=True))
def test_every_url_that_the_schema_promises_is_taken(text: str) -> None:
    assert len(text) <= MAX_URL_CHARS
    assert read_base_url(text, allow_private=False) == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "https://api.openai.com/v1",
        "http://ollama:11434",
        "http://llm_gateway-2:5001/",
        "https://my-company-0123456789-0123456789-0123456789.openai.azure.com/openai/deployments/gpt-4o%20mini/",
        "https://vpce-0a1b2c3d4e5f67890-abcdefgh.bedrock-runtime.eu-central-1.vpce.amazonaws.com:443",
        "http://host.docker.internal:65535/v1",
    ],
)
def test_the_urls_people_have_are_promised(text: str) -> None:
    assert re.fullmatch(BASE_URL_PROMISE, text) is not None
    assert read_base_url(text, allow_private=False)


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:11434", "http://a.localhost", "http://metadata", "http://a.metadata.google.internal/",
        "http://metadata.goog", "http://instance-data.ec2.internal", "http://10.0.0.1/v1", "https://[::1]/",
        "http://host:0", "http://host:65536", "https://a@b.example/", "https://a.example/?q", "ftp://a.example",
    ],
)  # fmt: skip
def test_what_may_be_refused_is_not_promised(text: str) -> None:
    assert re.fullmatch(BASE_URL_PROMISE, text) is None
    with pytest.raises(InvalidRequest):
        read_base_url(text, allow_private=False)


@given(V4)
def test_an_ipv4_address_inside_an_ipv6_one_is_judged_by_itself(inner: object) -> None:
    reach = reach_of(str(inner))
    number = int(inner)  # type: ignore[call-overload]
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    for outer in (f"::ffff:{inner}", f"64:ff9b::{high}:{low}", f"2002:{high}:{low}::1", f"::ffff:0:{high}:{low}"):
        assert reach_of(outer) is reach
    assert address_check(allow_private=False)(str(inner)) is (reach is Reach.OPEN)
    assert address_check(allow_private=True)(str(inner)) is (reach is not Reach.FORBIDDEN)


@pytest.mark.parametrize(
    "address", ["", "localhost", "1.2.3", "fe80::1%eth0", "169.254.0.1", "ff02::1", "255.255.255.255"]
)
def test_what_is_no_address_of_anybody_may_never_be_connected_to(address: str) -> None:
    assert not any(address_check(allow_private=allow_private)(address) for allow_private in (False, True))
