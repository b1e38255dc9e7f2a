"""Sums over the rows of traffic, by time and by dimension. Pure; adds, stores nothing.

A sum belongs to a bucket of time, an origin, a dimension and one value of it. The buckets of a minute hold the sum of
all rows; the buckets of five minutes and of an hour have every dimension. Durations are counts of rows up to a bound,
so that the quantiles of any window can be read from them. A quantile is exact to within the step between two bounds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

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


@dataclass(frozen=True, slots=True)
class SumKey:
    """The identity of a sum. size_ms: the length of the bucket. bucket_at: its begin, a multiple of the length."""

    size_ms: int
    dimension: str
    origin: str
    bucket_at: int
    value: str


def sum_up(groups: Iterable[tuple[Any, Iterable[str]]]) -> dict[SumKey, Counters]:
    """Return the sums of groups of like rows, each given as ``(group, ids of its rules)``.

    A group is a row with all of `COUNTERS`, the columns of traffic, and three more: `minute_at`, the begin of its
    minute, and `latency` and `overhead`, each the smallest of `BOUNDS_US` that is not below it, as text, or `BEYOND`.
    """
    sums: dict[tuple[int, str, str, int, str], list[int]] = {}
    known: dict[str, set[str]] = {}
    for group, rules in groups:
        numbers = [group[name] for name in COUNTERS]
        minute_at, origin = group["minute_at"], group["origin"]
        values = [(ALL, ""), (LATENCY, group["latency"]), (OVERHEAD, group["overhead"])]
        values += [(name, _bounded(known, name, group[column])) for name, column in _BY_COLUMN.items()]
        values += [("rule", _bounded(known, "rule", rule)) for rule in set(rules)]
        keys = [(MINUTE_MS, ALL, origin, minute_at, "")]
        for size_ms in (FIVE_MINUTES_MS, HOUR_MS):
            keys += [
                (size_ms, dimension, origin, minute_at - minute_at % size_ms, value) for dimension, value in values
            ]
        for key in keys:
            sums[key] = [old + new for old, new in zip(sums[key], numbers, strict=True)] if key in sums else numbers
    return {SumKey(*key): Counters(*numbers) for key, numbers in sums.items()}


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
