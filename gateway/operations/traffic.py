"""The rows of traffic on the internal API. Numbers are made in `services.traffic`."""

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.domain.traffic import DEFAULT_TRAFFIC_LIMIT, MAX_TRAFFIC_LIMIT, ORIGINS, TrafficFilter, TrafficRow
from gateway.operations.operation import (
    Answer,
    ById,
    Door,
    Operation,
    Parameter,
    choice,
    cursor,
    joined,
    limit,
    request_id,
    text,
    time,
)
from gateway.schema import JsonSchema, encode, json_schema
from gateway.services.false_positives import MarkedAlerts, MarkFalsePositive
from gateway.services.traffic import SummaryFilter, TrafficDetail, TrafficSummary
from gateway.shield.detections import Verdict
from gateway.strict_json import read_integer

_ORIGIN = choice("origin", ORIGINS, "Rows of production, or made up to show the gateway; left out: what there is here.")
_SINCE = time("since", "At or after: an RFC 3339 time, a date, or an age such as 24h.")
_MORE = ("ledger", "alerts", "captures")
_UNTIL = time("until", "At or before: an RFC 3339 time, a date, or an age such as 24h.")


def _read_status(value: str, now_at: int) -> object:
    return read_integer(value, param="status", low=100, high=599)


async def list_traffic(
    gateway: Gateway, who: Principal, wanted: TrafficFilter, context: RequestContext
) -> Page[TrafficRow]:
    """Return a page of rows."""
    return await gateway.traffic.page(wanted)


async def show_traffic(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> TrafficDetail:
    """Return one row with the ledger of its score, and what is kept of its texts.

    Who may see a text as it was is who may also have it kept.
    """
    with_full = Permission.POLICIES_MANAGE in who.permissions
    return await gateway.traffic.show(command.id, gateway.shield, with_full=with_full)


async def mark_false_positive(
    gateway: Gateway, who: Principal, command: MarkFalsePositive, context: RequestContext
) -> MarkedAlerts:
    """Close the alerts of a request that was harmless."""
    return await gateway.false_positives.mark(who, command, context)


async def sum_traffic(
    gateway: Gateway, who: Principal, wanted: SummaryFilter, context: RequestContext
) -> TrafficSummary:
    """Return the numbers of a window."""
    return await gateway.traffic.summary(wanted)


def write_detail(detail: TrafficDetail) -> dict[str, object]:
    """Return the JSON object of a row with the ledger, its alerts and the kept texts beside its own fields."""
    more = {name: [encode(one) for one in getattr(detail, name)] for name in _MORE}
    return encode(detail.row) | more


def detail_schema() -> JsonSchema:
    """Return the JSON Schema of what `write_detail` returns."""
    detail, schema = json_schema(TrafficDetail, written=True), json_schema(TrafficRow, written=True)
    for name in _MORE:
        schema = joined(schema, detail, name)
    return schema


TRAFFIC_OPERATIONS = (
    Operation(
        name="traffic.list",
        route=("GET", "/api/traffic"),
        door=Door.SESSION,
        needs=Permission.TRAFFIC_READ,
        answer=Answer.PAGE,
        takes=TrafficFilter,
        gives=TrafficRow,
        call=list_traffic,
        query=(
            choice("verdict", Verdict, "The shield's verdict."),
            text("key", "The prefix of a key, or the id of whoever called."),
            text("agent", "The agent's name."),
            text("model", "The model's name."),
            text("provider", "The provider's name."),
            choice("operation", ("chat.completions", "shield.scan"), "What was asked for."),
            Parameter(
                "status",
                "HTTP status of the answer.",
                _read_status,
                {"type": "integer", "minimum": 100, "maximum": 599},
            ),
            _ORIGIN,
            request_id(),
            text("rule", "A rule that matched."),
            text("search", "Found in any case in agent, key, model, provider, request id, rules or SHA-256."),
            _SINCE,
            _UNTIL,
            limit(MAX_TRAFFIC_LIMIT, DEFAULT_TRAFFIC_LIMIT),
            cursor(),
        ),
        summary="List requests, newest first: verdict, score, rules, tokens, cost, latency and whose they were.",
    ),
    Operation(
        name="traffic.summary",
        route=("GET", "/api/traffic/summary"),
        door=Door.SESSION,
        needs=Permission.TRAFFIC_READ,
        takes=SummaryFilter,
        gives=TrafficSummary,
        call=sum_traffic,
        fails=("conflict",),
        query=(
            _SINCE,
            _UNTIL,
            choice("bucket", ("auto", "minute", "5m", "hour", "day"), "Step of the series; auto by the window."),
            _ORIGIN,
        ),
        summary="Sum up a window (24 h): totals, a series in steps, top rules, agents, keys, models, providers.",
    ),
    Operation(
        name="traffic.show",
        route=("GET", "/api/traffic/{id}"),
        door=Door.SESSION,
        needs=Permission.TRAFFIC_READ,
        takes=ById,
        gives=TrafficDetail,
        write=write_detail,
        schema=detail_schema,
        call=show_traffic,
        summary="Show one request, by `trf_…` or `req_…`: its score's ledger, alerts, and texts that a policy keeps.",
    ),
    Operation(
        name="traffic.false_positive",
        route=("POST", "/api/traffic/{id}/false-positive"),
        door=Door.SESSION,
        needs=Permission.ALERTS_MANAGE,
        takes=MarkFalsePositive,
        gives=MarkedAlerts,
        call=mark_false_positive,
        fails=("conflict",),
        summary="Mark a request, by `trf_…` or `req_…`, as harmless: closes the alerts that it added to, and no other.",
    ),
)
