"""Sums over the rows of traffic: by time, and by whatever a row is told apart by. Pure; adds up, stores nothing.

A sum belongs to a bucket of time, an origin, a dimension and a value of it. Buckets of a minute hold the sum of all
rows; those of five minutes and of an hour have every dimension. Times are kept as counts of the rows up to a bound, so
that quantiles of any window can be read from them; they are right to within the step between two bounds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

MINUTE_MS = 60_000
FIVE_MINUTES_MS = 5 * MINUTE_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ALL = "all"
LATENCY = "latency"
OVERHEAD = "overhead"
OTHER = "(other)"
NONE = "(none)"
MOST_VALUES = 500
"""So many values of one dimension are told apart in one go; what comes after is summed as `OTHER`."""
_BY_COLUMN = {"agent": "agent", "key": "key_prefix", "model": "model", "provider": "provider", "operation": "operation"}
DIMENSIONS = ("rule", *_BY_COLUMN)
BOUNDS_US: tuple[int, ...] = tuple(
    int(base * 10**power + 0.5) for power in range(1, 8) for base in (1.0, 1.5, 2.2, 3.3, 4.7, 6.8)
)
"""Upper bounds of the times, in microseconds: 10 us to 68 s in steps of about one half; what is longer is `BEYOND`."""
BEYOND = "beyond"
_VALUE_CHARS = 200


@dataclass(slots=True)
class Counters:
    """What is added up. Not frozen: adding is all that it is for. elapsed_us, overhead_us: microseconds together."""

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
        """Add another sum to this one."""
        for name in COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTERS = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True)
class SumKey:
    """What a sum is of. size_ms: length of the bucket; bucket_at: its begin, a multiple of that."""

    size_ms: int
    dimension: str
    origin: str
    bucket_at: int
    value: str


class Row(Protocol):
    """A row of traffic, as far as it is summed. `rules`: the ids of what was found, each once."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""
        ...


def sum_up(rows: Iterable[tuple[Row, Iterable[str]]]) -> dict[SumKey, Counters]:
    """Return the sums of all rows, each given with the ids of its rules."""
    sums: dict[SumKey, Counters] = {}
    values: dict[str, set[str]] = {}
    for row, rules in rows:
        one = _counted(row)
        at, origin = row["occurred_at"], row["origin"]
        told = [(ALL, ""), (LATENCY, bound_of(row["elapsed_us"])), (OVERHEAD, bound_of(row["overhead_us"]))]
        told += [(name, _bounded(values, name, row[column])) for name, column in _BY_COLUMN.items()]
        told += [("rule", _bounded(values, "rule", rule)) for rule in set(rules)]
        for size_ms in (FIVE_MINUTES_MS, HOUR_MS):
            bucket_at = at // size_ms * size_ms
            for dimension, value in told:
                _add(sums, SumKey(size_ms, dimension, origin, bucket_at, value), one)
        _add(sums, SumKey(MINUTE_MS, ALL, origin, at // MINUTE_MS * MINUTE_MS, ""), one)
    return sums


def bound_of(time_us: int) -> str:
    """Return the least bound that is not less than a time, as the value of its sum."""
    for bound in BOUNDS_US:
        if time_us <= bound:
            return str(bound)
    return BEYOND


def quantile_ms(counts: Mapping[str, int], share: float) -> float | None:
    """Return the time in milliseconds that `share` of the counted rows did not exceed, or None when there are none.

    counts: rows by the bound that `bound_of` returned. Between two bounds the rows are taken as evenly spread.
    """
    total = sum(counts.values())
    if not total:
        return None
    wanted, seen, low = share * total, 0, 0
    for bound in BOUNDS_US:
        count = counts.get(str(bound), 0)
        if count and seen + count >= wanted:
            return round((low + (bound - low) * (wanted - seen) / count) / 1000, 3)
        seen, low = seen + count, bound
    return round(BOUNDS_US[-1] / 1000, 3)


def _counted(row: Row) -> Counters:
    verdict = row["verdict"]
    return Counters(
        requests=1,
        blocks=int(verdict == "BLOCK"),
        reviews=int(verdict == "REVIEW"),
        failures=int(row["status"] >= 400 and row["action"] != "blocked"),
        prompt_tokens=row["prompt_tokens"] or 0,
        reply_tokens=row["reply_tokens"] or 0,
        cost_microusd=row["cost_microusd"] or 0,
        elapsed_us=row["elapsed_us"],
        overhead_us=row["overhead_us"],
    )


def _bounded(values: dict[str, set[str]], dimension: str, value: str | None) -> str:
    """Return the value under which a row is summed, so that no caller can make the sums grow without end."""
    if not value:
        return NONE
    value = value[:_VALUE_CHARS]
    known = values.setdefault(dimension, set())
    if value not in known:
        if len(known) >= MOST_VALUES:
            return OTHER
        known.add(value)
    return value


def _add(sums: dict[SumKey, Counters], key: SumKey, one: Counters) -> None:
    have = sums.get(key)
    if have is None:
        sums[key] = have = Counters()
    have.add(one)
