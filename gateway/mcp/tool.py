"""The shape of one tool, of one call of it, and of what it answers. No tool is defined here."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any, cast

from gateway.app import Gateway
from gateway.domain.principals import Caller
from gateway.errors import InvalidRequest
from gateway.mcp.jsonrpc import RequestId
from gateway.operations.every import INTERNAL_OPERATIONS
from gateway.schema import JsonSchema, Now, decode, json_schema
from gateway.strict_json import write_json

_NAME_CHARS = 100
_OPERATIONS = {row.name: row for row in INTERNAL_OPERATIONS}

Notify = Callable[[bytes], Awaitable[None]]
"""Takes a message to the peer of a call, without a line break."""


class Progress:
    """Tells the peer how far a call is (MCP, "Progress"). Sends nothing to a peer that did not ask for it."""

    def __init__(self, token: RequestId | None, notify: Notify | None) -> None:
        self._token = token
        self._notify = notify
        self._last = -1.0

    async def tell(self, done: float, total: float, text: str) -> None:
        """Report `done` of `total`. The protocol wants rising numbers, so one that does not rise is left out."""
        if self._token is None or self._notify is None or done <= self._last:
            return
        self._last = done
        params = {"progressToken": self._token, "progress": done, "total": total, "message": text}
        await self._notify(write_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: the gateway, the caller, and where progress is reported."""

    gateway: Gateway
    caller: Caller
    progress: Progress

    async def operate(self, name: str, values: Mapping[str, object]) -> Any:
        """Call an operation of the internal API as the peer. values: as JSON has them; None leaves a field out.

        Raises:
            InvalidRequest: a value is refused by the record that the operation takes. Whatever its service raises.
        """
        operation = _OPERATIONS[name]
        assert operation.call is not None, name
        given = {field: value for field, value in values.items() if value is not None}
        command = operation.takes and decode(operation.takes, given, now=self.gateway.clock.now_at)
        return await operation.call(self.gateway, self.caller, command)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers: a text for a model to read, and the same as an object that fits the row's `gives`."""

    text: str
    structured: dict[str, object]


class Effect(Enum):
    """What a tool does to the gateway. READS: nothing that matters. WRITES: it adds. DESTROYS: it may remove."""

    READS = "reads"
    WRITES = "writes"
    DESTROYS = "destroys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    takes: the record of its arguments. gives: makes the JSON Schema of its structured output. call: runs it.
    actions: the arguments that each `action` uses, for a tool with several; the first is the default. The schema states
    them. An argument that the action does not use is refused, so that no request is ignored in silence.
    """

    name: str
    title: str
    description: str
    takes: type[Any]
    gives: Callable[[], JsonSchema]
    call: Callable[[ToolCall, Any], Awaitable[ToolOutput]]
    effect: Effect = Effect.READS
    is_open_world: bool = False
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def input_schema(self) -> JsonSchema:
        """Return the JSON Schema of the arguments. A sentence names the actions that use an argument.

        A sentence, because several clients that hand tools to models refuse `if` and `oneOf` in a schema. The schema
        has no patterns either: clients compile them in other dialects. `read` checks the form.
        """
        schema = cast(JsonSchema, _without_patterns(json_schema(self.takes)))
        properties = dict(cast("dict[str, JsonSchema]", schema["properties"]))
        for row in fields(self.takes):
            if row.default is not MISSING and row.default is not None:
                # Null is taken for a default too, but some clients cannot read `anyOf`.
                kind, *_ = cast("list[JsonSchema]", properties[row.name].pop("anyOf"))
                properties[row.name] |= kind
        for name, about in properties.items():
            users = [action for action, used in self.actions.items() if name in used]
            if users and len(users) < len(self.actions):
                properties[name] = about | {"description": f"{about['description']} Only for {', '.join(users)}."}
        return schema | {"properties": properties}

    def read(self, arguments: Mapping[str, object], now: Now) -> object:
        """Make the record of the arguments. now: tells the time, Unix milliseconds.

        Raises:
            InvalidRequest: an argument is wrong, or the action does not use it; `param` names it.
        """
        action = arguments.get("action")
        if action is None:
            action = next(iter(self.actions), None)
        if isinstance(action, str) and action in self.actions:  # else the record refuses the action
            used = self.actions[action]
            unused = {name for names in self.actions.values() for name in names} - set(used)
            for name, value in arguments.items():
                if name in unused and value is not None:
                    takes = ", ".join(used) or "no other argument"
                    raise InvalidRequest(f"{name} is not used by {action}, which uses {takes}.", param=name)
        return decode(self.takes, arguments, now=now)


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
    """Keep a name that others chose, such as of a key or a model, within its line: a model reads these lines."""
    return " ".join(text.split())[:_NAME_CHARS]
