"""Whose page made a request."""

import pytest

from gateway.auth.csrf import csrf_token, is_csrf_token, is_own_page


def test_a_token_belongs_to_one_session() -> None:
    token = csrf_token("one")
    assert is_csrf_token(token, "one")
    assert not is_csrf_token(token, "two")


@pytest.mark.parametrize("sent", [None, "", "x" * 32, csrf_token("one").upper(), csrf_token("one") + " ", "é", "one"])
def test_anything_else_is_no_token(sent: str | None) -> None:
    assert not is_csrf_token(sent, "one")


@pytest.mark.parametrize(
    ("site", "origin", "is_own"),
    [
        (None, None, True),
        ("same-origin", None, True),
        ("none", None, True),
        ("same-site", None, False),
        ("cross-site", None, False),
        ("Same-Origin", None, False),
        ("", None, False),
        (None, "http://gw.test:5001", True),
        (None, "https://gw.test:5001", True),
        (None, "http://GW.test:5001", True),
        (None, "http://gw.test", False),
        (None, "http://gw.test:5002", False),
        (None, "null", False),
        (None, "", False),
        (None, "http://evil.test", False),
        (None, "http://gw.test:5001.evil.test", False),
        (None, "http://evil.test@gw.test:5001", False),
        (None, "http://gw.test:5001/", False),
        (None, "ftp://gw.test:5001", False),
        (None, "http://[bad", False),
        (None, "http://gw.test:5001, http://evil.test", False),
        ("same-origin", "http://evil.test", False),
        ("cross-site", "http://gw.test:5001", False),
        (None, "https://proxy.test", True),
        (None, "https://proxy.test:8443", False),
        (None, "https://x@proxy.test", False),
    ],
)
def test_a_page_is_ours_when_every_header_says_so(site: str | None, origin: str | None, is_own: bool) -> None:
    assert is_own_page(sec_fetch_site=site, origin=origin, host="gw.test:5001", allowed_hosts=("proxy.test",)) is is_own


def test_the_default_port_may_be_left_out() -> None:
    assert is_own_page(sec_fetch_site=None, origin="https://gw.test", host="gw.test:443")
    assert is_own_page(sec_fetch_site=None, origin="http://gw.test", host="gw.test")
    assert not is_own_page(sec_fetch_site=None, origin="http://gw.test", host=None)
