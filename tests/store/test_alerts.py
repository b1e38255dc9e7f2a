"""The table of alerts."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.alerts import Alert, AlertFilter, AlertSource, AlertStatus
from gateway.errors import InvalidRequest
from gateway.shield.detections import Severity
from gateway.store.store import Store

START = 1_700_000_000_000


def alert(number: int, **changes: Any) -> Alert:
    one = Alert(
        id=f"alr_{number}",
        title="Prompt blocked",
        description="ü",
        severity=Severity.HIGH,
        source=AlertSource.SHIELD,
        rule="ignore-previous",
        fingerprint=f"print {number}",
        first_seen_at=START + number * 1000,
        last_seen_at=START + number * 1000,
        evidence=({"rule": "ignore-previous", "start": 1},),
    )
    return replace(one, **changes)


async def fill(store: Store, *alerts: Alert) -> None:
    await store.db.write(lambda tx: [store.alerts.insert(tx, one) for one in alerts])


async def ids(store: Store, **wanted: Any) -> list[str]:
    page = await store.db.read(lambda tx: store.alerts.page(tx, AlertFilter(**wanted)))
    return [one.id for one in page.items]


async def test_an_alert_reads_back_and_stands_as_it_was_updated(store: Store) -> None:
    await fill(store, alert(1))
    assert await store.db.read(lambda tx: store.alerts.by_id(tx, "alr_1")) == alert(1)
    changed = alert(1, status=AlertStatus.RESOLVED, count=7, resolved_by="ann", resolved_at=START, evidence=())
    assert await store.db.write(lambda tx: store.alerts.change(tx, changed))
    assert await store.db.read(lambda tx: store.alerts.by_id(tx, "alr_1")) == changed
    assert not await store.db.write(lambda tx: store.alerts.change(tx, alert(2)))
    assert await store.db.read(lambda tx: store.alerts.by_id(tx, "alr_2")) is None


async def test_the_latest_of_a_fingerprint_is_the_last_one_made(store: Store) -> None:
    await fill(store, alert(1, fingerprint="x"), alert(2, fingerprint="x"), alert(3))
    latest = await store.db.read(lambda tx: store.alerts.latest(tx, "x"))
    assert latest is not None
    assert latest.id == "alr_2"
    assert await store.db.read(lambda tx: store.alerts.latest(tx, "y")) is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [5, 4, 3, 2, 1]),
        ({"status": AlertStatus.RESOLVED}, [2]),
        ({"severity": Severity.CRITICAL}, [3]),
        ({"source": AlertSource.AUTH}, [4]),
        ({"scope": "active"}, [4, 3, 1]),
        ({"scope": "terminal"}, [5, 2]),
        ({"scope": "active", "status": AlertStatus.RESOLVED}, []),
        ({"since": START + 4000}, [5, 4, 1]),
        ({"until": START + 2000}, [2, 1]),
        ({"limit": 1}, [5]),
    ],
)
async def test_filters_find_what_they_name_and_nothing_else(store: Store, wanted: Any, found: list[int]) -> None:
    await fill(
        store,
        alert(1, last_seen_at=START + 9000, status=AlertStatus.INVESTIGATING),
        alert(2, status=AlertStatus.RESOLVED),
        alert(3, severity=Severity.CRITICAL),
        alert(4, source=AlertSource.AUTH),
        alert(5, status=AlertStatus.SUPPRESSED),
    )
    assert await ids(store, **wanted) == [f"alr_{number}" for number in found]


async def test_pages_follow_each_other_while_alerts_are_seen_again(store: Store) -> None:
    await fill(store, *(alert(number) for number in range(10)))
    seen: list[str] = []
    cursor = None
    while True:
        wanted = AlertFilter(scope="active", limit=3, cursor=cursor)
        page = await store.db.read(lambda tx, wanted=wanted: store.alerts.page(tx, wanted))
        seen += [one.id for one in page.items]
        again = alert(0, count=len(seen), last_seen_at=START * 2)
        await store.db.write(lambda tx, again=again: store.alerts.change(tx, again))
        cursor = page.next
        if cursor is None:
            break
    assert seen == [f"alr_{number}" for number in range(9, -1, -1)]


@pytest.mark.parametrize(
    ("wanted", "param"), [({"limit": 0}, "limit"), ({"limit": 501}, "limit"), ({"since": 2**80}, "since")]
)
async def test_bounds_are_refused_by_name(store: Store, wanted: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await ids(store, **wanted)
    assert refusal.value.param == param
