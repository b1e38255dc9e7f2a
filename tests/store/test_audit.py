"""The table of audit events: pages, filters and the chain."""

import gc
import weakref
from dataclasses import replace
from typing import Any, cast

import pytest

from gateway.domain.audit import GENESIS_HASH, AuditEvent, AuditFilter, ChainHead, check_links
from gateway.errors import InvalidRequest
from gateway.store.audit import USUAL
from gateway.store.database import Transaction
from gateway.store.store import Store

START = 1_700_000_000_000


def event(store: Store, number: int, **changes: Any) -> AuditEvent:
    values: dict[str, Any] = {
        "id": f"evt_{number:026}",
        "occurred_at": START + number * 1000,
        "source": "cli",
        "action": "api_key_created",
        "actor": "ann",
        "actor_type": "local",
        "resource_type": "api_key",
        "resource_id": f"key_{number}",
        "instance_id": store.instance_id,
        "details": {"number": number},
    }
    return AuditEvent(**(values | changes))


async def fill(store: Store, *events: AuditEvent) -> None:
    await store.db.write(lambda tx: [store.audit.append(tx, one) for one in events])


async def numbers(store: Store, **wanted: Any) -> list[object]:
    page = await store.db.read(lambda tx: store.audit.page(tx, AuditFilter(**wanted)))
    return [one.details["number"] for one in page.items]


@pytest.mark.parametrize(
    "column",
    ["source", "action", "outcome", "reason", "actor", "actor_type", "actor_id", "key_prefix", "ip", "user_agent",
     "resource_type", "resource_id", "before", "after", "request_id"],
)  # fmt: skip
async def test_events_that_differ_in_one_field_alone_come_back_as_they_were(store: Store, column: str) -> None:
    values: tuple[object, ...] = ({"a": 1}, None, {"b": 2}) if column in ("before", "after") else ("x", "y", "y")
    events = [event(store, number, resource_id="same") for number in range(3)]
    given = [replace(one, **{column: value}) for one, value in zip(events, values, strict=True)]

    await fill(store, *given)

    found = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [replace(one, seq=0, prev_hash="", hash="") for one in found] == given
    assert check_links(ChainHead(0, GENESIS_HASH), found)[1].ok


async def test_an_event_reads_back_as_it_was_appended(store: Store) -> None:
    one = event(store, 1, before={"a": None}, after={"ü": [1.5, "\u2028"]}, reason="r", ip="::1", user_agent="curl")
    appended = await store.db.write(lambda tx: store.audit.append(tx, one))
    page = await store.db.read(lambda tx: store.audit.page(tx, AuditFilter()))
    assert page.items == (appended,)
    assert (appended.seq, appended.prev_hash) == (1, GENESIS_HASH)
    assert page.next is None


async def test_the_chain_goes_on_over_groups_and_failed_works(store: Store) -> None:
    await fill(store, event(store, 1), event(store, 2))
    with pytest.raises(ValueError, match="Out of range"):
        await fill(store, event(store, 3), event(store, 4, details={"bad": float("nan")}))
    await fill(store, event(store, 5))
    events = await store.db.read(lambda tx: store.audit.chain(tx, store.instance_id, after_seq=0, limit=10))
    assert [one.details["number"] for one in events] == [1, 2, 5]
    place, report = check_links(ChainHead(0, GENESIS_HASH), events)
    assert (report.ok, place.seq) == (True, 3)
    assert await store.db.read(lambda tx: store.audit.head(tx, store.instance_id)) == place


async def test_each_instance_has_a_chain_of_its_own(store: Store) -> None:
    await fill(store, event(store, 1), event(store, 2, instance_id="ins_other"), event(store, 3))
    chains = [
        await store.db.read(lambda tx, one=one: store.audit.chain(tx, one, after_seq=0, limit=10))
        for one in (store.instance_id, "ins_other")
    ]
    assert [[one.seq for one in chain] for chain in chains] == [[1, 2], [1]]
    assert set(await store.db.read(store.audit.instances)) == {store.instance_id, "ins_other"}


async def test_events_are_listed_newest_first(store: Store) -> None:
    await fill(store, *(event(store, number) for number in (1, 2, 3)))
    assert await numbers(store) == [3, 2, 1]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"source": "mcp"}, [2]),
        ({"action": "gateway_started"}, [3]),
        ({"actor": "bob"}, [4]),
        ({"resource_type": "tool"}, [5]),
        ({"since": START + 4000}, [5, 4]),
        ({"until": START + 2000}, [2, 1]),
        ({"since": START + 2000, "until": START + 3000}, [3, 2]),
        ({"exclude_actions": ("gateway_started", "nothing")}, [5, 4, 2, 1]),
        ({"source": "cli", "actor": "ann", "exclude_actions": ("gateway_started",)}, [5, 1]),
        ({"action": "no_such"}, []),
        ({"search": "GATEWAY_"}, [3]),
        ({"search": "BoB"}, [4]),
        ({"search": "key_4"}, [4]),
        ({"search": "100%"}, [1]),
        ({"search": "%"}, [1]),
        ({"search": "Größe"}, [2]),
        ({"search": "a\\b"}, [5]),
        ({"search": "' OR 1=1 --"}, []),
        ({"limit": 2}, [5, 4]),
    ],
)
async def test_filters_find_what_they_name_and_nothing_else(store: Store, wanted: Any, found: list[int]) -> None:
    await fill(
        store,
        event(store, 1, details={"number": 1, "note": "100% sure"}),
        event(store, 2, source="mcp", details={"number": 2, "note": "Größe"}),
        event(store, 3, action="gateway_started"),
        event(store, 4, actor="bob"),
        event(store, 5, resource_type="tool", resource_id="a\\b"),
    )
    assert await numbers(store, **wanted) == found


