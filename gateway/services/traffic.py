"""What passed through the gateway: rows listed and shown, and the numbers of any window, read from sums kept ready."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import anyio

from gateway.clock import Clock
from gateway.domain.alerts import RequestAlert
from gateway.domain.paging import Page
from gateway.domain.policies import Capture, KeptText
from gateway.domain.traffic import Origin, TrafficFilter, TrafficRow
from gateway.domain.traffic_sums import (
    DAY_MS,
    DIMENSIONS,
    FIVE_MINUTES_MS,
    HOUR_MS,
    LATENCY,
    MINUTE_MS,
    MOST_VALUES,
    OVERHEAD,
    Counters,
    quantile_ms,
)
from gateway.errors import Conflict, NotFound
from gateway.services.alerts import request_alerts
from gateway.services.findings import LedgerLine, ledger_line
from gateway.shield import Shield
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store
from gateway.strict_json import LAST_AT

MOST_POINTS = 2000
TOP = 10
_ROWS_AT_ONCE = MOST_VALUES // 2  # at most MOST_VALUES, so that of a large fleet's agents none is counted among others
_BEHIND_SECONDS = 1.0
_KEEP_UP_SECONDS = 4.0
_MOST_ROUNDS = 400
_STEPS: Mapping[str, int] = {"minute": MINUTE_MS, "5m": FIVE_MINUTES_MS, "hour": HOUR_MS, "day": DAY_MS}

Step = Literal["auto", "minute", "5m", "hour", "day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFilter:
    """Which window to sum up. since: a day before `until` when left out; until: now. bucket: the step of the series."""

    since: int | None = None
    until: int | None = None
    bucket: Step = "auto"
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficPoint:
    """The numbers of one step of time. failures: requests without a completion for another reason than the shield."""

    begin_at: int = field(metadata={"json_name": "at"})
    requests: int
    blocks: int
    reviews: int
    failures: int
    prompt_tokens: int
    reply_tokens: int
    cost_microusd: int
    latency_ms: float | None
    overhead_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficTotals:
    """The numbers of the whole window. Quantiles are read from steps of about one half."""

    requests: int
    blocks: int
    reviews: int
    failures: int
    prompt_tokens: int
    reply_tokens: int
    cost_microusd: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    overhead_p50_ms: float | None
    overhead_p95_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopValue:
    """The numbers of one agent, key, model, provider, operation or rule."""

    value: str
    requests: int
    blocks: int
    reviews: int
    failures: int
    tokens: int
    cost_microusd: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSummary:
    """The numbers of a window. since_at, until_at: the window as it was summed, widened to whole buckets."""

    since_at: int = field(metadata={"json_name": "since"})
    until_at: int = field(metadata={"json_name": "until"})
    bucket_seconds: int
    origin: str
    totals: TrafficTotals
    series: tuple[TrafficPoint, ...]
    top: Mapping[str, tuple[TopValue, ...]]


@dataclass(frozen=True, slots=True)
class TrafficDetail:
    """One row, how its score comes about, the alerts it added to, and what is kept of its texts."""

    row: TrafficRow
    ledger: tuple[LedgerLine, ...]
    alerts: tuple[RequestAlert, ...]
    captures: tuple[KeptText, ...]


class Traffic:
    """The traffic of this gateway. The sums follow the rows: `advance` is called now and then, and before each look."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._is_keeping_up = False

    async def page(self, wanted: TrafficFilter) -> Page[TrafficRow]:
        """List rows, newest first."""
        return await self._store.db.read(lambda tx: self._store.traffic.page(tx, wanted))

    async def show(self, id: str, shield: Shield, *, with_full: bool) -> TrafficDetail:
        """Return one row by its id or its request's, with what each rule gave to its score.

        with_full: whether texts that are kept as they were may be shown as well as masked ones.

        Raises:
            NotFound: there is none, or no longer.
        """
        now_at = self._clock.now_at()

        def look(tx: Transaction) -> tuple[TrafficRow, tuple[KeptText, ...], tuple[RequestAlert, ...]]:
            row = self._store.traffic.find(tx, id)
            if row is None:
                raise NotFound("There is no such request in the traffic, or no longer.")
            alerts = request_alerts(self._store, tx, row.request_id)
            return row, self._store.captures.of_request(tx, row.id, now_at=now_at), alerts

        row, kept, alerts = await self._store.db.read(look)
        shown = tuple(one for one in kept if with_full or one.mode is Capture.REDACTED)
        known = {rule.id: (rule.name, rule.description) for rule in shield.rules}
        return TrafficDetail(row, tuple(ledger_line(found, known) for found in row.detections), alerts, shown)

    async def advance(self) -> int:
        """Add the rows that are new to the sums, and return how many those were.

        Several processes may do so at once: whoever comes second adds nothing twice.
        """
        added = 0
        for _ in range(_MOST_ROUNDS):
            rows, left = await self._add_some()
            added += rows
            if not left:
                break
        return added

    def is_behind(self) -> bool:
        """Tell whether a row is in no sum yet, as far as that can be told now."""
        try:
            return self._store.db.read_now(lambda tx: self._store.traffic.pending(tx, limit=1)).rows > 0
        except StoreUnavailable:
            return False

    async def keep_up(self) -> None:
        """Add rows to the sums for some seconds at most, a second behind where many come; nothing if that is going on.

        So nobody's request meets the sums of all that came in a second, or waits for a group that holds a part of them.
        """
        if self._is_keeping_up:
            return
        self._is_keeping_up = True
        try:
            until_seconds = self._clock.monotonic_seconds() + _KEEP_UP_SECONDS
            _, left = await self._add_some()
            while left >= _ROWS_AT_ONCE and self._clock.monotonic_seconds() < until_seconds:
                await anyio.sleep(_BEHIND_SECONDS / (left // _ROWS_AT_ONCE))
                _, left = await self._add_some()
        finally:
            self._is_keeping_up = False

    async def _add_some(self) -> tuple[int, int]:
        """Add the oldest rows that are in no sum, and return how many were added, and how many places are left."""
        pending = await self._store.db.read(lambda tx: self._store.traffic.pending(tx, limit=_ROWS_AT_ONCE))
        # What a power cut takes of the sums is made again: up to where they go is undone with them.
        is_added = pending.rows and await self._store.db.write(
            lambda tx: self._store.traffic.add(tx, pending),
            is_durable=False,
        )
        return pending.rows if is_added else 0, pending.left

    async def summary(self, wanted: SummaryFilter) -> TrafficSummary:
        """Sum up a window.

        Raises:
            Conflict: the window ends before it begins, or has too many steps.
        """
        window = self._window(wanted)
        try:
            await self.advance()
        except StoreUnavailable:
            pass  # what is summed already is better than nothing
        return await self._store.db.read(lambda tx: self._summed(tx, window))

    def _window(self, wanted: SummaryFilter) -> "_Window":
        now_at = self._clock.now_at()
        until = now_at + 1 if wanted.until is None else wanted.until + 1
        since = until - DAY_MS if wanted.since is None else wanted.since
        if since >= until:
            raise Conflict("since must be before until.", param="since")
        step_ms = _STEPS.get(wanted.bucket) or _step_of(until - since)
        if wanted.bucket not in _STEPS:
            since = max(since, until - (MOST_POINTS - 2) * step_ms)  # sums are not kept for longer
        widest_ms = max(FIVE_MINUTES_MS, step_ms)
        since = since // widest_ms * widest_ms
        until = min(-(-until // widest_ms), LAST_AT // widest_ms) * widest_ms
        if (until - since) // step_ms > MOST_POINTS:
            raise Conflict(
                f"The window has more than {MOST_POINTS} steps; take a longer bucket or a shorter window.",
                param="bucket",
            )
        return _Window(since, until, step_ms, wanted.origin or self._store.traffic.origin)

    def _summed(self, tx: Transaction, window: "_Window") -> TrafficSummary:
        steps = self._store.traffic.by_time(
            tx,
            size_ms=min(window.step_ms, HOUR_MS),
            step_ms=window.step_ms,
            origin=window.origin,
            since=window.since,
            until=window.until,
        )
        total = Counters()
        for one in steps.values():
            total.add(one)
        latency, overhead = (
            {value: sums.requests for value, sums in self._by_value(tx, name, window).items()}
            for name in (LATENCY, OVERHEAD)
        )
        return TrafficSummary(
            since_at=window.since,
            until_at=window.until,
            bucket_seconds=window.step_ms // 1000,
            origin=window.origin,
            totals=_totals(total, latency, overhead),
            series=tuple(
                _point(at, steps.get(at) or Counters()) for at in range(window.since, window.until, window.step_ms)
            ),
            top={f"{name}s": _top(self._by_value(tx, name, window)) for name in DIMENSIONS},
        )

    def _by_value(self, tx: Transaction, dimension: str, window: "_Window") -> dict[str, Counters]:
        return self._store.traffic.by_value(
            tx,
            dimension,
            origin=window.origin,
            since=window.since,
            until=window.until,
        )


@dataclass(frozen=True, slots=True)
class _Window:
    """What to sum, on whole five minutes. step_ms: of the series."""

    since: int
    until: int
    step_ms: int
    origin: str


def _step_of(length_ms: int) -> int:
    if length_ms <= 3 * HOUR_MS + MINUTE_MS:
        return MINUTE_MS
    if length_ms <= 12 * HOUR_MS + MINUTE_MS:
        return FIVE_MINUTES_MS
    return HOUR_MS if length_ms <= 14 * DAY_MS + MINUTE_MS else DAY_MS


def _totals(total: Counters, latency: Mapping[str, int], overhead: Mapping[str, int]) -> TrafficTotals:
    return TrafficTotals(
        requests=total.requests,
        blocks=total.blocks,
        reviews=total.reviews,
        failures=total.failures,
        prompt_tokens=total.prompt_tokens,
        reply_tokens=total.reply_tokens,
        cost_microusd=total.cost_microusd,
        latency_p50_ms=quantile_ms(latency, 0.5),
        latency_p95_ms=quantile_ms(latency, 0.95),
        overhead_p50_ms=quantile_ms(overhead, 0.5),
        overhead_p95_ms=quantile_ms(overhead, 0.95),
    )


def _point(begin_at: int, one: Counters) -> TrafficPoint:
    return TrafficPoint(
        begin_at=begin_at,
        requests=one.requests,
        blocks=one.blocks,
        reviews=one.reviews,
        failures=one.failures,
        prompt_tokens=one.prompt_tokens,
        reply_tokens=one.reply_tokens,
        cost_microusd=one.cost_microusd,
        latency_ms=_mean_ms(one.elapsed_us, one.requests),
        overhead_ms=_mean_ms(one.overhead_us, one.requests),
    )


def _mean_ms(total_us: int, count: int) -> float | None:
    return round(total_us / count / 1000, 3) if count else None


def _top(values: Mapping[str, Counters]) -> tuple[TopValue, ...]:
    ranked: Sequence[tuple[str, Counters]] = sorted(values.items(), key=lambda item: (-item[1].requests, item[0]))
    return tuple(
        TopValue(
            value=value,
            requests=one.requests,
            blocks=one.blocks,
            reviews=one.reviews,
            failures=one.failures,
            tokens=one.prompt_tokens + one.reply_tokens,
            cost_microusd=one.cost_microusd,
        )
        for value, one in ranked[:TOP]
    )
