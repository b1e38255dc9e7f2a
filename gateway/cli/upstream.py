"""`providers`, `detectors` and `budgets`: where texts are sent, and how much that may cost."""

import argparse
from dataclasses import fields, replace
from functools import partial
from typing import Any

from gateway.cli.command import Console, argument, shown
from gateway.cli.resource import Flag, Row, Values, View, as_text, commands_of, expiry
from gateway.domain.providers import MAX_KEY_BYTES
from gateway.errors import InvalidRequest
from gateway.operations.budgets import OPERATIONS as BUDGET_OPERATIONS
from gateway.operations.detectors import OPERATIONS as DETECTOR_OPERATIONS
from gateway.operations.providers import OPERATIONS as PROVIDER_OPERATIONS
from gateway.services.detectors import ChangedDetector

_BUDGET = "id (bud_…) of the budget"


def read_secret(field: str, values: Values, options: argparse.Namespace, console: Console) -> None:
    """Take a secret itself from stdin only: other users of the host can read a command line."""
    word = "--" + field.replace("_", "-")
    match getattr(options, field):
        case None:
            return
        case "none":
            values[field] = None
        case "-":
            values[field] = console.stdin.readline(MAX_KEY_BYTES + 2).decode("utf-8", "replace").strip()
        case text if not text.startswith(("env:", "file:", "cred:")):
            raise InvalidRequest(f"{word} must be env:NAME, file:/PATH, cred:NAME, none, or - for stdin", param=word)


