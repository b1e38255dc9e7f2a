"""The table of requests."""

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
    rows = await store.db.read(lambda tx: tx.query("SELECT * FROM traffic_all ORDER BY position"))
    assert [row["id"] for row in rows] == [f"trf_{number}" for number in range(40)]
    assert rows[0]["detections"] == '[{"rule":"a","start":1,"end":2,"count":1}]'
    assert (rows[0]["text_chars"], rows[0]["model"]) == (2**40, None)
