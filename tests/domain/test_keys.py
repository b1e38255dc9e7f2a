"""The record of an API key."""

from dataclasses import replace

import pytest

from gateway.domain.keys import CreatedKey, KeyRecord
from gateway.domain.principals import Scope

RECORD = KeyRecord(
    id="key_1",
    name="ci",
    prefix="svc_012345",
    digest="d" * 64,
    scopes=(Scope.SHIELD_SCAN,),
    rate_limit=60,
    created_at=1000,
    created_by="cli",
)


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "now_at", "status"),
    [
        (None, None, 2000, "active"),
        (2001, None, 2000, "active"),
        (2000, None, 2000, "expired"),
        (None, 2000, 2000, "revoked"),
        (1500, 1800, 2000, "revoked"),
        (None, 2001, 2000, "active"),
    ],
)
def test_the_status_of_a_key_follows_its_times(
    expires_at: int | None, revoked_at: int | None, now_at: int, status: str
) -> None:
    assert replace(RECORD, expires_at=expires_at, revoked_at=revoked_at).status_at(now_at) == status


def test_the_principal_of_a_key_has_its_scopes_and_no_permission() -> None:
    who = RECORD.principal()
    assert (who.kind, who.id, who.name, who.key_prefix, who.rate_limit) == ("key", "key_1", "ci", "svc_012345", 60)
    assert who.scopes == {Scope.SHIELD_SCAN}
    assert not who.permissions


def test_a_created_key_does_not_show_the_key_where_it_is_printed() -> None:
    assert "svc_secret" not in repr(CreatedKey(key="svc_secret", record=RECORD))
