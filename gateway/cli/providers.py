"""`providers list|show|add|update|remove|enable|disable|test`: where prompts go. Rules: `services.providers`."""

import argparse

from gateway.cli.command import FOUND, OK, Console, shown
from gateway.cli.resource import Flag, Row, Values, View, as_text, commands_of
from gateway.domain.providers import MAX_KEY_BYTES
from gateway.errors import InvalidRequest
from gateway.operations.providers import PROVIDER_OPERATIONS


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
    "priority",
    "weight",
    "timeout_seconds",
    "max_retries",
    Flag("prices", 'such as {"gpt-*": {"input": 2.5, "output": 10}}', metavar="JSON"),
    Flag("allow_private", "allow a private or loopback address", choices=("true", "false"), read="true".__eq__),
)

COMMANDS = commands_of(
    "providers",
    PROVIDER_OPERATIONS,
    "id (prv_…) or name of the provider",
    Row(
        "list",
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
    ),
    Row("show", "Show one provider.", "openai", has_json=True),
    Row(
        "add",
        "Add a provider of models; a running gateway uses it for the next prompt.",
        "--name lab --base-url https://lab.example/v1 --api-key env:GATEWAY_PROVIDER_LAB",
        operation="providers.create",
        flags=(
            Flag("name", "what it is called"),
            "type",
            *_FIELDS,
        ),
        note="{name} answers from the next prompt on:",
        prints="id",
        has_json=True,
        before=_read_key,
    ),
    Row(
        "update",
        "Change a provider.",
        "openai --models 'gpt-*,o3' --priority 10",
        operation="providers.change",
        flags=(Flag("name", "new name"), *_FIELDS),
        note="{id} ({name}) is changed",
        has_json=True,
        before=_read_key,
    ),
    Row("remove", "Remove a provider and its stored key.", "openai", note="{id} ({name}) is removed"),
    Row(
        "enable",
        "Enable a provider.",
        "openai",
        operation="providers.change",
        fixed={"enabled": True},
        note="{id} ({name}) is enabled",
        has_json=True,
    ),
    Row(
        "disable",
        "Disable a provider.",
        "openai",
        operation="providers.change",
        fixed={"enabled": False},
        note="{id} ({name}) is disabled",
        has_json=True,
    ),
    Row(
        "test",
        "Send one real request to a provider; exit 1 if it cannot be used.",
        "openai",
        has_json=True,
        after=_print_test,
    ),
    needs_rules=True,
)
