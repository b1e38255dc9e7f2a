"""Scopes, permissions, roles and principals."""

from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role, Scope, local


def test_the_seven_scopes_of_the_api_exist() -> None:
    assert {str(scope) for scope in Scope} == {
        "shield:scan",
        "shield:read",
        "agents:read",
        "alerts:read",
        "audit:read",
        "fleet:read",
        "chat:completions",
    }


def test_every_role_has_permissions_and_the_admin_has_all() -> None:
    assert set(ROLE_PERMISSIONS) == set(Role)
    assert ROLE_PERMISSIONS[Role.ADMIN] == frozenset(Permission)


def test_who_may_only_look_may_change_nothing() -> None:
    assert all(str(one).endswith(":read") for one in ROLE_PERMISSIONS[Role.VIEWER])
    assert Permission.AUDIT_READ in ROLE_PERMISSIONS[Role.AUDITOR]
    assert Permission.API_KEYS_MANAGE not in ROLE_PERMISSIONS[Role.AUDITOR]


def test_users_are_managed_by_admins_alone() -> None:
    assert [role for role in Role if Permission.USERS_MANAGE in ROLE_PERMISSIONS[role]] == [Role.ADMIN]


def test_a_local_program_may_do_everything_without_a_limit() -> None:
    who = local("cli")
    assert (who.kind, who.id, who.rate_limit) == ("local", "cli", None)
    assert who.scopes == frozenset(Scope)
    assert who.permissions == frozenset(Permission)
