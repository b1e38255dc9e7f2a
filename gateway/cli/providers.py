"""`providers list|show|add|update|remove|enable|disable|test`: the use-cases of the internal API, typed by hand."""

import argparse
from collections.abc import Callable

from gateway.app import Gateway
from gateway.cli.command import FOUND, OK, Command, Console, nothing, shown, table
from gateway.cli.manage import context, with_gateway
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.prices import read_prices
from gateway.domain.principals import local
from gateway.domain.providers import MAX_KEY_BYTES, MAX_PRIORITY, MAX_RETRIES, MAX_WEIGHT, Provider, ProviderType
from gateway.errors import InvalidJson, InvalidRequest
from gateway.operations.providers import all_providers, find_provider, kept_id, view_provider
from gateway.schema import encode
from gateway.services.providers import WantedProvider
from gateway.strict_json import read_integer, read_json

Change = Callable[[Gateway], WantedProvider]


def list_providers(options: argparse.Namespace, console: Console) -> int:
    """List every provider; the status is that of this process, which has sent nothing."""

    async def work(gateway: Gateway) -> int:
        views = [view_provider(gateway, provider) for provider in await all_providers(gateway)]
        if options.json:
            console.print_json([encode(view) for view in views])
            return OK
        rows = [
            (
                view.id,
                view.name,
                view.type.value,
                shown(view.base_url or "-"),
                view.api_key_source or "no key",
                shown(",".join(view.models), 40),
                str(view.priority),
                str(view.weight),
                "enabled" if view.enabled else "disabled",
            )
            for view in views
        ]
        head = ("ID", "NAME", "TYPE", "BASE URL", "KEY", "MODELS", "PRIORITY", "WEIGHT", "STATE")
        console.print(table(rows, head))
        return OK

    return with_gateway(options, work)


def show(options: argparse.Namespace, console: Console) -> int:
    """Print one provider. Its key is never shown."""

    async def work(gateway: Gateway) -> int:
        _print(console, gateway, await find_provider(gateway, options.id), options)
        return OK

    return with_gateway(options, work)


def add(options: argparse.Namespace, console: Console) -> int:
    """Add a provider and print its id."""
    wanted = _wanted(options, console, type=_type(options.type))

    async def work(gateway: Gateway) -> int:
        provider = await gateway.providers.create(local("cli"), wanted, context(gateway))
        if options.json:
            _print(console, gateway, provider, options)
            return OK
        console.note(f"{provider.name} answers from the next prompt on:")
        console.print(provider.id)
        return OK

    return with_gateway(options, work)


def update(options: argparse.Namespace, console: Console) -> int:
    """Change a provider."""
    return _change(options, console, _wanted(options, console), "is changed")


def enable(options: argparse.Namespace, console: Console) -> int:
    """Let a provider be used."""
    return _change(options, console, WantedProvider(enabled=True), "is enabled")


def disable(options: argparse.Namespace, console: Console) -> int:
    """Let a provider no longer be used."""
    return _change(options, console, WantedProvider(enabled=False), "is disabled")


def remove(options: argparse.Namespace, console: Console) -> int:
    """Remove a provider and the key that was typed in for it."""

    async def work(gateway: Gateway) -> int:
        provider_id = await kept_id(gateway, options.id)
        provider = await gateway.providers.remove(local("cli"), provider_id, context(gateway))
        console.note(f"{provider.id} ({provider.name}) is removed")
        return OK

    return with_gateway(options, work)


def test(options: argparse.Namespace, console: Console) -> int:
    """Send one real request to a provider; exit 1 if it cannot be used."""

    async def work(gateway: Gateway) -> int:
        provider = await find_provider(gateway, options.id)
        result = await gateway.provider_test.run(local("cli"), provider, context(gateway))
        if options.json:
            console.print_json(encode(result))
        elif result.ok:
            models = shown(", ".join(result.models), 200) or "it lists no models"
            console.print(f"{provider.name} answers in {result.latency_ms:.0f} ms: {models}")
        else:
            console.print(f"{provider.name}: {shown(result.error or '', 300)}")
        return OK if result.ok else FOUND

    return with_gateway(options, work)


def declare_id(parser: argparse.ArgumentParser) -> None:
    """Declare which provider is meant."""
    parser.add_argument("id", help="id (prv_…) or name of the provider")


def declare_fields(parser: argparse.ArgumentParser) -> None:
    """Declare what may be said of a provider."""
    parser.add_argument("--base-url", help="with the version in its path, such as https://api.example.com/v1")
    parser.add_argument(
        "--api-key", metavar="REF", help="env:NAME, file:/PATH, cred:NAME, none, or - to type the key on stdin"
    )
    parser.add_argument("--models", help="names or globs, comma-separated")
    parser.add_argument("--priority", metavar="N", help="the lowest is tried first (100)")
    parser.add_argument("--weight", metavar="N", help="share among those of one priority (1)")
    parser.add_argument("--timeout-seconds", metavar="N", help="longest wait for a whole answer (600)")
    parser.add_argument("--max-retries", metavar="N", help="how often a request is repeated before the next (1)")
    parser.add_argument("--prices", metavar="JSON", help='such as {"gpt-*": {"input": 2.5, "output": 10}}')
    parser.add_argument("--allow-private", choices=("true", "false"), help="whether a private address is meant")


