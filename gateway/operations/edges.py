"""The rows that an edge answers: probes, metrics, the OpenAI API, contracts of others, the dashboard and its feed."""

from dataclasses import dataclass

from gateway.domain.principals import Scope
from gateway.guardrails.every import CONTRACTS
from gateway.operations.operation import Door, choice
from gateway.operations.rows import row


@dataclass(frozen=True, slots=True)
class HealthWanted:
    """What a probe asks. ready: whether requests can be served, and not only whether the process answers."""

    ready: str | None = None


PUBLIC_OPERATIONS = (
    row(
        "health",
        "GET /api/v1/health",
        None,
        "Tell whether the service answers, or with `ready=true` can serve. A good key adds version, uptime and checks.",
        door=Door.OPTIONAL,
        takes=HealthWanted,
        query=(choice("ready", ("true",), "Answer 503 while the gateway can decide or record nothing."),),
        fails=("audit_unavailable",),
    ),
    row("openapi", "GET /api/v1/openapi.json", None, "Return this description of the API.", door=Door.OPEN),
    row(
        "metrics",
        "GET /metrics",
        Scope.FLEET_READ,
        "Return metrics as Prometheus text, to a user of this host or with a key.",
        door=Door.LOOPBACK,
    ),
    row(
        "chat.completions",
        "POST /api/v1/chat/completions",
        Scope.CHAT_COMPLETIONS,
        "Complete a chat, OpenAI-compatible. Prompt and reply are scanned. `stream: true` is served at `/api/v2`.",
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
        is_openai=True,
        fails=("upstream_unavailable",),
    ),
    row(
        "models.show",
        "GET /api/v1/models/{id}",
        Scope.CHAT_COMPLETIONS,
        "Show one model that the key may use, OpenAI-compatible. Its id may contain slashes, encoded or not.",
        is_openai=True,
        fails=("not_found", "upstream_unavailable"),
    ),
    *(
        row(
            one.operation,
            f"POST {one.route}",
            Scope.SHIELD_SCAN,
            one.about,
            is_openai=True,  # their clients, too, add query parameters of their own
            body_setting="max_chat_body_bytes",
            fails=("shield_unavailable", "audit_unavailable", "overloaded"),
        )
        for one in CONTRACTS
    ),
)

_FILE = "Return a file of the dashboard. The file of a path never changes."
PAGE_OPERATIONS = (
    row("dashboard.page", "GET /", None, "Return the page of the dashboard.", door=Door.PAGE),
    row("dashboard.file", "GET /dashboard/{version}/{name}", None, _FILE, door=Door.PAGE),
    row("dashboard.module", "GET /dashboard/{version}/{folder}/{name}", None, _FILE, door=Door.PAGE),
)

_DOCUMENT = "Return a page of the documents as HTML."
MANUAL_OPERATIONS = tuple(
    row(f"docs.{name}", f"GET {path}", None, _DOCUMENT, door=Door.OPEN)
    for name, path in (
        ("root", "/docs"),
        ("index", "/docs/"),
        ("page", "/docs/{name}"),
        ("page_of_folder", "/docs/{folder}/{name}"),
    )
)

OPERATIONS = (
    row(
        "feed",
        "GET /api/feed",
        None,
        "Stream the traffic and alerts that the caller may see, as server-sent events.",
        has_secret=True,  # a stream, which is never compressed
    ),
)
