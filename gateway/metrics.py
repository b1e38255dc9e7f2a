"""Counters, gauges and histograms as Prometheus text, of one process or summed. Knows no route and no transport.

Every family is a row of `FAMILIES`. A family holds a bounded number of combinations of label values; what comes after
that is counted under ``other``, so that no caller can make memory grow. Labels never hold a key, a prompt or a path as
sent: operations are names of rows.
"""

import json
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Literal, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_CELLS = 500
_LABEL_CHARS = 100
_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


# The bounds that OpenTelemetry's semantic conventions for generative AI metrics ask for.
_TOKENS = tuple(float(4**power) for power in range(14))
_FEW_CELLS = 120
_DURATION = tuple(0.01 * 2**power for power in range(14))


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. buckets: upper bounds, in seconds or whatever is counted; for histograms. most_cells: see above."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    most_cells: int = MOST_CELLS


FAMILIES = (
    Family("gateway_build_info", "gauge", "Always 1; what runs.", ("version", "python", "matcher")),
    Family("gateway_start_time_seconds", "gauge", "Unix time at which this process began to serve."),
    Family("gateway_requests_total", "counter", "Requests answered.", ("operation", "method", "status")),
    Family(
        "gateway_request_seconds", "histogram", "From the head of a request to its answer.", ("operation",), _LATENCY
    ),
    Family("gateway_refused_requests_total", "counter", "Requests refused before a route was known.", ("code",)),
    Family("gateway_auth_failures_total", "counter", "Requests refused for their credentials.", ("code",)),
    Family("gateway_rate_limited_total", "counter", "Requests over the rate limit of their key."),
    Family("gateway_shed_total", "counter", "Requests refused because there was more to do than could be done."),
    Family("gateway_scans_total", "counter", "Texts and chats scanned.", ("source", "verdict")),
    Family("gateway_upstream_requests_total", "counter", "Requests sent to the upstream.", ("outcome",)),
    Family(
        "gateway_provider_requests_total",
        "counter",
        "Requests sent to each provider, also those that others made good.",
        ("provider", "outcome"),
    ),
    Family("gateway_upstream_seconds", "histogram", "Time the upstream took to answer.", (), _LATENCY),
    Family(
        "gen_ai_client_token_usage",
        "histogram",
        "Tokens of one completion (OpenTelemetry gen_ai.client.token.usage).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type"),
        _TOKENS,
        _FEW_CELLS,
    ),
    Family(
        "gen_ai_client_operation_duration_seconds",
        "histogram",
        "Time a provider took for one completion (OpenTelemetry gen_ai.client.operation.duration).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"),
        _DURATION,
        _FEW_CELLS,
    ),
    Family("gateway_overhead_seconds", "histogram", "The gateway's own share of a request.", ("operation",), _LATENCY),
    Family("gateway_tokens_total", "counter", "Tokens the upstream counted.", ("kind",)),
    Family(
        "gateway_events_out_total",
        "counter",
        "Events of event outputs: sent, refused by the receiver (failed), or dropped since they were too far behind.",
        ("output", "outcome"),
    ),
)


