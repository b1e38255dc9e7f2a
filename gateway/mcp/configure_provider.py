"""The tool that lists, adds, changes, tests and removes providers of models."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from gateway.domain.providers import ProviderType
from gateway.errors import InvalidRequest
from gateway.mcp.tool import Effect, Tool, ToolCall, ToolOutput, one_line
from gateway.operations.providers import ProviderView
from gateway.schema import encode, json_schema
from gateway.services.providers import ProviderTestResult

_MOST_LISTED = 20  # a model reads the answer and pays by the word
_SETTINGS = ("base_url", "api_key", "models", "allow_private")
_OPERATIONS = {"list": "list", "add": "create", "remove": "remove", "test": "show"}  # of all others: change
_Action = Literal["list", "add", "update", "remove", "test", "enable", "disable"]


@dataclass(frozen=True, slots=True)
class ConfigureProvider:
    """What to do with which provider. Every action except list needs its name."""

    action: Annotated[_Action, "list (default); add: needs name and base_url; all others need name."] = "list"
    name: Annotated[str | None, "The provider's name or its id, prv_ and so on."] = None
    type: Annotated[ProviderType | None, "Its protocol; openai-compatible if left out."] = None
    base_url: Annotated[str | None, "With the version in its path, such as https://api.example.com/v1."] = None
    api_key: Annotated[str | None, "env:NAME, file:/PATH, cred:NAME, or the key itself. Never shown again."] = field(
        default=None, repr=False
    )
    models: Annotated[tuple[str, ...] | None, "Names or globs of the models it serves; all if left out."] = None
    allow_private: Annotated[bool | None, "Whether it may be at a private or loopback address."] = None


@dataclass(frozen=True, slots=True)
class ProviderList:
    """The providers that were listed, or the one that was added, changed, tested or removed. test: its result."""

    action: _Action
    providers: tuple[ProviderView, ...]
    test: ProviderTestResult | None


async def _configure(call: ToolCall, command: ConfigureProvider) -> ToolOutput:
    test: ProviderTestResult | None = None
    if command.action != "list" and not command.name:
        raise InvalidRequest("name is missing: which provider?", param="name")
    given = encode(command)
    if command.action == "update" and all(given[name] is None for name in _SETTINGS):
        raise InvalidRequest(f"Nothing to change: give one of {', '.join(_SETTINGS)}.", param="name")
    values = {name: given[name] for name in ("type", *_SETTINGS)}
    values["name" if command.action == "add" else "id"] = command.name
    if command.action in ("enable", "disable"):
        values["enabled"] = command.action == "enable"
    if command.action == "test":
        test = await call.operate("providers.test", values)
    found = await call.operate(f"providers.{_OPERATIONS.get(command.action, 'change')}", values)
    providers = found.items if command.action == "list" else (found,)
    heads = {"list": "Providers:", "add": "Added:", "remove": "Removed:", "test": "Tested:"}
    head = heads.get(command.action, "Changed:") if providers else "There is no provider; the built-in echo answers."
    lines = [head, *map(_line, providers), *(() if test is None else _test_lines(test))]
    return ToolOutput("\n".join(lines), encode(ProviderList(command.action, tuple(providers), test)))


def _line(view: ProviderView) -> str:
    models = ", ".join(one_line(model) for model in view.models[:_MOST_LISTED])
    more = f" and {len(view.models) - _MOST_LISTED} more" if len(view.models) > _MOST_LISTED else ""
    problem = f". Problem: {view.problem}" if view.problem else ""
    where = view.base_url or view.type.value
    return f"- {view.id} {one_line(view.name)}: {view.status.value}, {where}, serves {models}{more}{problem}"


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
    effect=Effect.DESTROYS,
    is_open_world=True,
    actions={
        "list": (),
        "add": ("name", "type", *_SETTINGS),
        "update": ("name", *_SETTINGS),
        "remove": ("name",),
        "test": ("name",),
        "enable": ("name",),
        "disable": ("name",),
    },
)
