"""Sums over the rows of traffic, by time and by dimension. Pure; adds, stores nothing.

A sum belongs to a bucket of time, an origin, a dimension and one value of it. The buckets of a minute hold the sum of
all rows; the buckets of five minutes and of an hour have every dimension. Durations are counts of rows up to a bound,
so that the quantiles of any window can be read from them. A quantile is exact to within the step between two bounds.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from gateway.domain.traffic import TrafficRow

MINUTE_MS = 60_000
FIVE_MINUTES_MS = 5 * MINUTE_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ALL = "all"
LATENCY = "latency"
OVERHEAD = "overhead"
OTHER = "(other)"
NONE = "(none)"
MOST_VALUES = 1000
"""The most values of one dimension in one call of `sum_up`. Further ones are summed as `OTHER`."""
_BY_COLUMN = {"agent": "agent", "key": "key_prefix", "model": "model", "provider": "provider", "operation": "operation"}
DIMENSIONS = ("rule", *_BY_COLUMN)
BOUNDS_US: tuple[int, ...] = tuple(
    int(base * 10**power + 0.5) for power in range(1, 8) for base in (1.0, 1.5, 2.2, 3.3, 4.7, 6.8)
)
"""Upper bounds of durations in microseconds: 10 us to 68 s in steps of about one half. `BEYOND` is longer."""
BEYOND = "beyond"
_VALUE_CHARS = 200


@dataclass(slots=True)
class Counters:
    """The summed columns. elapsed_us, overhead_us: total microseconds."""

    requests: int = 0
    blocks: int = 0
    reviews: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost_microusd: int = 0
    elapsed_us: int = 0
    overhead_us: int = 0

    def add(self, other: "Counters") -> None:
        for name in COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTERS = tuple(field.name for field in fields(Counters))
SUM_KEY = ("size_ms", "dimension", "origin", "bucket_at", "value")
"""What identifies a sum. size_ms: the length of the bucket. bucket_at: its begin, a multiple of the length."""


def sum_up(rows: Iterable[TrafficRow]) -> list[dict[str, object]]:
    """Return the sums of some rows: `SUM_KEY` and `COUNTERS` of each. A request that was blocked is no failure."""
    sums: dict[tuple[int, str, str, int, str], list[int]] = {}
    known: dict[str, set[str]] = {}
    for row in rows:
        has_failed = row.status >= 400 and row.action != "blocked"
        numbers = [1, int(row.verdict == "BLOCK"), int(row.verdict == "REVIEW"), int(has_failed)]
        numbers += [row.prompt_tokens or 0, row.reply_tokens or 0, row.cost_microusd or 0]
        numbers += [row.elapsed_us, row.overhead_us]
        minute_at, origin = row.occurred_at - row.occurred_at % MINUTE_MS, row.origin
        values = [(ALL, ""), (LATENCY, _bound(row.elapsed_us)), (OVERHEAD, _bound(row.overhead_us))]
        values += [(name, _bounded(known, name, getattr(row, column))) for name, column in _BY_COLUMN.items()]
        rules = {str(one.get("rule")) for one in row.detections}
        values += [("rule", _bounded(known, "rule", rule)) for rule in rules]
        keys = [(MINUTE_MS, ALL, origin, minute_at, "")]
        for size_ms in (FIVE_MINUTES_MS, HOUR_MS):
            keys += [
                (size_ms, dimension, origin, minute_at - minute_at % size_ms, value) for dimension, value in values
            ]
        for key in keys:
            sums[key] = [old + new for old, new in zip(sums[key], numbers, strict=True)] if key in sums else numbers
    return [dict(zip((*SUM_KEY, *COUNTERS), (*key, *numbers), strict=True)) for key, numbers in sums.items()]


def quantile_ms(counts: Mapping[str, int], share: float) -> float | None:
    """Return the duration in milliseconds that `share` of the counted rows did not exceed, or None without rows.

    counts: rows by the bound of their duration, as text. Between two bounds the rows count as evenly distributed.
    """
    total = sum(counts.values())
    if not total:
        return None
    wanted, below, low = share * total, 0, 0
    for bound in BOUNDS_US:
        count = counts.get(str(bound), 0)
        if count and below + count >= wanted:
            return round((low + (bound - low) * (wanted - below) / count) / 1000, 3)
        below, low = below + count, bound
    return round(BOUNDS_US[-1] / 1000, 3)


def _bound(duration_us: int) -> str:
    at = bisect_left(BOUNDS_US, duration_us)
    return str(BOUNDS_US[at]) if at < len(BOUNDS_US) else BEYOND


def _bounded(known: dict[str, set[str]], dimension: str, value: str | None) -> str:
    """Return the value for the sum of a row, so that no caller can create an unlimited number of sums."""
    if not value:
        return NONE
    value = value[:_VALUE_CHARS]
    values = known.setdefault(dimension, set())
    if value not in values and len(values) >= MOST_VALUES:
        return OTHER
    values.add(value)
    return value
