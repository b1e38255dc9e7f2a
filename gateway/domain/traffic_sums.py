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
MOST_VALUES = 1000
"""So many values of one dimension are told apart in one go, of as many rows; more rules are summed as `OTHER`."""
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


class Kind(Protocol):
    """Rows of one minute that are alike, added up: all of `COUNTERS`, and what they are told apart by.

    Beside the columns of traffic it has `minute_at`, the begin of their minute, and `latency` and `overhead`: of each
    of the two times the least of `BOUNDS_US` that is not less, as a text, or `BEYOND`.
    """

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""
        ...


def sum_up(kinds: Iterable[tuple[Kind, Iterable[str]]]) -> dict[SumKey, Counters]:
    """Return the sums of all rows, of which those that are alike are given together with the ids of their rules.

    They are added to their buckets of a minute and of five minutes, and hours are made of what has come together.
    """
    fine: dict[tuple[str, str, int, str], list[int]] = {}
    minutes: dict[tuple[str, str, int, str], list[int]] = {}
    values: dict[str, set[str]] = {}
    for kind, rules in kinds:
        numbers = [kind[name] for name in COUNTERS]
        at, origin = kind["minute_at"], kind["origin"]
        bucket_at = at // FIVE_MINUTES_MS * FIVE_MINUTES_MS
        told = [
            (ALL, origin, bucket_at, ""),
            (LATENCY, origin, bucket_at, kind["latency"]),
            (OVERHEAD, origin, bucket_at, kind["overhead"]),
        ]
        told += [
            (dimension, origin, bucket_at, _bounded(values, dimension, kind[column]))
            for dimension, column in _BY_COLUMN.items()
        ]
        told += [("rule", origin, bucket_at, _bounded(values, "rule", rule)) for rule in set(rules)]
        for place in told:
            _add(fine, place, numbers)
        _add(minutes, (ALL, origin, at, ""), numbers)
    hours: dict[tuple[str, str, int, str], list[int]] = {}
    for (dimension, origin, bucket_at, value), numbers in fine.items():
        _add(hours, (dimension, origin, bucket_at // HOUR_MS * HOUR_MS, value), numbers)
    return {
        SumKey(size_ms, dimension, origin, bucket_at, value): Counters(*numbers)
        for size_ms, sums in ((MINUTE_MS, minutes), (FIVE_MINUTES_MS, fine), (HOUR_MS, hours))
        for (dimension, origin, bucket_at, value), numbers in sums.items()
    }


def quantile_ms(counts: Mapping[str, int], share: float) -> float | None:
    """Return the time in milliseconds that `share` of the counted rows did not exceed, or None when there are none.

    counts: rows by the bound of their time, as a text. Between two bounds the rows are taken as evenly spread.
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


def _add(sums: dict[tuple[str, str, int, str], list[int]], place: tuple[str, str, int, str], new: list[int]) -> None:
    have = sums.get(place)
    if have is None:
        sums[place] = new.copy()
        return
    have[0] += new[0]
    have[1] += new[1]
    have[2] += new[2]
    have[3] += new[3]
    have[4] += new[4]
    have[5] += new[5]
    have[6] += new[6]
    have[7] += new[7]
    have[8] += new[8]
