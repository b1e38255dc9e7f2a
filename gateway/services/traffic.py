"""The traffic of the gateway: list and show requests, and sum up a window of time from prepared sums."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from gateway.domain.alerts import RequestAlert
from gateway.domain.detectors import FAILED
from gateway.domain.paging import Page
from gateway.domain.policies import Capture, KeptText
from gateway.domain.traffic import Origin, TrafficFilter, TrafficRow
from gateway.domain.traffic_sums import (
    ALL,
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
from gateway.records import project
from gateway.services.alerts import request_alerts
from gateway.services.core import Service
from gateway.services.findings import LedgerLine, ledger_line
from gateway.shield import Shield
from gateway.shield.scoring import MODEL_RULE, MODEL_SAYS
from gateway.store.database import StoreUnavailable, Transaction
from gateway.strict_json import LAST_AT

MOST_POINTS = 2000
TOP = 10
_ROWS_AT_ONCE = MOST_VALUES // 2  # at most MOST_VALUES, so that no agent of a large fleet is counted as `OTHER`
_BEHIND_SECONDS = 1.0
_KEEP_UP_SECONDS = 4.0
_MOST_ROUNDS = 400
_STEPS: Mapping[str, int] = {"minute": MINUTE_MS, "5m": FIVE_MINUTES_MS, "hour": HOUR_MS, "day": DAY_MS}

_TOKENS = ("prompt_tokens", "reply_tokens")
Step = Literal["auto", "minute", "5m", "hour", "day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFilter:
    """The window to sum up, by default the last day; bucket: of the series. agent, key: its requests, without `top`."""

    since: int | None = None
    until: int | None = None
    bucket: Step = "auto"
    origin: Origin | None = None
    agent: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficNumbers:
    """What is counted of requests. failures: those that got no completion, except those the shield blocked."""

    requests: int
    blocks: int
    reviews: int
    failures: int
    cost_microusd: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficPoint(TrafficNumbers):
    """The numbers of one step of time."""

    begin_at: int = field(metadata={"json_name": "at"})
    prompt_tokens: int
    reply_tokens: int
    latency_ms: float | None
    overhead_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficTotals(TrafficNumbers):
    """The numbers of the whole window. A quantile is exact to about one half of its value."""

    prompt_tokens: int
    reply_tokens: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    overhead_p50_ms: float | None
    overhead_p95_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopValue(TrafficNumbers):
    """The numbers of one agent, key, model, provider, operation or rule."""

    value: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSummary:
    """The numbers of a window. since_at, until_at: the window, widened to whole buckets."""

    since_at: int = field(metadata={"json_name": "since"})
    until_at: int = field(metadata={"json_name": "until"})
    bucket_seconds: int
    origin: str
    totals: TrafficTotals
    series: tuple[TrafficPoint, ...]
    top: Mapping[str, tuple[TopValue, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficDetail(TrafficRow):
    """One row, the rules that make its score, the alerts it counts in, and its stored texts."""

    ledger: tuple[LedgerLine, ...]
    alerts: tuple[RequestAlert, ...]
    captures: tuple[KeptText, ...]


class Traffic(Service):
    """The traffic of this gateway. A job calls `keep_up` to add new rows to the sums, and `summary` calls `advance`."""

    _is_keeping_up: bool = field(init=False, default=False)

    async def page(self, wanted: TrafficFilter) -> Page[TrafficRow]:
        return await self.store.db.read(lambda tx: self.store.traffic.page(tx, wanted))

    async def show(self, id: str, shield: Shield, *, with_full: bool) -> TrafficDetail:
        """Return one row by its id or its request's, with the share of each rule in its score. Raises NotFound.

        with_full: whether to return unmasked texts as well as masked ones.
        """
        now_at = self.clock.now_at()
        known = {rule.id: (rule.name, rule.description) for rule in shield.rules} | {MODEL_RULE: MODEL_SAYS}
        for one in self.store.authority.now.detectors:
            known |= dict.fromkeys((one.rule, one.rule + FAILED), (f"Detector {one.name}", ""))

        def work(tx: Transaction) -> TrafficDetail:
            row = self.store.traffic.find(tx, id)
            if row is None:
                raise NotFound("There is no such request in the traffic, or no longer.")
            return project(
                TrafficDetail,
                row,
                ledger=tuple(ledger_line(found, known) for found in row.detections),
                alerts=request_alerts(self.store, tx, row.request_id),
                captures=tuple(
                    text
                    for text in self.store.captures.of_request(tx, row.id, now_at=now_at)
                    if with_full or text.mode is Capture.REDACTED
                ),
            )

        return await self.store.db.read(work)

    def last_day(self, tx: Transaction, dimension: str, now_at: int) -> dict[str, Counters]:
        """Return the sums of the last 24 hours by the values of a dimension, to the next whole five minutes."""
        since = (now_at - DAY_MS) // FIVE_MINUTES_MS * FIVE_MINUTES_MS
        until = (now_at // FIVE_MINUTES_MS + 1) * FIVE_MINUTES_MS
        return self.store.traffic.by_value(tx, dimension, origin=self.store.traffic.origin, since=since, until=until)

    async def advance(self) -> int:
        """Add new rows to the sums and return how many. Several processes may do so at once; no row is added twice."""
        added = 0
        for _ in range(_MOST_ROUNDS):
            rows, left = await self._add_some()
            added += rows
            if not left:
                break
        return added

    async def is_behind(self) -> bool:
        """Return whether a row is in no sum yet; false if the database cannot be read."""
        try:
            pending = await self.store.db.read(lambda tx: self.store.traffic.pending(tx, limit=1))
            return pending.rows > 0
        except StoreUnavailable:
            return False

    async def keep_up(self) -> None:
        """Add rows to the sums for at most four seconds, in small groups so that no request waits long for a write.

        Does nothing while another call in this process does it.
        """
        if self._is_keeping_up:
            return
        self._is_keeping_up = True
        try:
            until_seconds = self.clock.monotonic_seconds() + _KEEP_UP_SECONDS
            _, left = await self._add_some()
            while left >= _ROWS_AT_ONCE and self.clock.monotonic_seconds() < until_seconds:
                await anyio.sleep(_BEHIND_SECONDS / (left // _ROWS_AT_ONCE))
                _, left = await self._add_some()
        finally:
            self._is_keeping_up = False

    async def _add_some(self) -> tuple[int, int]:
        """Add the oldest rows that are in no sum. Return how many were added, and how many are left."""
        traffic = self.store.traffic
        pending = await self.store.db.read(lambda tx: traffic.pending(tx, limit=_ROWS_AT_ONCE))
        # Not durable: a power cut also undoes the position up to which rows are summed, so they are summed again.
        is_added = pending.rows and await self.store.db.write(lambda tx: traffic.add(tx, pending), is_durable=False)
        return pending.rows if is_added else 0, pending.left

    async def summary(self, wanted: SummaryFilter) -> TrafficSummary:
        """Sum up a window. Raises Conflict if it ends before it begins, has too many steps, or an agent and a key."""
        since, until, step_ms = self._window(wanted)
        with suppress(StoreUnavailable):  # older sums are better than none
            await self.advance()
        origin = wanted.origin or self.store.traffic.origin
        window = {"origin": origin, "since": since, "until": until}
        return await self.store.db.read(lambda tx: self._summed(tx, step_ms, window, wanted))

    def _window(self, wanted: SummaryFilter) -> tuple[int, int, int]:
        """Return begin and end of the window, on whole buckets of at least five minutes, and the step of the series."""
        until = self.clock.now_at() + 1 if wanted.until is None else wanted.until + 1
        since = until - DAY_MS if wanted.since is None else wanted.since
        if since >= until:
            raise Conflict("since must be before until.", param="since")
        if wanted.agent and wanted.key:
            raise Conflict("Name an agent or a key, not both.", param="key")
        step_ms = _STEPS.get(wanted.bucket) or _step_of(until - since)
        if wanted.bucket not in _STEPS:
            since = max(since, until - (MOST_POINTS - 2) * step_ms)  # sums are not kept for longer
        widest_ms = max(FIVE_MINUTES_MS, step_ms)
        step_ms = widest_ms if wanted.agent or wanted.key else step_ms  # of a minute, only the sum of all is kept
        since = since // widest_ms * widest_ms
        until = min(-(-until // widest_ms), LAST_AT // widest_ms) * widest_ms
        if (until - since) // step_ms > MOST_POINTS:
            raise Conflict(
                f"The window has more than {MOST_POINTS} steps; take a longer bucket or a shorter window.",
                param="bucket",
            )
        return since, until, step_ms

    def _summed(self, tx: Transaction, step_ms: int, window: dict[str, Any], wanted: SummaryFilter) -> TrafficSummary:
        """Read the sums. window: its `origin`, `since` and `until`."""
        traffic = self.store.traffic
        whose = ("agent", wanted.agent) if wanted.agent else ("key", wanted.key) if wanted.key else (ALL, "")
        steps = traffic.by_time(tx, *whose, size_ms=min(step_ms, HOUR_MS), step_ms=step_ms, **window)
        total = Counters()
        for one in steps.values():
            total.add(one)
        dimensions = (LATENCY, OVERHEAD, *DIMENSIONS)
        values = {name: traffic.by_value(tx, name, **window) for name in dimensions if whose[0] == ALL}
        quantiles: dict[str, Any] = {}
        for name in (LATENCY, OVERHEAD):
            counts = {value: sums.requests for value, sums in values.get(name, {}).items()}
            for percent in (50, 95):
                quantiles[f"{name}_p{percent}_ms"] = quantile_ms(counts, percent / 100)
        return TrafficSummary(
            since_at=window["since"],
            until_at=window["until"],
            bucket_seconds=step_ms // 1000,
            origin=window["origin"],
            totals=TrafficTotals(**_numbers(total, *_TOKENS), **quantiles),
            series=tuple(
                _point(at, steps.get(at) or Counters()) for at in range(window["since"], window["until"], step_ms)
            ),
            top={f"{name}s": _top(values.get(name, {})) for name in DIMENSIONS}
            | {"blocked_agents": _top(values.get("agent", {}), "blocks")},
        )


def _step_of(length_ms: int) -> int:
    if length_ms <= 3 * HOUR_MS + MINUTE_MS:
        return MINUTE_MS
    if length_ms <= 12 * HOUR_MS + MINUTE_MS:
        return FIVE_MINUTES_MS
    return HOUR_MS if length_ms <= 14 * DAY_MS + MINUTE_MS else DAY_MS


def _numbers(sums: Counters, *more: str) -> dict[str, Any]:
    return {name: getattr(sums, name) for name in ("requests", "blocks", "reviews", "failures", "cost_microusd", *more)}


def _point(begin_at: int, sums: Counters) -> TrafficPoint:
    latency_ms, overhead_ms = (
        round(total_us / sums.requests / 1000, 3) if sums.requests else None
        for total_us in (sums.elapsed_us, sums.overhead_us)
    )
    numbers = _numbers(sums, *_TOKENS)
    return TrafficPoint(begin_at=begin_at, **numbers, latency_ms=latency_ms, overhead_ms=overhead_ms)


def _top(values: Mapping[str, Counters], by: str = "requests") -> tuple[TopValue, ...]:
    ranked = sorted(values.items(), key=lambda item: (-getattr(item[1], by), item[0]))
    return tuple(
        TopValue(value=value, tokens=one.prompt_tokens + one.reply_tokens, **_numbers(one))
        for value, one in ranked[:TOP]
    )