class Cell:
    """One counter or gauge with its label values.

    Needs no lock: the interpreter changes threads at calls and at the end of a loop's turn, of which there is none
    between reading a number and writing the next.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        """Count up."""
        self.value += amount


class Histogram:
    """One histogram with its label values. Needs no lock, as a cell needs none.

    observe: count one observation. It is only noted, and put into its bucket with the others of a second: to do that
    for many in a row takes a third of the time. counts, total: of what `fold` has put there.
    """

    __slots__ = ("_bounds", "_noted", "counts", "observe", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._noted = array("d")
        self.observe = self._noted.append
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def fold(self) -> None:
        """Put what was noted into its buckets. For one thread at a time; others may note more meanwhile."""
        size = len(self._noted)
        if size:
            values = self._noted[:size]
            del self._noted[:size]
            self.total += sum(values)
            for bucket, count in Counter(map(partial(bisect_left, self._bounds), values)).items():
                self.counts[bucket] += count


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
    """The metrics of one process. Every method may be called from any thread, but for `publish` and `render`.

    board: shared with the other workers. Then counters and histograms are rendered as the sum over all, where the
    others' part is as old as their last `publish`; gauges are this process's own.
    """

    def __init__(self, families: Sequence[Family] = FAMILIES, *, board: Board | None = None) -> None:
        self._board = board
        self._families = {family.name: family for family in families}
        self._cells: dict[str, dict[tuple[str, ...], Cell]] = {
            family.name: {} for family in families if family.kind != "histogram"
        }
        self._known: dict[tuple[str, ...], Cell] = {}
        self._known_histograms: dict[tuple[str, ...], Histogram] = {}
        self._histograms: dict[str, dict[tuple[str, ...], Histogram]] = {
            family.name: {} for family in families if family.kind == "histogram"
        }
        for family in families:
            if not family.labels and family.kind != "gauge":
                self._prepare(family.name)
        if board is not None:
            self._add(board.claim())

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count `name` up by `amount`."""
        cell = self._known.get((name, *labels, *labels.values())) or self._remember(name, labels)
        cell.value += amount

    def _remember(self, name: str, labels: Mapping[str, str]) -> Cell:
        """Return the cell of these labels, and keep it under them as they were written."""
        cell = self.counter(name, **labels)
        if len(self._known) < MOST_CELLS:
            self._known[(name, *labels, *labels.values())] = cell
        return cell

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set `name` to `value`."""
        self.counter(name, **labels).value = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Count one observation of `name`."""
        key = (name, *labels, *labels.values())
        known = self._known_histograms.get(key)
        if known is None:
            known = self.histogram(name, **labels)
            if len(self._known_histograms) < MOST_CELLS:
                self._known_histograms[key] = known
        known.observe(seconds)

    def counter(self, name: str, **labels: str) -> Cell:
        """Return the cell of these labels, to keep and count up where every microsecond matters."""
        cells = self._cells[name]
        key = self._key(name, labels, cells)
        cell = cells.get(key)
        if cell is None:
            cell = cells.setdefault(key, Cell())
        return cell

    def histogram(self, name: str, **labels: str) -> Histogram:
        """Return the histogram of these labels, to keep."""
        histograms = self._histograms[name]
        key = self._key(name, labels, histograms)
        histogram = histograms.get(key)
        if histogram is None:
            histogram = histograms.setdefault(key, Histogram(self._families[name].buckets))
        return histogram

    def publish(self) -> None:
        """Put up what was counted, so that the other workers can tell the sum. Once a second."""
        self._fold()
        if self._board is not None:
            self._board.publish(self._state())

    def render(self) -> str:
        """Return all metrics in the Prometheus text format 0.0.4."""
        self._fold()
        if self._board is None:
            return self._render()
        total = Metrics(tuple(self._families.values()))
        for name, cells in self._cells.items():
            if self._families[name].kind == "gauge":
                total._cells[name] = cells
        for state in (self._state(), *self._board.others()):
            total._add(state)
        return total._render()

    def _fold(self) -> None:
        for histograms in self._histograms.values():
            for histogram in list(histograms.values()):
                histogram.fold()

    def _state(self) -> bytes:
        """Return counters and histograms as JSON. The lists are taken at once: another thread may add to them."""
        cells = {
            name: [(key, cell.value) for key, cell in list(cells.items())]
            for name, cells in self._cells.items()
            if self._families[name].kind == "counter"
        }
        histograms = {
            name: [(key, one.counts, one.total) for key, one in list(histograms.items())]
            for name, histograms in self._histograms.items()
        }
        return json.dumps((cells, histograms), separators=(",", ":")).encode()

    def _add(self, state: bytes) -> None:
        """Add what `_state` has returned, here or in another process."""
        if not state:
            return
        cells, histograms = json.loads(state)
        for name, rows in cells.items():
            for key, value in rows:
                self.counter(name, **dict(zip(self._families[name].labels, key, strict=True))).add(value)
        for name, rows in histograms.items():
            for key, counts, seconds in rows:
                one = self.histogram(name, **dict(zip(self._families[name].labels, key, strict=True)))
                one.counts = [mine + other for mine, other in zip(one.counts, counts, strict=True)]
                one.total += seconds

    def _render(self) -> str:
        lines: list[str] = []
        for family in self._families.values():
            lines.append(f"# HELP {family.name} {_escape(family.help)}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            if family.kind == "histogram":
                for key, histogram in sorted(self._histograms[family.name].items()):
                    lines.extend(_histogram_lines(family, key, histogram))
            else:
                for key, cell in sorted(self._cells[family.name].items()):
                    lines.append(f"{family.name}{_braces(zip(family.labels, key, strict=True))} {_number(cell.value)}")
        return "\n".join(lines) + "\n"

    def _prepare(self, name: str) -> None:
        if name in self._cells:
            self.counter(name)
        else:
            self.histogram(name)

    def _key(self, name: str, labels: Mapping[str, str], known: Mapping[tuple[str, ...], object]) -> tuple[str, ...]:
        """Return the label values in the family's order; `other` in every place when the family is full."""
        names = self._families[name].labels
        if len(labels) != len(names):
            raise ValueError(f"{name} has the labels {names}")
        key = tuple([str(labels[label])[:_LABEL_CHARS] for label in names])
        if key not in known and len(known) >= self._families[name].most_cells:
            return ("other",) * len(names)
        return key


def _histogram_lines(family: Family, key: tuple[str, ...], histogram: Histogram) -> list[str]:
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
