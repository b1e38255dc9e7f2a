"""The shape of one tool, and what it answers. No tool stands here."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, cast

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import InvalidRequest
from gateway.mcp.progress import Progress
from gateway.schema import JsonSchema, Now, decode, json_schema

_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers: a text for a model to read, and the same as an object that fits the row's `gives`."""

    text: str
    structured: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    takes: the record its arguments make. gives: makes the JSON Schema of its structured output. call: does it; a tool
    that takes a while has `long_call` instead, which tells of its progress.
    actions: what each `action` uses of the other arguments, where there is a choice; first the one that is done when
    none is named. The schema says it, and the rest is refused: what is asked for is never left out in silence.
    """

    name: str
    title: str
    description: str
    takes: type[Any]
    gives: Callable[[], JsonSchema]
    call: Callable[[Gateway, Principal, Any, RequestContext], Awaitable[ToolOutput]] | None = None
    long_call: Callable[[Gateway, Principal, Any, RequestContext, Progress], Awaitable[ToolOutput]] | None = None
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True
    is_open_world: bool = False
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def input_schema(self) -> JsonSchema:
        """Return the JSON Schema of the arguments; what only some actions use says so in words.

        Words, since several of those who hand tools to models take no `if` or `oneOf` in a schema. And no patterns:
        clients compile them in other dialects, and would refuse by them what the tool takes. `read` checks the form.
        """
        schema = cast(JsonSchema, _without_patterns(json_schema(self.takes)))
        properties = dict(cast("dict[str, JsonSchema]", schema["properties"]))
        for row in fields(self.takes):
            if row.default is not MISSING and row.default is not None:
                # Null is taken for a default too, and not worth a word: some clients read no `anyOf`.
                kind, *_ = cast("list[JsonSchema]", properties[row.name].pop("anyOf"))
                properties[row.name] |= kind
        for name, about in properties.items():
            users = [action for action, used in self.actions.items() if name in used]
            if users and len(users) < len(self.actions):
                properties[name] = about | {"description": f"{about['description']} Only for {', '.join(users)}."}
        return schema | {"properties": properties}

    def read(self, arguments: Mapping[str, object], now: Now) -> object:
        """Make the record that the arguments are. now: tells the time, Unix milliseconds.

        Raises:
            InvalidRequest: an argument is wrong, or not for the action that is named; `param` says which.
        """
        self._check_use(arguments)
        return decode(self.takes, arguments, now=now)

    def _check_use(self, arguments: Mapping[str, object]) -> None:
        action = arguments.get("action")
        action = next(iter(self.actions), None) if action is None else action
        used = self.actions.get(action) if isinstance(action, str) else None
        if used is None:
            return  # no choice of actions, or none of these, which is told where the record is made
        unused = {name for names in self.actions.values() for name in names} - set(used)
        for name, value in arguments.items():
            if name in unused and value is not None:
                takes = ", ".join(used) or "no other argument"
                raise InvalidRequest(f"{name} is not used by {action}, which uses {takes}.", param=name)

    async def run(
        self, gateway: Gateway, principal: Principal, command: object, context: RequestContext, progress: Progress
    ) -> ToolOutput:
        """Do it. Raises what the service that does it raises."""
        if self.long_call is not None:
            return await self.long_call(gateway, principal, command, context, progress)
        assert self.call is not None, "a row has one of the two"
        return await self.call(gateway, principal, command, context)


def _without_patterns(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_patterns(part)
        for name, part in schema.items()
        if not (name == "pattern" and isinstance(part, str))
    }


@dataclass(frozen=True, slots=True)
class NoArguments:
    """For a tool that takes none."""


def one_line(text: str) -> str:
    """Keep what others named, a key or a model, within its line: a model reads these lines."""
    return " ".join(text.split())[:_NAME_CHARS]
