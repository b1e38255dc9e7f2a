"""`keys create|list|show|revoke|rotate`: API keys for a host without a browser. Rules are kept in `services.keys`."""

from gateway.cli.resource import Flag, Row, as_text, commands_of, expiry
from gateway.operations.keys import KEY_OPERATIONS

COMMANDS = commands_of(
    "keys",
    KEY_OPERATIONS,
    "id (key_…) or prefix (svc_…) of the key",
    Row(
        "create",
        "Create an API key; it is printed once, alone on stdout.",
        "--name ci --scopes shield:scan --expires 90d",
        flags=(
            Flag("name", "what the key is for"),
            Flag("scopes", "comma-separated, such as shield:scan,chat:completions"),
            Flag("rate_limit", "requests a minute (60)"),
            expiry("expires_at", "such as 90d or 2030-01-31; never if left out", "expires"),
            Flag("policy", "id or name of the policy that applies to the key"),
            Flag("models", "comma-separated models it may use, * and ? stand for any; all if left out"),
        ),
        note="{id} created; the key is shown this once:",
        prints="key",
    ),
    Row(
        "list",
        "List the API keys.",
        "--json",
        columns={
            "ID": "id",
            "NAME": "name",
            "PREFIX": "prefix",
            "STATUS": "status",
            "PER MINUTE": "rate_limit",
            "SCOPES": lambda view: as_text(view["scopes"], separator=",", limit=1_000),
            "LAST USED": lambda view: view["last_used_at"] or "never used",
        },
    ),
    Row("show", "Show one API key's record.", "svc_1a2b3c", has_json=True),
    Row("revoke", "Revoke an API key.", "svc_1a2b3c", note="{id} ({name}) is revoked"),
    Row(
        "rotate",
        "Create a replacement key; the old one is revoked when the grace period ends.",
        "svc_1a2b3c --grace-seconds 3600",
        flags=(Flag("grace_seconds", "how long the old key still works (86400, a day)"),),
        note="{id} replaces {rotated_from}; the new key is shown this once:",
        prints="key",
    ),
)
