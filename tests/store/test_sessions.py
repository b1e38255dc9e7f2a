"""Sessions and failed sign-ins as the database keeps them."""

from seeding import seed

from gateway.domain.principals import Role
from gateway.domain.users import SESSION_IDLE_MS, Session, SessionFilter, User
from gateway.store.sessions import SignInOrigin
from gateway.store.store import Store

USER = User("usr_1", "alice", "hash", Role.VIEWER, 5, None)
PLACE = SignInOrigin("a" * 64, "192.0.2.1")


def session(number: int, **changes: object) -> Session:
    fields: dict[str, object] = {
        "id": f"ses_{number:026d}",
        "digest": f"{number:064x}",
        "user_id": "usr_1",
        "created_at": 10,
        "last_seen_at": 10,
        "expires_at": 10_000_000,
        "ip": "192.0.2.1",
        "user_agent": None,
    }
    return Session(**fields | changes)  # type: ignore[arg-type]


async def test_a_session_comes_back_with_its_user(store: Store) -> None:
    await seed(store, lambda tx: (store.users.insert(tx, USER), store.sessions.insert(tx, session(1))))
    for found in (
        await store.db.read(lambda tx: store.sessions.by_digest(tx, f"{1:064x}")),
        await store.db.read(lambda tx: store.sessions.by_id(tx, f"ses_{1:026d}")),
    ):
        assert found is not None
        assert (found.session, found.user) == (session(1), USER)
    assert await store.db.read(lambda tx: store.sessions.by_digest(tx, "x")) is None


async def test_the_next_sign_in_drops_what_is_over(store: Store) -> None:
    old, new = session(1, expires_at=20), session(2, created_at=20)
    await seed(store, lambda tx: (store.users.insert(tx, USER), store.sessions.insert(tx, old)))
    await store.db.write(lambda tx: store.sessions.insert(tx, new))
    assert await store.db.read(lambda tx: store.sessions.by_id(tx, old.id)) is None


async def test_a_use_never_moves_back_and_idle_sessions_are_not_listed(store: Store) -> None:
    await seed(store, lambda tx: (store.users.insert(tx, USER), store.sessions.insert(tx, session(1))))
    for now_at in (50, 30):
        await store.db.write(lambda tx, at=now_at: store.sessions.mark_seen(tx, session(1).id, now_at=at))
    for now_at, count in ((49 + SESSION_IDLE_MS, 1), (50 + SESSION_IDLE_MS, 0)):
        page = await store.db.read(lambda tx, at=now_at: store.sessions.page(tx, SessionFilter(), now_at=at))
        assert len(page.items) == count


async def test_failures_are_counted_by_account_and_by_network(store: Store) -> None:
    other = SignInOrigin("b" * 64, PLACE.network)

    def work(tx) -> None:
        for at in (1, 2, 3):
            store.sign_in_failures.insert(tx, PLACE, failed_at=at)
        store.sign_in_failures.insert(tx, other, failed_at=4)

    await store.db.write(work)
    failures = store.sign_in_failures
    assert await store.db.read(
        lambda tx: failures.times(tx, PLACE.network, account=PLACE.account, since=1, limit=9)
    ) == (3, 2)
    assert await store.db.read(lambda tx: failures.times(tx, PLACE.network, since=0, limit=3)) == (4, 3, 2)
    await store.db.write(lambda tx: failures.forget(tx, PLACE))
    assert await store.db.read(lambda tx: failures.times(tx, PLACE.network, since=0, limit=9)) == (4,)
    await store.db.write(lambda tx: failures.prune(tx, before=4))
    assert await store.db.read(lambda tx: failures.times(tx, PLACE.network, since=0, limit=9)) == ()
