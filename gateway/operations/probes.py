"""The rows for probes, monitoring and the files of the dashboard. They answer from the first request on."""

from gateway.domain.principals import Scope
from gateway.operations.operation import Answer, Door
from gateway.operations.rows import row

PROBE_OPERATIONS = (
    row(
        "health",
        "GET /api/v1/health",
        None,
        "Tell whether the service answers. A good key adds version, uptime and checks; a wrong one nothing.",
        door=Door.OPTIONAL,
        answer=Answer.BARE,
    ),
    row(
        "openapi",
        "GET /api/v1/openapi.json",
        None,
        "Return this description of the API.",
        door=Door.OPEN,
        answer=Answer.BARE,
    ),
    row(
        "metrics",
        "GET /metrics",
        Scope.FLEET_READ,
        "Return metrics as Prometheus text, to a user of this host or with a key.",
        door=Door.LOOPBACK,
        answer=Answer.BARE,
    ),
)

_FILE = "Return a file of the dashboard, which never changes under its path."
PAGE_OPERATIONS = tuple(
    row(name, route, None, summary, door=Door.PAGE, answer=Answer.BARE)
    for name, route, summary in (
        ("dashboard.page", "GET /", "Return the page of the dashboard."),
        ("dashboard.file", "GET /dashboard/{version}/{name}", _FILE),
        ("dashboard.module", "GET /dashboard/{version}/{folder}/{name}", _FILE),
    )
)

FEED_OPERATIONS = (
    row(
        "feed",
        "GET /api/feed",
        None,
        "Follow traffic and alerts as server-sent events, as far as the caller may see them.",
        answer=Answer.BARE,
        has_secret=True,  # a stream, which is never compressed
    ),
)
