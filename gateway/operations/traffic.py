"""The rows of traffic on the internal API. `services.traffic` makes the numbers."""

from gateway.app import Gateway
from gateway.domain.principals import Caller, Permission
from gateway.domain.traffic import MAX_TRAFFIC_LIMIT, ORIGINS, TrafficFilter, TrafficRow
from gateway.guardrails.every import OPERATIONS as RECORDED_OPERATIONS
from gateway.operations.operation import ById, choice, integer, request_id, text, time
from gateway.operations.rows import Noun, paging
from gateway.services.traffic import SummaryFilter, TrafficDetail, TrafficSummary
from gateway.shield.detections import CATEGORIES, Direction, Verdict
from gateway.store.traffic import SORTS

_ORIGIN = choice("origin", ORIGINS, "Production or demo rows; if left out, those that this gateway has.")
_SINCE = time("since", "At or after: an RFC 3339 time, a date, or an age such as 24h.")
_UNTIL = time("until", "At or before: an RFC 3339 time, a date, or an age such as 24h.")


async def _show(gateway: Gateway, caller: Caller, command: ById) -> TrafficDetail:
    # Only a caller who may manage policies, and so may have texts captured, sees them unredacted.
    with_full = Permission.POLICIES_MANAGE in caller.principal.permissions
    return await gateway.traffic.show(command.id, gateway.shield, with_full=with_full)


_TRAFFIC = Noun("traffic", TrafficRow, Permission.TRAFFIC_READ, Permission.ALERTS_MANAGE)

OPERATIONS = (
    _TRAFFIC.list(
        "List requests, newest first: verdict, score, rules, tokens, cost, latency and caller.",
        takes=TrafficFilter,
        query=(
            choice("verdict", Verdict, "The shield's verdict."),
            text("key", "The prefix of a key, or the id of a caller."),
            text("agent", "The agent's name."),
            text("model", "The model's name."),
            text("provider", "The provider's name."),
            choice("operation", RECORDED_OPERATIONS, "The operation of the request."),
            integer("status", "HTTP status of the answer.", 100, 599),
            _ORIGIN,
            request_id(),
            text("rule", "A rule that matched."),
            choice("category", CATEGORIES, "The category of a rule that matched."),
            choice("direction", Direction, "The direction of a text in which a rule matched."),
            text("search", "Found in any case in agent, key, model, provider, request id, rules or SHA-256."),
            _SINCE,
            _UNTIL,
            *paging(MAX_TRAFFIC_LIMIT, sorts=SORTS),
        ),
    ),
    _TRAFFIC.row(
        "summary",
        "GET /summary",
        "Sum up a window (24 h): totals, a series in steps, top rules, agents, keys, models, providers.",
        takes=SummaryFilter,
        gives=TrafficSummary,
        call=lambda gateway, caller, wanted: gateway.traffic.summary(wanted),
        fails=("conflict",),
        query=(
            _SINCE,
            _UNTIL,
            choice("bucket", ("auto", "minute", "5m", "hour", "day"), "Step of the series; auto by the window."),
            _ORIGIN,
            text("agent", "An agent's name: sum up only its requests."),
            text("key", "The prefix of a key: sum up only its requests."),
        ),
    ),
    _TRAFFIC.show(
        "Show one request, by `trf_…` or `req_…`: its score's ledger, alerts, and texts that a policy keeps.",
        gives=TrafficDetail,
        call=_show,
    ),
)
