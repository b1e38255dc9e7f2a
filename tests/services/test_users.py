"""The people who may sign in: made, changed, and never left without an admin."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock

from gateway.clock import Ids
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import ROLE_PERMISSIONS, Caller, Permission, Principal, RequestContext, Role, local
from gateway.domain.users import ChangedUser, NewUser
from gateway.errors import AuditUnavailable, Conflict, GatewayError, InvalidRequest, NotFound, PermissionDenied
from gateway.log import Log
from gateway.services.core import Core
from gateway.services.passwords import Passwords
from gateway.services.users import Users
from gateway.store.store import Store, open_store

CONTEXT = RequestContext(request_id="req_1")
CLI = local("cli")
PASSWORD = "correct horse"
MANAGER = Principal(
    "user", "usr_9", "m", frozenset(), ROLE_PERMISSIONS[Role.SECURITY_MANAGER] | {Permission.USERS_MANAGE}
)


class QuickPasswords(Passwords):
    """Hashes in no time."""

    def __init__(self) -> None:
        pass

    async def hash(self, password: str) -> str:
        return f"quick {len(password)}"


class House:
    def __init__(self, store: Store) -> None:
        clock = FakeClock()
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.audit = core.audit
        self.users = Users(core, passwords=QuickPasswords())

    async def make(self, username: str = "alice", role: Role = Role.ADMIN, who: Principal = CLI) -> str:
        return (await self.users.create(Caller(who, CONTEXT), NewUser(username, PASSWORD, role))).id

    async def change(self, user: str, who: Principal = CLI, **wanted: Any) -> Any:
        return await self.users.change(Caller(who, CONTEXT), user, ChangedUser(**wanted))

    async def events(self) -> list[Any]:
        return list((await self.audit.page(AuditFilter())).items)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    clock = FakeClock()
    store = await open_store(Path(":memory:"), clock=clock, ids=Ids(clock), log=Log(io.StringIO(), clock))
    yield House(store)
    await store.aclose()


async def test_a_user_is_made_with_its_event_and_without_a_password_in_it(house: House) -> None:
    user_id = await house.make()
    (user,) = await house.users.list()
    assert (user.id, user.username, user.role, user.disabled_at, user.version) == (
        user_id,
        "alice",
        Role.ADMIN,
        None,
        1,
    )
    (event,) = await house.events()
    assert (event.action, event.resource_id, event.after) == (
        "user_created",
        user_id,
        {"username": "alice", "role": "admin", "status": "active"},
    )
    assert "quick" not in repr(event)
    assert "quick" not in repr(user)


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "-x", "x" * 65, "a\n", "élan", "'; DROP TABLE users; --", "a\0", "x/y"]
)
async def test_a_bad_name_is_refused(house: House, name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await house.make(name)
    assert refusal.value.param == "username"
    assert await house.users.list() == ()


@pytest.mark.parametrize(
    ("password", "error"),
    [
        ("", InvalidRequest),
        ("short", InvalidRequest),
        ("x" * 257, InvalidRequest),
        ("aaaaaaaaa", InvalidRequest),
        ("Username1", Conflict),
    ],
)
async def test_a_bad_password_is_refused_and_not_repeated(
    house: House, password: str, error: type[GatewayError]
) -> None:
    with pytest.raises(error) as refusal:
        await house.users.create(Caller(CLI, CONTEXT), NewUser("username1", password, Role.VIEWER))
    assert refusal.value.param == "password"
    assert not password or password not in refusal.value.message


@pytest.mark.parametrize("name", ["alice", "ALICE"])
async def test_a_name_is_given_once_whatever_its_case(house: House, name: str) -> None:
    await house.make()
    with pytest.raises(Conflict) as refusal:
        await house.make(name)
    assert refusal.value.param == "username"


async def test_nobody_makes_or_changes_a_user_who_may_do_more(house: House) -> None:
    admin = await house.make()
    viewer = await house.make("bob", Role.VIEWER, who=MANAGER)
    for attempt in (
        house.make("eve", Role.ADMIN, who=MANAGER),
        house.change(viewer, MANAGER, role=Role.ADMIN),
        house.change(admin, MANAGER, role=Role.VIEWER),
        house.change(admin, MANAGER, disabled=True),
        house.change(admin, MANAGER, password="another one"),
    ):
        with pytest.raises(PermissionDenied):
            await attempt
    assert (await house.change(viewer, MANAGER, role=Role.OPERATOR)).role is Role.OPERATOR


async def test_the_last_admin_stays(house: House) -> None:
    one = await house.make()
    with pytest.raises(Conflict, match="last admin"):
        await house.change(one, role=Role.VIEWER)
    with pytest.raises(Conflict, match="last admin"):
        await house.change(one, disabled=True)
    two = await house.make("second")
    assert (await house.change(one, disabled=True)).disabled_at
    with pytest.raises(Conflict):
        await house.change(two, disabled=True)
    assert (await house.change(one, disabled=False)).disabled_at is None


async def test_what_holds_already_is_no_change(house: House) -> None:
    user = await house.make()
    assert (await house.change(user, role=Role.ADMIN, disabled=False)).version == 1
    assert len(await house.events()) == 1


async def test_a_lost_update_is_a_conflict(house: House) -> None:
    await house.make()
    user = await house.make("bob", Role.VIEWER)
    assert (await house.change(user, role=Role.OPERATOR, version=1)).version == 2
    with pytest.raises(Conflict) as refusal:
        await house.change(user, role=Role.AUDITOR, version=1)
    assert refusal.value.param == "version"


async def test_a_user_is_found_by_id_and_by_name(house: House) -> None:
    user = await house.make()
    assert (await house.users.show(user)).id == (await house.users.show("Alice")).id == user
    for name in ("", "bob", "usr_", "%", "' OR 1=1"):
        with pytest.raises(NotFound):
            await house.users.show(name)


async def test_a_change_whose_event_cannot_be_written_does_not_hold(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.make()
    user = await house.make("bob", Role.VIEWER)

    def fail(tx: Any, event: Any) -> None:
        raise AuditUnavailable("no")

    monkeypatch.setattr(house.store.audit, "append", fail)
    with pytest.raises(AuditUnavailable):
        await house.change(user, role=Role.OPERATOR)
    assert (await house.users.show(user)).role is Role.VIEWER
