"""The rows that the API answers without a service: probes, metrics, the OpenAI API, the dashboard and its feed."""

from gateway.domain.principals import Scope
from gateway.operations.operation import Answer, Door
from gateway.operations.rows import row

PROBE_OPERATIONS = (
    row(
        "health",
        "GET /api/v1/health",
        None,
        "Tell whether the service answers. A good key adds version, uptime and checks.",
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

_FILE = "Return a file of the dashboard. The file of a path never changes."
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
        "Stream the traffic and alerts that the caller may see, as server-sent events.",
        answer=Answer.BARE,
        has_secret=True,  # a stream, which is never compressed
    ),
)

OPENAI_OPERATIONS = (
    row(
        "chat.completions",
        "POST /api/v1/chat/completions",
        Scope.CHAT_COMPLETIONS,
        "Complete a chat, OpenAI-compatible. Prompt and reply are scanned; `stream: true` is not served in v1.",
        answer=Answer.BARE,
        is_openai=True,
        body_setting="max_chat_body_bytes",
        fails=(
            "unsupported_value",
            "content_policy_violation",
            "not_found",
            "upstream_unavailable",
            "shield_unavailable",
            "audit_unavailable",
            "overloaded",
        ),  # fmt: skip
    ),
    row(
        "models.list",
        "GET /api/v1/models",
        Scope.CHAT_COMPLETIONS,
        "List the models that the key may use, OpenAI-compatible.",
        answer=Answer.BARE,
        is_openai=True,
        fails=("upstream_unavailable",),
    ),
    row(
        "models.show",
        "GET /api/v1/models/{id}",
        Scope.CHAT_COMPLETIONS,
        "Show one model that the key may use, OpenAI-compatible. Its id may hold slashes, encoded or not.",
        answer=Answer.BARE,
        is_openai=True,
        fails=("not_found", "upstream_unavailable"),
    ),
)
