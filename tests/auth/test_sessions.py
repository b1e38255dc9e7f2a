"""Session tokens and their cookie."""

import pytest

from gateway.auth.sessions import clear_cookie, hash_token, make_token, read_cookie, set_cookie

TOKEN = make_token(bytes(range(32)))


def test_a_token_is_256_bits_that_a_cookie_may_hold() -> None:
    assert len(TOKEN) == 43
    assert hash_token(TOKEN) != hash_token(make_token(bytes(32)))


@pytest.mark.parametrize("text", ["", "x", TOKEN + "x", TOKEN[:-1], TOKEN[:-1] + "\n", TOKEN[:-1] + "é", "'" * 43])
def test_another_form_is_no_token(text: str) -> None:
    assert hash_token(text) is None


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None),
        ("", None),
        ("other=1", None),
        (f"service_session={TOKEN}", TOKEN),
        (f"a=b; service_session={TOKEN}; c=d", TOKEN),
        (f"xservice_session={TOKEN}", None),
        (f"service_session={TOKEN}; service_session=x", None),
        (f"Service_Session={TOKEN}", None),
    ],
)
def test_the_token_is_read_when_there_is_exactly_one(header: str | None, found: str | None) -> None:
    assert read_cookie(header) == found


def test_the_cookie_is_for_this_site_and_no_script() -> None:
    assert set_cookie(TOKEN, seconds=60, is_secure=True) == (
        f"service_session={TOKEN}; Max-Age=60; Path=/; HttpOnly; SameSite=Strict; Secure"
    )
    assert "Secure" not in set_cookie(TOKEN, seconds=60, is_secure=False)
    assert clear_cookie(is_secure=False).startswith("service_session=; Max-Age=0;")
