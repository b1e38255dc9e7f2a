"""Signing in and out, what failures cost, how long a session lasts, and who may end it."""

import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fake_clock import FakeClock
from seeding import seed

from gateway.auth.passwords import hash_password, make_password
from gateway.auth.sessions import hash_token
from gateway.clock import Ids
from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.principals import Caller, RequestContext, Role, local
from gateway.domain.users import ChangedUser, SessionFilter, User
from gateway.errors import (
    AuditUnavailable,
    BadCredentials,
    Conflict,
    GatewayError,
    InvalidRequest,
    LoginThrottled,
    NotFound,
    NotSignedIn,
    Overloaded,
)
from gateway.log import Log
from gateway.services import sign_in_throttle
from gateway.services.alerts import Alerts
from gateway.services.core import Core
from gateway.services.passwords import Passwords
from gateway.services.refusals import Refusals
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.services.signin import NewSession, SignIn
from gateway.services.users import Users
from gateway.store.store import Store, open_store

CONTEXT = RequestContext(request_id="req_1", ip="192.0.2.1", user_agent="curl/8")
ELSEWHERE = RequestContext(request_id="req_2", ip="192.0.2.2")
CLI = local("cli")
CALLER = Caller(CLI, CONTEXT)
PASSWORD = "correct horse battery staple"
HASH = hash_password(PASSWORD, bytes(16))
HOUR_MS = 3_600_000


class QuickPasswords(Passwords):
    """Compares in no time, and counts. The real ones have tests of their own."""

    def __init__(self) -> None:
        self.checked: list[str | None] = []

    async def hash(self, password: str) -> str:
        return f"quick {password}"

    async def check(self, password: str, stored: str | None) -> bool:
        self.checked.append(stored)
        await anyio.lowlevel.checkpoint()
        return stored == (HASH if password == PASSWORD else f"quick {password}")


