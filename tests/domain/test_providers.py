"""What is promised of the keys of providers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.providers import KEY_PROMISE, REFERENCE_PROMISE, read_key
from gateway.errors import InvalidRequest


@given(st.from_regex(KEY_PROMISE, fullmatch=True))
def test_every_key_that_the_schema_promises_is_taken(text: str) -> None:
    assert text in read_key(text)


@given(st.from_regex(REFERENCE_PROMISE, fullmatch=True))
def test_every_reference_that_the_schema_promises_is_one(text: str) -> None:
    assert read_key(text) == (text, None)


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("sk-made-up", True),
        ("id:secret", True),
        (":", True),
        ("two words", False),
        ("", False),
        ("x" * 8192, True),
        ("x" * 8193, False),
        ("env:HOME_9", True),
        ("env:9", False),
        ("env:", False),
        ("cred:...", True),
        ("cred:..", False),
        ("cred:.", False),
        ("cred:a.b", True),
        ("cred:" + "a" * 129, False),
        ("file:/", True),
        ("file://run//keys/.hidden/a b*", True),
        ("file:/..", False),
        ("file:/a/../b", False),
        ("file:/a/..b/.../c..", True),
        ("file:/a/.", True),
        ("file:keys", False),
        ("file:/a\nb", False),
        ("file:/" + "a" * 999, True),
        ("file:/" + "a" * 1000, False),
    ],
)
def test_what_is_promised_of_keys_is_all_that_is_taken(text: str, is_taken: bool) -> None:
    assert (re.fullmatch(KEY_PROMISE, text) is not None) is is_taken
    if is_taken:
        assert text in read_key(text)
    else:
        with pytest.raises(InvalidRequest):
            read_key(text)
