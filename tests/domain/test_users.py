"""What a role holds, and the forms of names and passwords."""

import pytest

from gateway.domain.principals import ALL_SCOPES, ROLE_PERMISSIONS, SCOPE_NEEDS, Permission, Role, Scope, scopes_within
from gateway.domain.users import NewUser, User, check_new_password
from gateway.errors import InvalidRequest
from gateway.schema import check


def test_every_scope_is_held_by_whoever_may_do_the_same() -> None:
    assert set(SCOPE_NEEDS) == ALL_SCOPES
    assert scopes_within({Permission.AUDIT_READ}) == {Scope.AUDIT_READ}
    assert scopes_within(()) == frozenset()


@pytest.mark.parametrize("role", Role)
def test_who_may_make_keys_may_make_them_with_what_they_hold(role: Role) -> None:
    who = User("usr_1", "a", "", role, 0, None).principal()
    assert (who.kind, who.name, who.permissions) == ("user", "a", ROLE_PERMISSIONS[role])
    assert who.scopes == scopes_within(who.permissions)
    if Permission.API_KEYS_MANAGE in who.permissions:
        assert who.scopes == ALL_SCOPES


@pytest.mark.parametrize("name", ["a", "Alice.B-c_d@example.com+x", "0", "x" * 64])
def test_a_name_is_taken_as_it_is(name: str) -> None:
    check(NewUser(name, "a long enough password", Role.VIEWER))


def test_a_password_may_be_any_text_of_some_length() -> None:
    for text in ("kq-71!äö", "пароль пароль", " " * 7 + "x", "x" * 255 + "\U0001f4a3"):
        assert check_new_password(text, username="alice") == text
    with pytest.raises(InvalidRequest) as refusal:
        check_new_password("x", username="alice", param="new_password")
    assert refusal.value.param == "new_password"
