"""What is promised of the keys of providers."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.providers import KEY_PROMISE, REFERENCE_PROMISE, read_key


@given(st.from_regex(KEY_PROMISE, fullmatch=True))
def test_every_key_that_the_schema_promises_is_taken(text: str) -> None:
    assert text in read_key(text)


@given(st.from_regex(REFERENCE_PROMISE, fullmatch=True))
def test_every_reference_that_the_schema_promises_is_one(text: str) -> None:
    assert read_key(text) == (text, None)
