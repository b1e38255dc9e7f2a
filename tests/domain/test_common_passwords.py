"""The list of common passwords: what it refuses, what it leaves alone, and its form."""

from pathlib import Path

import pytest

from gateway.domain.users import is_common_password

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "password",
    ["password", "PASSWORD", "Password1!", "12345678", "123456789", "1234567890", "qwertyuiop", "1q2w3e4r", "1qaz2wsx",
     "iloveyou", "sunshine1987", "princess", "football", "letmein123", "welcome1", "changeme", "administrator", "passw0rd",
     "p@ssw0rd", "12341234", "abcd1234", "trustno1", "  password  ", "ｐａｓｓｗｏｒｄ", "qwerty123", "11223344"],
)  # fmt: skip
def test_what_everybody_chooses_is_common(password: str) -> None:
    assert is_common_password(password)


@pytest.mark.parametrize(
    "password",
    ["correct horse battery staple", "a long enough password", "mvXq7-rtLp", "kz7fjane2020", "Пароль-на-входе"],
)
def test_what_nobody_else_chooses_is_not(password: str) -> None:
    assert not is_common_password(password)


def test_the_list_is_sorted_and_has_no_password_twice() -> None:
    listed = (ROOT / "gateway" / "domain" / "common-passwords.txt").read_text("utf-8").splitlines()
    assert listed == sorted(set(listed))
    assert len(listed) == 10_000
    assert all(is_common_password(password) for password in listed[::100])