async def test_pages_follow_each_other_while_new_events_come(store: Store) -> None:
    # All at one time: the order of commits decides.
    await fill(store, *(event(store, number, occurred_at=START) for number in range(25)))
    seen: list[object] = []
    cursor = None
    for _ in range(10):
        wanted = AuditFilter(source="cli", since=START - len(seen), limit=7, cursor=cursor)
        page = await store.db.read(lambda tx, wanted=wanted: store.audit.page(tx, wanted))
        seen += [one.details["number"] for one in page.items]
        await fill(store, event(store, 100 + len(seen)))
        cursor = page.next
        if cursor is None:
            break
    assert seen == list(range(24, -1, -1))


async def test_a_cursor_of_another_query_is_refused(store: Store) -> None:
    await fill(store, *(event(store, number) for number in range(4)))
    page = await store.db.read(lambda tx: store.audit.page(tx, AuditFilter(limit=2)))
    for other in ({"source": "cli"}, {"search": "x"}, {"exclude_actions": ("x",)}, {"since": 1}):
        wanted = AuditFilter(limit=2, cursor=page.next, **other)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest) as refusal:
            await store.db.read(lambda tx, wanted=wanted: store.audit.page(tx, wanted))
        assert refusal.value.param == "cursor"


@pytest.mark.parametrize(
    ("wanted", "param"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": 2**70}, "limit"),
        ({"since": 2**63}, "since"),
        ({"until": -(2**64)}, "until"),
        ({"search": "x" * 10_000}, "search"),
        ({"actor": "a\0b"}, "actor"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
async def test_bounds_are_refused_by_name(store: Store, wanted: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await store.db.read(lambda tx: store.audit.page(tx, AuditFilter(**wanted)))
    assert refusal.value.param == param


async def test_half_a_character_is_a_bad_request(store: Store) -> None:
    with pytest.raises(InvalidRequest):
        await store.db.read(lambda tx: store.audit.page(tx, AuditFilter(actor="\ud800")))


async def test_what_a_group_held_goes_with_its_commit_and_does_not_wait_for_the_collector(store: Store) -> None:
    groups: list[weakref.ref[Transaction]] = []

    def work(tx: Transaction) -> None:
        store.audit.append(tx, event(store, 1))
        groups.append(weakref.ref(tx))

    gc.disable()
    try:
        await store.db.write(work)
        assert groups[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("column", USUAL)
@pytest.mark.sqlite
async def test_what_is_unlike_most_events_is_found_by_an_index_and_what_is_like_them_all_the_same(
    store: Store, column: str
) -> None:
    await fill(store, *(event(store, number, **USUAL) for number in range(600)))
    await fill(store, event(store, 600), event(store, 601, **(USUAL | {column: "rare"})))

    assert await numbers(store, **{column: "rare"}) == [601]
    assert await numbers(store, **{column: USUAL[column]}, limit=2) == [599, 598]
    plan = await plan_of(store, AuditFilter(**{column: "rare"}))
    kind = "resource" if column == "resource_type" else column
    assert f"USING INDEX audit_events_by_{kind} " in plan


async def test_the_times_of_what_happened_are_read_from_the_index_alone(store: Store) -> None:
    await fill(store, *(event(store, number, action=action) for number, action in enumerate(["a", *USUAL.values()])))
    for action, number in (("a", 0), (USUAL["action"], 1)):
        found = await store.db.read(lambda tx, a=action: store.audit.times_at(tx, a, since=START, limit=9))
        assert found == [START + number * 1000]


async def plan_of(store: Store, wanted: AuditFilter) -> str:
    """Return how the database looks for a page."""

    def look(tx: Transaction) -> str:
        class Explained:
            def query(self, sql: str, params: Any = {}, /) -> Any:  # noqa: B006  # never written to
                said.extend(row["detail"] for row in tx.query(f"EXPLAIN QUERY PLAN {sql}", params))
                return tx.query(sql, params)

        said: list[str] = []
        store.audit.page(cast(Transaction, Explained()), wanted)
        return "\n".join(said)

    return await store.db.read(look)
