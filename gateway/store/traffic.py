"""Store traffic: a row for each request, sums over the rows, and the texts of requests that a policy keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.local_rules import ReplayText
from gateway.domain.paging import MAX_INTEGER
from gateway.domain.policies import KeptText
from gateway.domain.traffic import MAX_TRAFFIC_LIMIT, PRODUCTION, TrafficFilter, TrafficRow
from gateway.domain.traffic_sums import COUNTERS, FIVE_MINUTES_MS, HOUR_MS, SUM_KEY, Counters, sum_up
from gateway.shield.detections import Verdict
from gateway.store.database import Row, Transaction, insert_into
from gateway.store.filters import OCCURRED, Where, found_in, like, rank_of
from gateway.store.table import PositionedTable, Table, TableReader
from gateway.strict_json import json_text

SEARCHED = found_in(
    ("agent", "key_prefix", "principal_id", "model", "provider", "request_id", "text_sha256", "detections")
)
_EQUAL = ("verdict", "agent", "model", "provider", "operation", "status", "request_id")
# A row without tokens or cost stands below one that has 0 of them.
SORTS = {
    "time": "occurred_at",
    "verdict": rank_of("verdict", Verdict),
    "score": "score",
    "tokens": "COALESCE(prompt_tokens + reply_tokens, prompt_tokens, reply_tokens, -1)",
    "cost": "COALESCE(cost_microusd, -1)",
    "latency": "elapsed_us",
    "overhead": "overhead_us",
    "status": "status",
}
NOTE_SUMMED = insert_into("traffic_summed", ("name", "position"), key=("name",))
ADD_SUM = f"""
    {insert_into("traffic_sums", (*SUM_KEY, *COUNTERS))} ON CONFLICT ({", ".join(SUM_KEY)})
        DO UPDATE SET {", ".join(f"{name} = traffic_sums.{name} + excluded.{name}" for name in COUNTERS)}
"""
_TOTALS = ", ".join(f"SUM({name}) AS {name}" for name in COUNTERS)
_OF_WINDOW = """
     WHERE size_ms = :size_ms AND dimension = :dimension AND origin = :origin
       AND bucket_at >= :since AND bucket_at < :until AND value = :value
"""
# Whole hours come from the sums of hours; what lies before and after them from the sums of five minutes.
_PIECES = (("hour", "hour_since", "hour_until"), ("fine", "since", "hour_since"), ("fine", "hour_until", "until"))
BY_TIME = f"""
    SELECT bucket_at - bucket_at % :step_ms AS step_at, {_TOTALS} FROM traffic_sums {_OF_WINDOW} GROUP BY 1 ORDER BY 1
"""  # noqa: S608
_PIECE = """
    SELECT * FROM traffic_sums
     WHERE size_ms = :{}_ms AND dimension = :dimension AND origin = :origin AND bucket_at >= :{} AND bucket_at < :{}
"""
BY_VALUE = f"""
    SELECT value, {_TOTALS} FROM ({" UNION ALL ".join(_PIECE.format(*piece) for piece in _PIECES)}) AS pieces
     GROUP BY value
"""  # noqa: S608
# The newest row stays at any age, so that positions rise and those in `traffic_summed` stay true.
PRUNE = """
    DELETE FROM traffic
     WHERE position IN (
           SELECT position FROM traffic
            WHERE occurred_at < :before AND position <= :summed AND position < (SELECT MAX(position) FROM traffic)
            ORDER BY occurred_at LIMIT :limit)
"""
ADD_SEALED = insert_into("secret_sightings", ("secret", "request_id", "occurred_at")) + " ON CONFLICT DO NOTHING"
WITH_SEALED = """
    SELECT request_id FROM secret_sightings WHERE secret = :secret ORDER BY occurred_at DESC LIMIT :limit
