"""Single values of the database."""

from typing import Any

from gateway.store.store import Store


async def test_a_value_is_set_and_replaced(store: Store) -> None:
    assert await store.db.read(lambda tx: store.meta.get(tx, "a")) is None
    for value in ("1", "2"):
        await store.db.write(lambda tx, value=value: store.meta.set(tx, "a", value))
        assert await store.db.read(lambda tx: store.meta.get(tx, "a")) == value


async def test_a_database_keeps_the_id_it_got_first(place: Any) -> None:
    first = await place.open()
    assert first.instance_id.startswith("ins_")
    await first.aclose()
    again = await place.open()
    assert again.instance_id == first.instance_id
    await again.aclose()
