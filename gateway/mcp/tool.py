"""The shape of one tool, and what it answers. No tool stands here."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.mcp.progress import Progress
from gateway.schema import JsonSchema

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

    async def run(
        self, gateway: Gateway, principal: Principal, command: object, context: RequestContext, progress: Progress
    ) -> ToolOutput:
        """Do it. Raises what the service that does it raises."""
        if self.long_call is not None:
            return await self.long_call(gateway, principal, command, context, progress)
        assert self.call is not None, "a row has one of the two"
        return await self.call(gateway, principal, command, context)


@dataclass(frozen=True, slots=True)
class NoArguments:
    """For a tool that takes none."""


def one_line(text: str) -> str:
    """Keep what others named, a key or a model, within its line: a model reads these lines."""
    return " ".join(text.split())[:_NAME_CHARS]
