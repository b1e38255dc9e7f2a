"""The table of requests."""

from dataclasses import asdict, fields, replace

import pytest

from gateway.domain.traffic import TrafficRow
from gateway.store.store import Store


async def test_rows_written_behind_arrive_whole(store: Store) -> None:
    for number in range(40):
        row = TrafficRow(
            id=f"trf_{number}",
            occurred_at=number,
            request_id="req_1",
            operation="shield.scan",
            principal_id="key_1",
            verdict="ALLOW",
            score=3,
            detections=({"rule": "a", "start": 1, "end": 2, "count": 1},),
            text_chars=2**40,
        )
        store.db.write_behind(lambda tx, row=row: store.traffic.insert(tx, row))
    await store.db.write(lambda tx: None)
    rows = await store.db.read(lambda tx: tx.query("SELECT * FROM traffic ORDER BY position"))
    assert [row["id"] for row in rows] == [f"trf_{number}" for number in range(40)]
    assert rows[0]["detections"] == '[{"rule":"a","start":1,"end":2,"count":1}]'
    assert (rows[0]["text_chars"], rows[0]["model"]) == (2**40, None)


@pytest.mark.parametrize("column", [field.name for field in fields(TrafficRow)])
async def test_rows_that_differ_in_one_column_alone_come_back_as_they_were(store: Store, column: str) -> None:
    row = TrafficRow(
        "trf_0", 1, "req_0", "chat.completions", "key_0", "ALLOW", 2, "svc_0", "agent", "model", "provider", "inbound",
        text_sha256="00", text_chars=3, prompt_tokens=4, reply_tokens=5, cost_microusd=6, elapsed_us=7, overhead_us=8,
        instance_id="ins_0", origin="production",
    )  # fmt: skip
    values = [({"rule": "a"},), ({"rule": "b"},)] if column == "detections" else [90, 91]
    if isinstance(getattr(row, column), str):
        values = ["x", "y"]
    given = [row, *(replace(row, **{column: value}) for value in values)]

    await store.db.write(lambda tx: [store.traffic.insert(tx, one) for one in given])

    found = await store.db.read(lambda tx: tx.query("SELECT * FROM traffic ORDER BY position"))
    for one, stored in zip(given, found, strict=True):
        wanted = asdict(one) | {"detections": stored["detections"]}
        assert {name: stored[name] for name in wanted} == wanted
    if column == "detections":
        assert [stored["detections"] for stored in found] == ["[]", '[{"rule":"a"}]', '[{"rule":"b"}]']
