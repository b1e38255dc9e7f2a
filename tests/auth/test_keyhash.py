"""Form, hash and prefix of API keys."""

import hashlib

import pytest

from gateway.auth.keyhash import hash_key, make_key, prefix_of
from gateway.errors import InvalidApiKey

KEY = "svc_" + "0123456789abcdef0123" * 2


def test_a_key_is_stored_under_the_sha256_of_its_text() -> None:
    assert hash_key(KEY) == hashlib.sha256(KEY.encode()).hexdigest()


def test_twenty_random_bytes_make_a_key_of_the_form_that_is_read() -> None:
    key = make_key(bytes(range(20)))
    assert key == "svc_000102030405060708090a0b0c0d0e0f10111213"
    assert len(hash_key(key)) == 64


@pytest.mark.parametrize(
    "text",
    [
        "",
        "svc_",
        KEY[:-1],
        KEY + "0",
        KEY + "\n",
        "\n" + KEY,
        " " + KEY,
        KEY.upper(),
        KEY.replace("svc_", "SVC_"),
        KEY.replace("a", "A", 1),
        KEY.replace("a", "g", 1),
        KEY.replace("1", "\u0661", 1),
        KEY.replace("1", "\uff11", 1),
        KEY[:-1] + "\0",
        "svc_" + "é" * 40,
        "svc_" + "0" * 100_000,
    ],
)
def test_any_other_form_is_refused_and_never_repeated(text: str) -> None:
    for read in (hash_key, prefix_of):
        with pytest.raises(InvalidApiKey) as refusal:
            read(text)
        assert refusal.value.message == "The API key is not valid."


def test_a_prefix_is_the_name_and_six_digits() -> None:
    assert prefix_of(KEY) == "svc_012345"