def _print_test(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    if view["ok"]:
        models = shown(", ".join(view["models"]), 200) or "it lists no models"
        console.print(f"{options.id} answers in {view['latency_ms']:.0f} ms: {models}")
    else:
        console.print(f"{options.id}: {shown(view['error'] or '', 300)}")


def _limit(view: View) -> str:
    return f"{view['effective_limit']:g} {view['unit']} a {view['window']}"


def _print_limit(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    until = f" until {view['override']['until']}" if view["override"] else ""
    console.note(f"{view['id']}: {_limit(view)}{until}")


def _override(options: argparse.Namespace, console: Console) -> int | None:
    if options.end:
        return _END.run(options, console)
    if None in (options.limit, options.until, options.reason):
        raise InvalidRequest("--limit, --until and --reason are needed, or --end", param="--limit")
    return _RAISE.run(options, console)


TRUE_OR_FALSE: dict[str, Any] = {"choices": ("true", "false"), "read": "true".__eq__}
"""What a flag takes that sets or clears a field."""
_KEY_FLAG = Flag("api_key", "env:NAME, file:/PATH, cred:NAME, none, or - to type the key on stdin", metavar="REF")
_PRIVATE_FLAG = Flag("allow_private", "allow a private or loopback address", **TRUE_OR_FALSE)
_READ_KEY = partial(read_secret, "api_key")
_PROVIDER_FIELDS = (
    Flag("base_url", "with the version in its path, such as https://api.example.com/v1"),
    _KEY_FLAG,
    Flag("models", "names or globs, comma-separated"),
    *map(Flag, ("priority", "weight", "timeout_seconds", "max_retries")),
    Flag("prices", 'such as {"gpt-*": {"input": 2.5, "output": 10}}', metavar="JSON"),
    _PRIVATE_FLAG,
)
_PROVIDERS = commands_of(
    "providers",
    PROVIDER_OPERATIONS,
    "id (prv_…) or name of the provider",
    Row(
        "list",
        "List the providers.",
        "--json",
        columns=(
            *("id", "name", "type", "base_url"),
            ("KEY", lambda view: view["api_key_source"] or "no key"),
            ("MODELS", lambda view: as_text(view["models"], separator=",", limit=40)),
            *("priority", "weight"),
            ("STATE", lambda view: "enabled" if view["enabled"] else "disabled"),
        ),
    ),
    Row("show", "Show one provider.", "openai", has_json=True),
    Row(
        "add",
        "Add a provider of models; a running gateway uses it for the next prompt.",
        "--name lab --base-url https://lab.example/v1 --api-key env:GATEWAY_PROVIDER_LAB",
        flags=(Flag("name", "its name"), Flag("type"), *_PROVIDER_FIELDS),
        note="{name} answers from the next prompt on:",
        prints="id",
        has_json=True,
        before=_READ_KEY,
    ),
    Row(
        "update",
        "Change a provider.",
        "openai --models 'gpt-*,o3' --priority 10",
        flags=(Flag("name", "new name"), *_PROVIDER_FIELDS),
        note="{id} ({name}) is changed",
        has_json=True,
        before=_READ_KEY,
    ),
    Row("remove", "Remove a provider and its stored key.", "openai", note="{id} ({name}) is removed"),
    *(
        Row(
            verb,
            f"{verb.capitalize()} a provider.",
            "openai",
            fixed={"enabled": verb == "enable"},
            note=f"{{id}} ({{name}}) is {verb}d",
            has_json=True,
        )
        for verb in ("enable", "disable")
    ),
    Row(
        "test",
        "Send one real request to a provider; exit 1 if it cannot be used.",
        "openai",
        has_json=True,
        after=_print_test,
        is_good=lambda view: bool(view["ok"]),
    ),
    needs_rules=True,
)

_BUDGETS = commands_of(
    "budgets",
    BUDGET_OPERATIONS,
    _BUDGET,
    Row(
        "list",
        "List the budgets: what is spent, reserved and left.",
        "--json",
        columns=(
            "id",
            ("SCOPE", lambda view: f"{view['scope']} {shown(view['scope_value'] or '', 40)}".rstrip()),
            ("LIMIT", _limit),
            *("spent", "reserved", ("LEFT", "remaining"), "status", ("RESETS", "resets_at")),
        ),
    ),
    Row(
        "create",
        "Limit what is spent in a period.",
        "--limit 25 --window day --scope model --scope-value 'gpt-4o*'",
        flags=(
            Flag("limit", "limit for each period, in the unit"),
            *(Flag("unit"), Flag("scope")),
            Flag("scope_value", "which key, agent, model (a glob) or provider", metavar="VALUE"),
            Flag("window", "hour, day (default), week or month, of the UTC calendar"),
            Flag("soft_pct", "percentage of the limit at which to warn (80)"),
            *(Flag("action"), Flag("name", "what it is for")),
        ),
        note="the budget counts from now on:",
        prints="id",
    ),
    Row(
        "update",
        "Change a budget; what was spent still counts.",
        "bud_01J… --limit 40",
        flags=(
            Flag("limit", "new limit, in the unit"),
            Flag("soft_pct", "percentage of the limit at which to warn"),
            *(Flag("action"), Flag("name", "what it is for")),
        ),
        note="{id} has version {version}",
    ),
    Row("remove", "Remove a budget.", "bud_01J…", note="{id} is removed"),
)
_RAISE, _END = commands_of(
    "budgets",
    BUDGET_OPERATIONS,
    _BUDGET,
    Row(
        "override",
        "Raise the limit of a budget temporarily.",
        "bud_01J… --limit 100 --until 4h --reason 'release night'",
        flags=(
            Flag("limit", "the temporary limit, in the unit", required=False),
            expiry("until", "such as 4h, 2d or 2030-01-31", required=False),
            Flag("reason", "why, for the audit log", required=False),
        ),
        after=_print_limit,
    ),
    Row("override", "End an override.", "", operation="budgets.override.end", after=_print_limit),
)

_END_FLAG = argument("--end", action="store_true", help="end the override now: the usual limit applies again")

_NO_TEXT = {"name", "api_key", "labels", "send_masked", "allow_private", "enabled", "version"}
_DETECTOR_FIELDS = (
    *(Flag(one.name) for one in fields(ChangedDetector) if one.name not in _NO_TEXT),
    Flag("labels", 'such as {"LABEL_1": "injection", "LABEL_0": "safe"}', metavar="JSON"),
    *(Flag(name, **TRUE_OR_FALSE) for name in ("send_masked", "enabled")),
    *(_KEY_FLAG, _PRIVATE_FLAG),
)


def _print_said(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    for one in view["said"]:
        label = f"{one['label'] or 'yes'} {one['probability']:.2f}"
        console.print(f"{'found' if one['is_found'] else 'not found':10}{label:24}{one['text']}")
    if view["model"]:
        console.note(shown(view["model"], 300))
    if not view["ok"]:
        console.print(shown(view["error"], 300))


_DETECTORS = commands_of(
    "detectors",
    DETECTOR_OPERATIONS,
    "id (det_…) or name of the detector",
    Row(
        "list",
        "List the detectors.",
        "--json",
        columns=("id", "name", "kind", "base_url", "effect", "when", "on_error", "status"),
    ),
    Row("show", "Show one detector.", "guard", has_json=True),
    Row(
        "add",
        "Set up a detector; a running gateway asks it about the next text.",
        "--name guard --kind openai_chat --format llama_guard --model llama-guard3 --base-url http://gpu.lan:8000/v1",
        flags=(Flag("name", "lower-case letters, digits and ._-"), Flag("kind"), *_DETECTOR_FIELDS),
        note="{name} is asked from the next text on:",
        prints="id",
        has_json=True,
        before=_READ_KEY,
    ),
    Row(
        "update",
        "Change a detector.",
        "guard --effect veto --threshold 0.8",
        flags=(Flag("name", "new name"), *_DETECTOR_FIELDS),
        note="{id} ({name}) is changed",
        has_json=True,
        before=_READ_KEY,
    ),
    Row("remove", "Remove a detector and its stored key.", "guard", note="{id} ({name}) is removed"),
    Row(
        "test",
        "Have a detector judge a harmless text and an attack.",
        "guard",
        after=_print_said,
        has_json=True,
        is_good=lambda view: bool(view["ok"]),
    ),
    needs_rules=True,
)

COMMANDS = (
    *_PROVIDERS,
    *_DETECTORS,
    *_BUDGETS,
    replace(_RAISE, arguments=(*_RAISE.arguments, _END_FLAG), run=_override),
)
