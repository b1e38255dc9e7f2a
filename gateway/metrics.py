"""Counters, gauges and histograms as Prometheus text, of one process or summed. Knows no route and no transport.

Every family is a row of `FAMILIES`. A family keeps a bounded number of combinations of label values and counts all
others under ``other``, so that no caller can make memory grow. Labels never hold a key, a prompt or a path as sent:
operations are names of rows.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import Literal

from gateway.store.metric_board import MetricBoard

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


_BUILD = ("version", "build", "python", "matcher")
FAMILIES = (
    Family("gateway_build_info", "gauge", "Always 1; the labels identify the build.", _BUILD),
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
    Family(
        "gateway_detector_requests_total",
        "counter",
        "Prompts, answers and scanned texts that each detector was asked about: found, clean or failed.",
        ("detector", "outcome"),
    ),
    Family("gateway_detector_seconds", "histogram", "Response time of each detector.", ("detector",), _LATENCY),
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


class Metrics:
    """The metrics of one process.

    Every method may be called from any thread. Counting needs no lock: CPython changes threads at calls and at the end
    of a loop's turn, of which there is none between reading a number and writing the next.

    board: shared with the other workers. Then counters and histograms are rendered as the sum over all, where the
    others' part is as old as their last `publish`; gauges are this process's own.
    """

    def __init__(self, families: Sequence[Family] = FAMILIES, *, board: MetricBoard | None = None) -> None:
        self._board = board
        self._families = {family.name: family for family in families}
        # A counter or gauge has one number. A histogram has the count of each bucket, the last unbounded, and the sum.
        self._series: dict[str, dict[tuple[str, ...], list[float]]] = {family.name: {} for family in families}
        for family in families:
            if family.kind != "gauge" and not family.labels:
                self._find(family.name, {})
        if board is not None:
            self._add(board.claim())

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count `name` up by `amount`. The labels stand in the family's order."""
        self._find(name, labels)[0] += amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set `name` to `value`."""
        self._find(name, labels)[0] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Count one observation of `name`, such as seconds. The labels stand in the family's order."""
        series = self._find(name, labels)
        series[bisect_left(self._families[name].buckets, value)] += 1
        series[-1] += value

    def publish(self) -> None:
        """Publish what was counted, so that the other workers can tell the sum. Once a second."""
        if self._board is not None:
            self._board.publish(self._state())

    def render(self) -> str:
        """Return all metrics in the Prometheus text format 0.0.4."""
        total = self
        if self._board is not None:
            total = Metrics(tuple(self._families.values()))
            total._series |= {name: self._series[name] for name in self._families if self._is_gauge(name)}
            for state in (self._state(), *self._board.others()):
                total._add(state)
        return "\n".join(line for name in self._families for line in total._lines(name)) + "\n"

    def _is_gauge(self, name: str) -> bool:
        return self._families[name].kind == "gauge"

    def _find(self, name: str, labels: Mapping[str, str]) -> list[float]:
        """Return the numbers of a combination of label values; those of ``other`` when the family is full."""
        family, known = self._families[name], self._series[name]
        if series := known.get(tuple(labels.values())):
            return series
        if tuple(labels) != family.labels:
            raise ValueError(f"{name} has the labels {family.labels}, in this order")
        key = tuple(str(value)[:_LABEL_CHARS] for value in labels.values())
        if key not in known and len(known) >= family.most_series:
            key = ("other",) * len(key)
        is_histogram = family.kind == "histogram"
        return known.setdefault(key, [0] * (len(family.buckets) + 2) if is_histogram else [0])

    def _state(self) -> bytes:
        """Return counters and histograms as JSON. The lists are taken at once: another thread may add to them."""
        state = {name: list(known.items()) for name, known in self._series.items() if not self._is_gauge(name)}
        return json.dumps(state, separators=(",", ":")).encode()

    def _add(self, state: bytes) -> None:
        for name, rows in json.loads(state or b"{}").items():
            for key, numbers in rows:
                series = self._find(name, dict(zip(self._families[name].labels, key, strict=True)))
                series[:] = map(add, series, numbers)

    def _lines(self, name: str) -> Iterator[str]:
        family = self._families[name]
        yield f"# HELP {name} {_escape(family.help)}"
        yield f"# TYPE {name} {family.kind}"
        for key, series in sorted(self._series[name].items()):
            labels = list(zip(family.labels, key, strict=True))
            if family.kind != "histogram":
                yield f"{name}{_braces(labels)} {_number(series[0])}"
                continue
            *counts, total = series
            sums = list(accumulate(counts))
            bounds = [*map(_number, family.buckets), "+Inf"]
            for bound, count in zip(bounds, sums, strict=True):
                yield f"{name}_bucket{_braces([*labels, ('le', bound)])} {_number(count)}"
            yield f"{name}_sum{_braces(labels)} {_number(total)}"
            yield f"{name}_count{_braces(labels)} {_number(sums[-1])}"


def _braces(labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{name}="{_escape(value).replace(chr(34), chr(92) + chr(34))}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
