"""The tool that lists, adds, changes, tests and removes providers of models."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import ProviderType
from gateway.errors import InvalidRequest
from gateway.mcp.tool import Tool, ToolOutput, one_line
from gateway.operations.providers import ProviderView, all_providers, find_provider, view_provider
from gateway.schema import encode, json_schema
from gateway.services.provider_test import ProviderTestResult
from gateway.services.providers import WantedProvider

_MOST_LISTED = 20  # what a tool answers is read by a model, which pays by the word
_SAID = ("type", "base_url", "api_key", "models", "allow_private")  # of a provider, beside its name
_Action = Literal["list", "add", "update", "remove", "test", "enable", "disable"]


@dataclass(frozen=True, slots=True)
class ConfigureProvider:
    """What to do with which provider. Every action but list needs its name."""

    action: Annotated[_Action, "list (default); add: needs name and base_url; all others need name."] = "list"
    name: Annotated[str | None, "The provider's name or its id, prv_ and so on."] = None
    type: Annotated[ProviderType | None, "What it speaks; openai-compatible if left out."] = None
    base_url: Annotated[str | None, "With the version in its path, such as https://api.example.com/v1."] = None
    api_key: Annotated[str | None, "env:NAME, file:/PATH, cred:NAME, or the key itself. Never shown again."] = field(
        default=None, repr=False
    )
    models: Annotated[tuple[str, ...] | None, "Names or globs of the models it serves; all if left out."] = None
    allow_private: Annotated[bool | None, "Whether it may be at a private or loopback address."] = None


@dataclass(frozen=True, slots=True)
class ProviderList:
    """The providers that were listed, or the one that was added, changed, tested or removed. test: what came of it."""

    action: _Action
    providers: tuple[ProviderView, ...]
    test: ProviderTestResult | None


async def _configure(
    gateway: Gateway, principal: Principal, command: ConfigureProvider, context: RequestContext
) -> ToolOutput:
    test: ProviderTestResult | None = None
    match command.action:
        case "list":
            found = await all_providers(gateway)
        case "add":
            _name(command)
            found = (await gateway.providers.create(principal, _wanted(command, renames=True), context),)
        case "update":
            _name(command)
            if all(getattr(command, name) is None for name in _SAID):
                raise InvalidRequest(f"Nothing to change: give one of {', '.join(_SAID)}.", param="name")
            found = (await gateway.providers.change(principal, _name(command), _wanted(command), context),)
        case "enable" | "disable":
            wanted = WantedProvider(enabled=command.action == "enable")
            found = (await gateway.providers.change(principal, _name(command), wanted, context),)
        case "remove":
            found = (await gateway.providers.remove(principal, _name(command), context),)
        case "test":
            found = (await find_provider(gateway, _name(command)),)
            test = await gateway.provider_test.run(principal, found[0], context)
    views = tuple(view_provider(gateway, provider) for provider in found)
    heads = {"list": "Providers:", "add": "Added:", "remove": "Removed:", "test": "Tested:"}
    head = heads.get(command.action, "Changed:") if views else "There is no provider; the built-in echo answers."
    lines = [head, *map(_line, views), *(() if test is None else _test_lines(test))]
    return ToolOutput("\n".join(lines), encode(ProviderList(command.action, views, test)))


def _name(command: ConfigureProvider) -> str:
    if not command.name:
        raise InvalidRequest("name is missing: which provider?", param="name")
    return command.name


def _wanted(command: ConfigureProvider, *, renames: bool = False) -> WantedProvider:
    """Return what is said of the provider; only a new one gets its name here."""
    return WantedProvider(
        name=command.name if renames else None,
        type=command.type,
        base_url=command.base_url,
        api_key=command.api_key if renames or command.api_key is not None else KEEP_TEXT,
        models=command.models,
        allow_private=command.allow_private,
    )


def _line(view: ProviderView) -> str:
    models = ", ".join(one_line(model) for model in view.models[:_MOST_LISTED])
    place = view.base_url or view.type.value
    more = f" and {len(view.models) - _MOST_LISTED} more" if len(view.models) > _MOST_LISTED else ""
    problem = f". Problem: {view.problem}" if view.problem else ""
    return f"- {view.id} {one_line(view.name)}: {view.status.value}, {place}, serves {models}{more}{problem}"


def _test_lines(test: ProviderTestResult) -> list[str]:
    if not test.ok:
        return [test.error or "The provider cannot be used."]
    models = ", ".join(one_line(model) for model in test.models[:_MOST_LISTED])
    return [f"It answers, in {test.latency_ms:.0f} ms." + (f" It lists: {models}" if models else "")]


CONFIGURE_PROVIDER = Tool(
    name="configure_provider",
    title="Configure providers",
    description=(
        "List, add, change, test, enable, disable or remove the providers of models that prompts are forwarded to. A "
        "key goes in and is never shown again; better give a reference such as env:GATEWAY_PROVIDER_NAME. Test makes "
        "one real request."
    ),
    takes=ConfigureProvider,
    gives=lambda: json_schema(ProviderList, written=True),
    call=_configure,
    is_read_only=False,
    is_destructive=True,
    is_idempotent=False,
    is_open_world=True,
    actions={
        "list": (),
        "add": ("name", *_SAID),
        "update": ("name", *_SAID),
        "remove": ("name",),
        "test": ("name",),
        "enable": ("name",),
        "disable": ("name",),
    },
)
"""The row of the tool."""