def declare_add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `providers add`."""
    parser.add_argument("--name", required=True, help="what it is called")
    parser.add_argument("--type", default=ProviderType.OPENAI.value, help=f"one of {', '.join(ProviderType)}")
    declare_fields(parser)


def declare_update(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `providers update`."""
    declare_id(parser)
    parser.add_argument("--name", help="what it is called from now on")
    declare_fields(parser)


def _change(options: argparse.Namespace, console: Console, wanted: WantedProvider, done: str) -> int:
    async def work(gateway: Gateway) -> int:
        provider_id = await kept_id(gateway, options.id)
        provider = await gateway.providers.change(local("cli"), provider_id, wanted, context(gateway))
        if options.json:
            _print(console, gateway, provider, options)
        else:
            console.note(f"{provider.id} ({provider.name}) {done}")
        return OK

    return with_gateway(options, work)


def _print(console: Console, gateway: Gateway, provider: Provider, options: argparse.Namespace) -> None:
    value = encode(view_provider(gateway, provider))
    if options.json:
        console.print_json(value)
        return
    for name, one in value.items():
        console.print(f"{name}: {shown(str(one), 500)}")


def _wanted(options: argparse.Namespace, console: Console, *, type: ProviderType | None = None) -> WantedProvider:
    """Read what the flags say. One that was left out says nothing."""
    models = options.models
    private = options.allow_private
    return WantedProvider(
        name=options.name,
        type=type,
        base_url=options.base_url,
        api_key=_read_key(options.api_key, console),
        models=None if models is None else tuple(part.strip() for part in models.split(",") if part.strip()),
        priority=_number(options.priority, "--priority", 0, MAX_PRIORITY),
        weight=_number(options.weight, "--weight", 1, MAX_WEIGHT),
        timeout_seconds=_seconds(options.timeout_seconds),
        max_retries=_number(options.max_retries, "--max-retries", 0, MAX_RETRIES),
        prices=None if options.prices is None else read_prices(_json(options.prices), param="--prices"),
        allow_private=None if private is None else private == "true",
    )


def _read_key(text: str | None, console: Console) -> str | None:
    """Return the key or its reference. A key itself is not taken from the command line, which others can read."""
    if text is None:
        return KEEP_TEXT
    if text == "none":
        return None
    if text == "-":
        return console.stdin.readline(MAX_KEY_BYTES + 2).decode("utf-8", "replace").strip()
    if not text.startswith(("env:", "file:", "cred:")):
        raise InvalidRequest(
            "--api-key must be env:NAME, file:/PATH, cred:NAME, none, or - for stdin", param="--api-key"
        )
    return text


def _type(text: str) -> ProviderType:
    if text not in set(ProviderType):
        raise InvalidRequest(f"--type must be one of {', '.join(ProviderType)}", param="--type")
    return ProviderType(text)


def _number(text: str | None, flag: str, low: int, high: int) -> int | None:
    return None if text is None else read_integer(text, param=flag, low=low, high=high)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise InvalidRequest("--timeout-seconds must be a number", param="--timeout-seconds") from None


def _json(text: str) -> object:
    try:
        return read_json(text.encode("utf-8", "surrogateescape"))
    except InvalidJson as error:
        raise InvalidRequest(f"--prices: {error.message}", param="--prices") from None


COMMANDS = (
    Command(
        "providers list",
        "List the providers.",
        "gateway.pyz providers list --json",
        nothing,
        list_providers,
        has_json=True,
    ),
    Command(
        "providers show", "Show one provider.", "gateway.pyz providers show openai", declare_id, show, has_json=True
    ),
    Command(
        "providers add",
        "Add a provider of models; a running gateway uses it at the next prompt.",
        "gateway.pyz providers add --name lab --base-url https://lab.example/v1 --api-key env:GATEWAY_PROVIDER_LAB",
        declare_add,
        add,
        has_json=True,
    ),
    Command(
        "providers update",
        "Change a provider.",
        "gateway.pyz providers update openai --models 'gpt-*,o3' --priority 10",
        declare_update,
        update,
        has_json=True,
    ),
    Command(
        "providers remove",
        "Remove a provider and the key that was typed in for it.",
        "gateway.pyz providers remove openai",
        declare_id,
        remove,
    ),
    Command(
        "providers enable",
        "Let a provider be used.",
        "gateway.pyz providers enable openai",
        declare_id,
        enable,
        has_json=True,
    ),
    Command(
        "providers disable",
        "Let a provider no longer be used.",
        "gateway.pyz providers disable openai",
        declare_id,
        disable,
        has_json=True,
    ),
    Command(
        "providers test",
        "Send one real request to a provider; exit 1 if it cannot be used.",
        "gateway.pyz providers test openai",
        declare_id,
        test,
        has_json=True,
    ),
)
