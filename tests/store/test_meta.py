"""Single values of the database."""

from gateway.clock import SystemClock, SystemIds
from gateway.store.store import Store


async def test_a_value_is_set_and_replaced(store: Store) -> None:
    assert store.db.read_now(lambda tx: store.meta.get(tx, "a")) is None
    for value in ("1", "2"):
        await store.db.write(lambda tx, value=value: store.meta.set(tx, "a", value))
        assert store.db.read_now(lambda tx: store.meta.get(tx, "a")) == value


async def test_a_database_keeps_the_id_it_got_first(store: Store) -> None:
    assert store.instance_id.startswith("ins_")
    again = await store.db.write(lambda tx: store.meta.instance_id(tx, SystemIds(SystemClock())))
    assert again == store.instance_id
