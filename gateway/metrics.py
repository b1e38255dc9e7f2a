"""Counters, gauges and histograms as Prometheus text, of one process or summed. Knows no route and no transport.

Every family is a row of `FAMILIES`. A family keeps a bounded number of combinations of label values and counts all
others under ``other``, so that no caller can make memory grow. Labels never hold a key, a prompt or a path as sent:
operations are names of rows.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES = 500
_LABEL_CHARS = 100
_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


# The bounds that OpenTelemetry's semantic conventions for generative AI metrics ask for.
_TOKENS = tuple(float(4**power) for power in range(14))
_FEW_SERIES = 120
_DURATION = tuple(0.01 * 2**power for power in range(14))


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. buckets: upper bounds, for histograms. most_series: combinations of label values that are kept."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    most_series: int = MOST_SERIES


FAMILIES = (
    Family("gateway_build_info", "gauge", "Always 1; the labels identify the build.", ("version", "python", "matcher")),
    Family("gateway_start_time_seconds", "gauge", "Unix time at which this process started to serve."),
    Family("gateway_requests_total", "counter", "Requests answered.", ("operation", "method", "status")),
    Family(
        "gateway_request_seconds", "histogram", "Time from the request head to the answer.", ("operation",), _LATENCY
    ),
    Family("gateway_refused_requests_total", "counter", "Requests refused before routing.", ("code",)),
    Family("gateway_auth_failures_total", "counter", "Requests refused because of their credentials.", ("code",)),
    Family("gateway_rate_limited_total", "counter", "Requests over the rate limit of their key."),
    Family("gateway_shed_total", "counter", "Requests refused because the gateway was at capacity."),
    Family("gateway_scans_total", "counter", "Texts and chats scanned.", ("source", "verdict")),
    Family("gateway_upstream_requests_total", "counter", "Requests sent to the upstream.", ("outcome",)),
    Family(
        "gateway_provider_requests_total",
        "counter",
        "Requests sent to each provider, including failed ones that another provider answered.",
        ("provider", "outcome"),
    ),
    Family("gateway_upstream_seconds", "histogram", "Response time of the upstream.", (), _LATENCY),
    Family(
        "gen_ai_client_token_usage",
        "histogram",
        "Tokens of one completion (OpenTelemetry gen_ai.client.token.usage).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type"),
        _TOKENS,
        _FEW_SERIES,
    ),
    Family(
        "gen_ai_client_operation_duration_seconds",
        "histogram",
        "Time a provider took for one completion (OpenTelemetry gen_ai.client.operation.duration).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"),
        _DURATION,
        _FEW_SERIES,
    ),
    Family("gateway_overhead_seconds", "histogram", "The gateway's own share of a request.", ("operation",), _LATENCY),
    Family("gateway_tokens_total", "counter", "Tokens that the upstream reported.", ("kind",)),
    Family(
        "gateway_events_out_total",
        "counter",
        "Events of event outputs: sent, refused by the receiver (failed), or dropped because the output fell behind.",
        ("output", "outcome"),
    ),
)


class _Number:
    """One counter or gauge with its label values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class _Histogram:
    """One histogram with its label values. counts: of each bucket, the last without an upper bound."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


class Board(Protocol):
    """Where processes put up their metrics for each other."""

    def claim(self) -> bytes:
        """Take a place; return what a process that has ended left there, or b""."""
        ...

    def publish(self, state: bytes) -> bool:
        """Put up `state` in place of the last; say whether it was."""
        ...

    def others(self) -> list[bytes]:
        """Return what stands in every other place."""
        ...


class Metrics:
    """The metrics of one process.

    Every method may be called from any thread. Counting needs no lock: CPython changes threads at calls and at the end
    of a loop's turn, of which there is none between reading a number and writing the next.

    board: shared with the other workers. Then counters and histograms are rendered as the sum over all, where the
    others' part is as old as their last `publish`; gauges are this process's own.
    """

    def __init__(self, families: Sequence[Family] = FAMILIES, *, board: Board | None = None) -> None:
        self._board = board
        self._families = {family.name: family for family in families}
        self._numbers: dict[str, dict[tuple[str, ...], _Number]] = {
            family.name: {} for family in families if family.kind != "histogram"
        }
        self._histograms: dict[str, dict[tuple[str, ...], _Histogram]] = {
            family.name: {} for family in families if family.kind == "histogram"
        }
        for family in families:
            if family.kind == "counter" and not family.labels:
                self._number(family.name, {})
            elif family.kind == "histogram" and not family.labels:
                self._histogram(family.name, {})
        if board is not None:
            self._add(board.claim())

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count `name` up by `amount`. The labels stand in the family's order."""
        number = self._numbers[name].get(tuple(labels.values())) or self._number(name, labels)
        number.value += amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set `name` to `value`."""
        self._number(name, labels).value = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Count one observation of `name`, such as seconds. The labels stand in the family's order."""
        histogram = self._histograms[name].get(tuple(labels.values())) or self._histogram(name, labels)
        histogram.counts[bisect_left(self._families[name].buckets, value)] += 1
        histogram.total += value

    def publish(self) -> None:
        """Put up what was counted, so that the other workers can tell the sum. Once a second."""
        if self._board is not None:
            self._board.publish(self._state())

    def render(self) -> str:
        """Return all metrics in the Prometheus text format 0.0.4."""
        if self._board is None:
            return self._render()
        total = Metrics(tuple(self._families.values()))
        for name, numbers in self._numbers.items():
            if self._families[name].kind == "gauge":
                total._numbers[name] = numbers
        for state in (self._state(), *self._board.others()):
            total._add(state)
        return total._render()

    def _number(self, name: str, labels: Mapping[str, str]) -> _Number:
        numbers = self._numbers[name]
        return numbers.setdefault(self._key(name, labels, numbers), _Number())

    def _histogram(self, name: str, labels: Mapping[str, str]) -> _Histogram:
        histograms = self._histograms[name]
        return histograms.setdefault(self._key(name, labels, histograms), _Histogram(self._families[name].buckets))

    def _key(self, name: str, labels: Mapping[str, str], known: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
        """Return the label values as they are kept; `other` in every place when the family is full."""
        family = self._families[name]
        if tuple(labels) != family.labels:
            raise ValueError(f"{name} has the labels {family.labels}, in this order")
        key = tuple(str(value)[:_LABEL_CHARS] for value in labels.values())
        if key not in known and len(known) >= family.most_series:
            return ("other",) * len(key)
        return key

    def _state(self) -> bytes:
        """Return counters and histograms as JSON. The lists are taken at once: another thread may add to them."""
        numbers = {
            name: [(key, one.value) for key, one in list(numbers.items())]
            for name, numbers in self._numbers.items()
            if self._families[name].kind == "counter"
        }
        histograms = {
            name: [(key, one.counts, one.total) for key, one in list(histograms.items())]
            for name, histograms in self._histograms.items()
        }
        return json.dumps((numbers, histograms), separators=(",", ":")).encode()

    def _add(self, state: bytes) -> None:
        """Add what `_state` has returned, here or in another process."""
        if not state:
            return
        numbers, histograms = json.loads(state)
        for name, rows in numbers.items():
            for key, value in rows:
                self.count(name, value, **dict(zip(self._families[name].labels, key, strict=True)))
        for name, rows in histograms.items():
            for key, counts, total in rows:
                one = self._histogram(name, dict(zip(self._families[name].labels, key, strict=True)))
                one.counts = [mine + other for mine, other in zip(one.counts, counts, strict=True)]
                one.total += total

    def _render(self) -> str:
        lines: list[str] = []
        for family in self._families.values():
            lines.append(f"# HELP {family.name} {_escape(family.help)}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            if family.kind == "histogram":
                for key, histogram in sorted(self._histograms[family.name].items()):
                    lines.extend(_histogram_lines(family, key, histogram))
            else:
                for key, one in sorted(self._numbers[family.name].items()):
                    lines.append(f"{family.name}{_braces(zip(family.labels, key, strict=True))} {_number(one.value)}")
        return "\n".join(lines) + "\n"


def _histogram_lines(family: Family, key: tuple[str, ...], histogram: _Histogram) -> list[str]:
    labels = list(zip(family.labels, key, strict=True))
    bounds = [*(_number(bound) for bound in family.buckets), "+Inf"]
    sums = list(accumulate(histogram.counts))
    lines = [
        f"{family.name}_bucket{_braces([*labels, ('le', bound)])} {count}"
        for bound, count in zip(bounds, sums, strict=True)
    ]
    lines.append(f"{family.name}_sum{_braces(labels)} {_number(histogram.total)}")
    lines.append(f"{family.name}_count{_braces(labels)} {sums[-1]}")
    return lines


def _braces(labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{name}="{_escape(value).replace(chr(34), chr(92) + chr(34))}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