"""
PRUNE_SEALED = "DELETE FROM secret_sightings WHERE occurred_at < :before"
PRUNE_SUMS = "DELETE FROM traffic_sums WHERE size_ms = :size_ms AND bucket_at < :before"


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows that are not in the sums yet, added up.

    after, upto: the rows have positions above the first, up to the second. left: how many positions follow.
    """

    after: int
    upto: int
    rows: int
    left: int
    sums: Sequence[Mapping[str, object]]


class TrafficRepository(PositionedTable[TrafficRow]):
    """The table of requests. origin: of rows that name none, and of what is counted."""

    def __init__(self) -> None:
        order = ("occurred_at", "position")
        super().__init__("traffic", TrafficRow, order=order, sorts=SORTS, page_limit=MAX_TRAFFIC_LIMIT)
        self.origin = PRODUCTION

    def insert(self, tx: Transaction, record: TrafficRow, **extra: object) -> None:
        super().insert(tx, record, origin=record.origin or self.origin, **extra)
        for secret in {str(one["secret"]) for one in record.detections if one.get("secret")}:
            seen = {"secret": secret, "request_id": record.request_id, "occurred_at": record.occurred_at}
            tx.execute(ADD_SEALED, seen)

    def requests_with(self, tx: Transaction, secret: str, *, limit: int) -> tuple[str, ...]:
        """Return the ids of requests in which a secret was seen, by its keyed hash, the newest first."""
        return tuple(str(row["request_id"]) for row in tx.query(WITH_SEALED, {"secret": secret, "limit": limit}))

    def find(self, tx: Transaction, id_or_name: str) -> TrafficRow | None:
        column = "request_id" if id_or_name.startswith("req_") else "id"
        return self.one(tx, f"WHERE {column} = :id ORDER BY position DESC LIMIT 1", id=id_or_name)

    def _where(self, wanted: TrafficFilter) -> Where:
        where = Where().match(wanted, *_EQUAL, **OCCURRED)
        where.add("origin = :origin", origin=wanted.origin or self.origin)
        if wanted.verdict is not None and wanted.verdict.value != "ALLOW":
            where.add("verdict <> 'ALLOW'")  # the condition of an index, which the database must find in the statement
        is_prefix = wanted.key is not None and wanted.key.startswith("svc_")
        where.add("key_prefix = :key" if is_prefix else "principal_id = :key", key=wanted.key)
        for field in ("rule", "category", "direction"):
            found = like(getattr(wanted, field) and f'"{field}":{json_text(getattr(wanted, field))}')
            where.add(f"detections LIKE :{field} ESCAPE '\\'", **{field: found})
        where.add(SEARCHED, search=like(wanted.search))
        return where

    def newest(self, tx: Transaction, wanted: TrafficFilter, *, limit: int) -> tuple[TrafficRow, ...]:
        """Return the newest rows that a filter matches."""
        where = self._where(wanted)
        rest = f"{where.sql()} ORDER BY occurred_at DESC, position DESC LIMIT :limit"
        return self.many(tx, rest, **where.params, limit=limit)

    def pending(self, tx: Transaction, *, limit: int) -> Pending:
        """Return the oldest rows that are not in the sums yet, added up."""
        after = self.summed(tx)
        rows = self.after(tx, after, limit=limit)
        upto = rows[-1][0] if rows else after
        return Pending(after, upto, len(rows), self.newest_position(tx) - upto, sum_up(row for _, row in rows))

    def add(self, tx: Transaction, pending: Pending) -> bool:
        """Add rows to the sums and return true, or return false when another process has added them."""
        if self.summed(tx) != pending.after:
            return False
        for one in pending.sums:
            tx.execute(ADD_SUM, one)
        tx.execute(NOTE_SUMMED, {"name": "traffic", "position": pending.upto})
        return True

    def summed(self, tx: Transaction) -> int:
        """Return the position of the last row that is in the sums."""
        rows = tx.query("SELECT position FROM traffic_summed WHERE name = 'traffic'")
        return int(rows[0]["position"]) if rows else 0

    def by_time(self, tx: Transaction, dimension: str, value: str, **window: object) -> dict[int, Counters]:
        """Return sums by steps of time; without rows, none. window: size_ms, step_ms, origin, since to before until."""
        rows = tx.query(BY_TIME, window | {"dimension": dimension, "value": value})
        return {int(row["step_at"]): _counters(row) for row in rows}

    def by_value(self, tx: Transaction, dimension: str, *, origin: str, since: int, until: int) -> dict[str, Counters]:
        """Return the sums by the values of one dimension, from `since` to before `until`, on whole five minutes."""
        first = min(-(-since // HOUR_MS) * HOUR_MS, until)
        params = {
            "dimension": dimension,
            "origin": origin,
            "hour_ms": HOUR_MS,
            "fine_ms": FIVE_MINUTES_MS,
            "since": since,
            "hour_since": first,
            "hour_until": max(first, until // HOUR_MS * HOUR_MS),
            "until": until,
        }
        return {str(row["value"]): _counters(row) for row in tx.query(BY_VALUE, params)}

    def prune(self, tx: Transaction, *, before: int, limit: int) -> int:
        """Delete some of the rows from before a time that are in the sums, and return how many."""
        tx.execute(PRUNE_SEALED, {"before": before})
        return tx.execute(PRUNE, {"before": before, "summed": self.summed(tx), "limit": limit})

    def prune_sums(self, tx: Transaction, *, size_ms: int, before: int) -> int:
        return tx.execute(PRUNE_SUMS, {"size_ms": size_ms, "before": before})


def _counters(row: Row) -> Counters:
    return Counters(**{name: int(row[name]) for name in COUNTERS})


OF_REQUEST = "WHERE traffic_id = :traffic_id AND expires_at > :now_at ORDER BY direction"
PRUNE_CAPTURES = """
    DELETE FROM captures
     WHERE (traffic_id, direction) IN (
           SELECT traffic_id, direction FROM captures
            WHERE expires_at <= :now_at OR captured_at < :before
            LIMIT :limit)
"""


REPLAY = """
    SELECT traffic_id, captures.direction, mode, text, captured_at, traffic.request_id, api_keys.policy
      FROM captures
      JOIN traffic ON traffic.id = captures.traffic_id AND traffic.origin = :origin
      LEFT JOIN api_keys ON api_keys.id = traffic.principal_id
     WHERE captured_at >= :since AND captures.expires_at > :now_at
       AND (captured_at, traffic_id, captures.direction) < (:at, :id, :direction)
     ORDER BY captured_at DESC, traffic_id DESC, captures.direction DESC
     LIMIT 100
"""


class CaptureRepository(Table[KeptText]):
    """The table of texts that a policy keeps for a while."""

    def __init__(self) -> None:
        super().__init__("captures", KeptText, key="traffic_id", extra=("traffic_id", "captured_at"))
        self._replayed = TableReader("captures", ReplayText)

    def add(self, tx: Transaction, row: TrafficRow, captured: KeptText) -> None:
        self.insert(tx, captured, traffic_id=row.id, captured_at=row.occurred_at)

    def of_request(self, tx: Transaction, traffic_id: str, *, now_at: int) -> tuple[KeptText, ...]:
        return self.many(tx, OF_REQUEST, traffic_id=traffic_id, now_at=now_at)

    def replay(
        self, after: Sequence[ReplayText], window: Mapping[str, object], tx: Transaction
    ) -> tuple[ReplayText, ...]:
        """Return up to 100 texts, newest first. after: the last one of the part before, if there is one.

        window: their `origin`, the time `since` which they were captured, and the time `now_at`.
        """
        at, row_id, way = (
            (after[0].captured_at, after[0].traffic_id, after[0].direction) if after else (MAX_INTEGER, "", "")
        )
        rows = tx.query(REPLAY, {**window, "at": at, "id": row_id, "direction": way})
        return tuple(map(self._replayed.record, rows))

    def prune(self, tx: Transaction, *, now_at: int, before: int, limit: int) -> int:
        """Delete some texts that have expired, or are older than any row of traffic may be, and return how many."""
        return tx.execute(PRUNE_CAPTURES, {"now_at": now_at, "before": before, "limit": limit})
