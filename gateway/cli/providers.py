"""`providers list|show|add|update|remove|enable|disable|test`: where prompts go. Rules: `services.providers`."""

import argparse

from gateway.cli.command import FOUND, OK, Console, shown
from gateway.cli.resource import Flag, Row, Values, View, as_text, commands_of
from gateway.domain.providers import MAX_KEY_BYTES, ProviderType
from gateway.errors import InvalidRequest
from gateway.operations.providers import PROVIDER_OPERATIONS

_PROVIDER = "id (prv_…) or name of the provider"


def _read_key(values: Values, options: argparse.Namespace, console: Console) -> None:
    """Take a key itself from stdin alone: a command line can be read by others."""
    match options.api_key:
        case None:
            return
        case "none":
            values["api_key"] = None
        case "-":
            values["api_key"] = console.stdin.readline(MAX_KEY_BYTES + 2).decode("utf-8", "replace").strip()
        case text if not text.startswith(("env:", "file:", "cred:")):
            raise InvalidRequest(
                "--api-key must be env:NAME, file:/PATH, cred:NAME, none, or - for stdin", param="--api-key"
            )


def _print_test(view: View, values: Values, options: argparse.Namespace, console: Console) -> int:
    if options.json:
        console.print_json(view)
    elif view["ok"]:
        models = shown(", ".join(view["models"]), 200) or "it lists no models"
        console.print(f"{options.id} answers in {view['latency_ms']:.0f} ms: {models}")
    else:
        console.print(f"{options.id}: {shown(view['error'] or '', 300)}")
    return OK if view["ok"] else FOUND


_FIELDS = (
    Flag("base_url", "with the version in its path, such as https://api.example.com/v1"),
    Flag("api_key", "env:NAME, file:/PATH, cred:NAME, none, or - to type the key on stdin", metavar="REF"),
    Flag("models", "names or globs, comma-separated"),
    Flag("priority", "the lowest is tried first (100)"),
    Flag("weight", "share among those of one priority (1)"),
    Flag("timeout_seconds", "longest wait for a whole answer (600)"),
    Flag("max_retries", "how often a request is repeated before the next provider is tried (1)"),
    Flag("prices", 'such as {"gpt-*": {"input": 2.5, "output": 10}}', metavar="JSON"),
    Flag("allow_private", "allow a private or loopback address", choices=("true", "false"), read="true".__eq__),
)

COMMANDS = commands_of(
    PROVIDER_OPERATIONS,
    Row(
        "providers list",
        "providers.list",
        "List the providers.",
        "--json",
        columns={
            "ID": "id",
            "NAME": "name",
            "TYPE": "type",
            "BASE URL": "base_url",
            "KEY": lambda view: view["api_key_source"] or "no key",
            "MODELS": lambda view: as_text(view["models"], separator=",", limit=40),
            "PRIORITY": "priority",
            "WEIGHT": "weight",
            "STATE": lambda view: "enabled" if view["enabled"] else "disabled",
        },
        has_json=True,
        needs_rules=True,
    ),
    Row("providers show", "providers.show", "Show one provider.", "openai", _PROVIDER, has_json=True, needs_rules=True),
    Row(
        "providers add",
        "providers.create",
        "Add a provider of models; a running gateway uses it for the next prompt.",
        "--name lab --base-url https://lab.example/v1 --api-key env:GATEWAY_PROVIDER_LAB",
        flags=(
            Flag("name", "what it is called"),
            Flag("type", f"one of {', '.join(ProviderType)} ({ProviderType.OPENAI})"),
            *_FIELDS,
        ),
        note="{name} answers from the next prompt on:",
        prints="id",
        has_json=True,
        needs_rules=True,
        before=_read_key,
    ),
    Row(
        "providers update",
        "providers.change",
        "Change a provider.",
        "openai --models 'gpt-*,o3' --priority 10",
        _PROVIDER,
        flags=(Flag("name", "new name"), *_FIELDS),
        note="{id} ({name}) is changed",
        has_json=True,
        needs_rules=True,
        before=_read_key,
    ),
    Row(
        "providers remove",
        "providers.remove",
        "Remove a provider and its stored key.",
        "openai",
        _PROVIDER,
        note="{id} ({name}) is removed",
        needs_rules=True,
    ),
    Row(
        "providers enable",
        "providers.change",
        "Enable a provider.",
        "openai",
        _PROVIDER,
        fixed={"enabled": True},
        note="{id} ({name}) is enabled",
        has_json=True,
        needs_rules=True,
    ),
    Row(
        "providers disable",
        "providers.change",
        "Disable a provider.",
        "openai",
        _PROVIDER,
        fixed={"enabled": False},
        note="{id} ({name}) is disabled",
        has_json=True,
        needs_rules=True,
    ),
    Row(
        "providers test",
        "providers.test",
        "Send one real request to a provider; exit 1 if it cannot be used.",
        "openai",
        _PROVIDER,
        has_json=True,
        needs_rules=True,
        after=_print_test,
    ),
)