class House:
    """One process: a store, the services over it, and the user alice."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.clock = clock
        core = Core(store, clock, Ids(clock))
        self.store = store
        self.passwords = QuickPasswords()
        self.audit = core.audit
        self.refusals = Refusals(core, alerts=Alerts(core))
        throttle = SignInThrottle(core, refusals=self.refusals)
        passwords: Any = self.passwords
        self.signin = SignIn(core, throttle=throttle, passwords=passwords)
        self.users = Users(core, passwords=passwords)
        self.alice = User("usr_1", "alice", HASH, Role.ADMIN, clock.at, None)

    async def enter(self, context: RequestContext = CONTEXT, **more: Any) -> NewSession:
        return await self.signin.begin("alice", PASSWORD, context, **more)

    async def fail(self, username: str = "alice", context: RequestContext = CONTEXT) -> None:
        with pytest.raises(BadCredentials):
            await self.signin.begin(username, "wrong", context)

    async def events(self, action: str) -> list[AuditEvent]:
        await self.store.db.write(lambda tx: None)
        return list((await self.audit.page(AuditFilter(action=action))).items)


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def open_house(path: Path, clock: FakeClock) -> House:
    log = Log(io.StringIO(), clock)
    return House(await open_store(path / "gateway.db", clock=clock, ids=Ids(clock), log=log), clock)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    one = await open_house(tmp_path, FakeClock(seconds=None))
    await seed(one.store, lambda tx: one.store.users.insert(tx, one.alice))
    yield one
    await one.store.aclose()


async def test_a_session_is_found_by_its_token_and_stored_as_its_hash(house: House, tmp_path: Path) -> None:
    new = await house.enter()
    found = await house.signin.find(new.token)
    assert found == new.signed_in
    assert found.session.digest == hash_token(new.token)
    assert found.user.principal().permissions
    assert new.token not in repr(new)
    await house.store.aclose()
    assert new.token.encode() not in contents(tmp_path)


@pytest.mark.parametrize("name", ["ALICE", "Alice"])
async def test_the_case_of_a_name_does_not_matter(house: House, name: str) -> None:
    assert (await house.signin.begin(name, PASSWORD, CONTEXT)).signed_in.user.id == "usr_1"


@pytest.mark.parametrize("token", [None, "", "x", "A" * 43, "A" * 10_000, "' OR 1=1 --"])
async def test_anything_else_is_no_session(house: House, token: str | None) -> None:
    await house.enter()
    with pytest.raises(NotSignedIn):
        await house.signin.find(token)


@pytest.mark.parametrize("name", ["bob", "", "alice ", "\ud800", "' OR 1=1 --", "%", "алиса"])
async def test_an_unknown_user_costs_and_hears_the_same(house: House, name: str) -> None:
    with pytest.raises(BadCredentials) as wrong:
        await house.signin.begin("alice", "wrong", CONTEXT)
    with pytest.raises(BadCredentials) as unknown:
        await house.signin.begin(name, PASSWORD, CONTEXT)
    assert wrong.value.message == unknown.value.message
    assert house.passwords.checked == [HASH, None]


async def test_a_disabled_user_cannot_sign_in_and_is_out_at_once(house: House) -> None:
    new = await house.enter()
    disabled = User("usr_1", "alice", HASH, Role.ADMIN, 0, disabled_at=house.clock.at)
    await seed(house.store, lambda tx: house.store.users.change(tx, disabled))
    with pytest.raises(NotSignedIn):
        await house.signin.find(new.token)
    with pytest.raises(BadCredentials):
        await house.enter()
    assert [event.reason for event in await house.events("sign_in_failed")] == ["user_disabled"]


async def test_the_id_changes_at_sign_in_and_the_old_session_ends(house: House) -> None:
    first = await house.enter()
    second = await house.enter(old_token=first.token)
    assert first.token != second.token
    with pytest.raises(NotSignedIn):
        await house.signin.find(first.token)
    assert await house.signin.find(second.token)


async def test_a_session_ends_after_an_hour_without_use(house: House) -> None:
    new = await house.enter()
    house.clock.at += HOUR_MS - 1
    await house.signin.find(new.token)
    await house.store.db.write(lambda tx: None)
    house.clock.at += HOUR_MS - 1
    await house.signin.find(new.token)
    await house.store.db.write(lambda tx: None)
    house.clock.at += HOUR_MS
    with pytest.raises(NotSignedIn):
        await house.signin.find(new.token)


async def test_a_session_ends_after_twelve_hours_however_busy(house: House) -> None:
    new = await house.enter()
    for _ in range(24):
        house.clock.at += HOUR_MS // 2 - 1
        await house.signin.find(new.token)
        await house.store.db.write(lambda tx: None)
    house.clock.at += 24
    with pytest.raises(NotSignedIn):
        await house.signin.find(new.token)


async def test_signing_out_ends_the_session(house: House) -> None:
    one, two = await house.enter(), await house.enter()
    await house.signin.end(one.signed_in, CONTEXT)
    with pytest.raises(NotSignedIn):
        await house.signin.find(one.token)
    assert await house.signin.find(two.token)
    assert len(await house.events("user_signed_out")) == 1


async def test_a_session_ended_by_another_process_is_over(house: House, tmp_path: Path) -> None:
    new = await house.enter()
    other = await open_house(tmp_path, house.clock)
    await other.signin.end_one(CALLER, new.signed_in.session.id)
    with pytest.raises(NotSignedIn):
        await house.signin.find(new.token)
    await other.store.aclose()


async def test_five_failures_in_a_minute_make_the_right_password_wait_too(house: House) -> None:
    for _ in range(5):
        await house.fail()
    with pytest.raises(LoginThrottled) as refusal:
        await house.enter()
    assert refusal.value.retry_after_seconds == 60
    assert len(house.passwords.checked) == 5
    house.clock.at += 60_000
    assert await house.enter()


async def test_failures_are_of_one_account_and_one_address(house: House) -> None:
    for _ in range(5):
        await house.fail()
    await house.fail("bob")
    assert await house.enter(ELSEWHERE)
    with pytest.raises(LoginThrottled):
        await house.signin.begin("ALICE", PASSWORD, CONTEXT)


async def test_an_unknown_account_is_throttled_like_a_known_one(house: House) -> None:
    for _ in range(5):
        await house.fail("bob")
    with pytest.raises(LoginThrottled):
        await house.signin.begin("bob", "wrong", CONTEXT)


async def test_ten_failures_cost_five_minutes_and_fifteen_cost_thirty(house: House) -> None:
    waits = {}
    for number in range(1, 17):
        await house.fail()
        if number in (5, *range(10, 17)):
            with pytest.raises(LoginThrottled) as refusal:
                await house.enter()
            waits[number] = refusal.value.retry_after_seconds or 0
            house.clock.at += waits[number] * 1000
    assert waits == {5: 60} | dict.fromkeys(range(10, 15), 300) | {15: 1800, 16: 1800}


async def test_success_forgets_the_failures(house: House) -> None:
    for _ in range(4):
        await house.fail()
    await house.enter()
    for _ in range(4):
        await house.fail()
    assert await house.enter()


async def test_fifty_failures_in_a_minute_close_an_address_for_every_account(house: House) -> None:
    for number in range(50):
        await house.fail(f"user{number}")
    with pytest.raises(LoginThrottled):
        await house.enter()
    assert await house.enter(ELSEWHERE)
    house.clock.at += 60_000
    assert await house.enter()


async def test_many_tries_at_once_get_no_more_than_five(house: House) -> None:
    outcomes: list[str] = []

    async def attempt() -> None:
        try:
            await house.signin.begin("alice", "wrong", CONTEXT)
        except (BadCredentials, LoginThrottled) as error:
            outcomes.append(error.code)

    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(attempt)
    assert sorted(outcomes) == ["bad_credentials"] * 5 + ["login_throttled"] * 35


async def test_tries_over_two_processes_are_counted_together(house: House, tmp_path: Path) -> None:
    other = await open_house(tmp_path, house.clock)
    for _ in range(3):
        await house.fail()
    for _ in range(2):
        await other.fail()
    with pytest.raises(LoginThrottled):
        await house.enter()
    await other.store.aclose()


async def test_many_right_passwords_at_once_are_no_failures(house: House) -> None:
    tokens = set()

    async def attempt() -> None:
        tokens.add((await house.enter()).token)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(attempt)
    assert len(tokens) == 20


async def test_more_than_can_wait_are_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_throttle, "WAITING", 0)
    with pytest.raises(Overloaded):
        await house.enter()


async def test_another_password_ends_the_other_sessions(house: House) -> None:
    mine, other = await house.enter(), await house.enter()
    assert await house.signin.change_password(mine.signed_in, PASSWORD, "another password", CONTEXT) == 1
    assert await house.signin.find(mine.token)
    with pytest.raises(NotSignedIn):
        await house.signin.find(other.token)
    with pytest.raises(BadCredentials):
        await house.enter()
    assert await house.signin.begin("alice", "another password", CONTEXT)
    assert len(await house.events("user_password_changed")) == 1


@pytest.mark.parametrize(
    ("new", "error"),
    [
        ("short", InvalidRequest),
        ("x" * 257, InvalidRequest),
        ("aaaaaaaaaaaa", InvalidRequest),
        ("", InvalidRequest),
        (PASSWORD, Conflict),
        ("alice", InvalidRequest),
        ("ALICE", InvalidRequest),
    ],
)
async def test_a_bad_new_password_changes_nothing(house: House, new: str, error: type[GatewayError]) -> None:
    mine = await house.enter()
    with pytest.raises(error) as refusal:
        await house.signin.change_password(mine.signed_in, PASSWORD, new, CONTEXT)
    assert refusal.value.param == "new_password"
    assert await house.enter()


async def test_a_wrong_current_password_counts_as_a_failure(house: House) -> None:
    mine = await house.enter()
    for _ in range(5):
        with pytest.raises(BadCredentials):
            await house.signin.change_password(mine.signed_in, "wrong", "another password", CONTEXT)
    with pytest.raises(LoginThrottled):
        await house.signin.change_password(mine.signed_in, PASSWORD, "another password", CONTEXT)


async def test_sessions_are_listed_newest_first_without_those_that_are_over(house: House) -> None:
    await house.enter()
    house.clock.at += HOUR_MS
    two = await house.enter()
    house.clock.at += 1
    three = await house.enter()
    page = await house.signin.page(SessionFilter(limit=1))
    assert [one.session.id for one in page.items] == [three.signed_in.session.id]
    page = await house.signin.page(SessionFilter(limit=1, cursor=page.next))
    assert [one.session.id for one in page.items] == [two.signed_in.session.id]
    assert page.next is None
    assert (await house.signin.page(SessionFilter(user_id="usr_nobody"))).items == ()


async def test_sessions_of_a_user_are_ended_but_for_one(house: House) -> None:
    keep, gone = await house.enter(), await house.enter()
    count = await house.signin.end_of_user(CALLER, "usr_1", but_id=keep.signed_in.session.id)
    assert count == 1
    assert await house.signin.find(keep.token)
    with pytest.raises(NotSignedIn):
        await house.signin.find(gone.token)
    with pytest.raises(NotFound):
        await house.signin.end_of_user(CALLER, "usr_nobody")
    with pytest.raises(NotFound):
        await house.signin.end_one(CALLER, "ses_nothing")


async def test_nobody_is_signed_in_whose_event_cannot_be_written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tx: Any, event: Any) -> None:
        raise AuditUnavailable("no")

    monkeypatch.setattr(house.store.audit, "append", fail)
    with pytest.raises(AuditUnavailable):
        await house.enter()
    assert (await house.signin.page(SessionFilter())).items == ()


async def test_what_was_typed_as_a_name_is_kept_nowhere(house: House, tmp_path: Path) -> None:
    with pytest.raises(BadCredentials):
        await house.signin.begin("my-secret-password", "x", CONTEXT)
    (event,) = await house.events("sign_in_failed")
    assert (event.actor, event.reason, event.ip) == ("unknown", "unknown_user", "192.0.2.1")
    await house.store.aclose()
    assert b"my-secret-password" not in contents(tmp_path)


async def test_a_flood_of_throttled_tries_is_recorded_in_sums(house: House) -> None:
    for _ in range(5):
        await house.fail()
    for _ in range(30):
        with pytest.raises(LoginThrottled):
            await house.enter()
    house.refusals.flush()
    events = await house.events("sign_in_throttled")
    assert [event.reason for event in events] == ["repeated", "login_throttled"]
    assert events[0].details["refusals"][0]["count"] == 29  # type: ignore[index]


async def test_a_reset_password_ends_every_session(house: House) -> None:
    new = await house.enter()
    await house.users.change(CALLER, "alice", ChangedUser(password="another password"))
    with pytest.raises(NotSignedIn):
        await house.signin.find(new.token)


@pytest.mark.usefixtures("slow_passwords")
async def test_the_real_hashes_say_yes_and_no(tmp_path: Path) -> None:
    passwords = Passwords(ids=Ids(FakeClock(seconds=None)))
    stored = await passwords.hash(PASSWORD)
    assert await passwords.check(PASSWORD, stored)
    assert not await passwords.check("wrong", stored)
    assert not await passwords.check(PASSWORD, None)
    assert not await passwords.check(PASSWORD, None)


@pytest.mark.usefixtures("slow_passwords")
async def test_the_first_password_is_checked_as_slowly_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[int] = []
    scrypt = hashlib.scrypt
    monkeypatch.setattr(
        hashlib, "scrypt", lambda *a, n, r, p, **k: costs.append(n * r * p) or scrypt(*a, n=n, r=r, p=p, **k)
    )
    passwords = Passwords(ids=Ids(FakeClock(seconds=None)))
    slow = await passwords.hash(PASSWORD)
    random = make_password(bytes(range(20)))
    first = hash_password(random, bytes(16), is_random=True)
    makes, quick = costs
    assert quick < makes / 100
    for password, stored, is_right in ((random, first, True), ("wrong", first, False), (PASSWORD, slow, True)):
        costs.clear()
        assert await passwords.check(password, stored) is is_right
        assert makes <= sum(costs) <= makes + quick
