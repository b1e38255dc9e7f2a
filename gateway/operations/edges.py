"""The rows that the API answers without a service: probes, metrics, the OpenAI API, the dashboard and its feed."""

from functools import partial

from gateway.domain.principals import Scope
from gateway.operations.operation import Answer, Door
from gateway.operations.rows import row

_bare = partial(row, answer=Answer.BARE)

PROBE_OPERATIONS = (
    _bare(
        "health",
        "GET /api/v1/health",
        None,
        "Tell whether the service answers. A good key adds version, uptime and checks.",
        door=Door.OPTIONAL,
    ),
    _bare("openapi", "GET /api/v1/openapi.json", None, "Return this description of the API.", door=Door.OPEN),
    _bare(
        "metrics",
        "GET /metrics",
        Scope.FLEET_READ,
        "Return metrics as Prometheus text, to a user of this host or with a key.",
        door=Door.LOOPBACK,
    ),
)

_FILE = "Return a file of the dashboard. The file of a path never changes."
PAGE_OPERATIONS = (
    _bare("dashboard.page", "GET /", None, "Return the page of the dashboard.", door=Door.PAGE),
    _bare("dashboard.file", "GET /dashboard/{version}/{name}", None, _FILE, door=Door.PAGE),
    _bare("dashboard.module", "GET /dashboard/{version}/{folder}/{name}", None, _FILE, door=Door.PAGE),
)

FEED_OPERATIONS = (
    _bare(
        "feed",
        "GET /api/feed",
        None,
        "Stream the traffic and alerts that the caller may see, as server-sent events.",
        has_secret=True,  # a stream, which is never compressed
    ),
)

OPENAI_OPERATIONS = (
    _bare(
        "chat.completions",
        "POST /api/v1/chat/completions",
        Scope.CHAT_COMPLETIONS,
        "Complete a chat, OpenAI-compatible. Prompt and reply are scanned; `stream: true` is not served in v1.",
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
    _bare(
        "models.list",
        "GET /api/v1/models",
        Scope.CHAT_COMPLETIONS,
        "List the models that the key may use, OpenAI-compatible.",
        is_openai=True,
        fails=("upstream_unavailable",),
    ),
    _bare(
        "models.show",
        "GET /api/v1/models/{id}",
        Scope.CHAT_COMPLETIONS,
        "Show one model that the key may use, OpenAI-compatible. Its id may hold slashes, encoded or not.",
        is_openai=True,
        fails=("not_found", "upstream_unavailable"),
    ),
)
