"""A gateway for the MCP edge: the real server over scripted tools, and an audit that remembers."""

import io
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any, cast

import anyio
import anyio.lowlevel
import pytest

from gateway.app import Gateway
from gateway.clock import Clock, Ids
from gateway.domain.principals import RequestContext
from gateway.errors import AuditUnavailable, GatewayError, InvalidRequest, Overloaded
from gateway.log import Log
from gateway.mcp.server import McpServer
from gateway.mcp.tool import Effect, NoArguments, Tool, ToolCall, ToolOutput
from gateway.metrics import Metrics
from gateway.shield.detections import Severity


@dataclass
class FakeAudit:
    """Keeps what it is given to record, as (action, outcome, reason, details)."""

    events: list[tuple[str, str, str | None, Mapping[str, object] | None]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    is_broken: bool = False

    def event(
        self, action: str, *, outcome: str = "success", reason: str | None = None, **rest: Any
    ) -> tuple[str, str, str | None, Mapping[str, object] | None]:
        return action, outcome, reason, rest.get("details")

    def refuse(self, error: GatewayError) -> None:
        self.refused.append(error.code)

    async def record(self, event: tuple[str, str, str | None, Mapping[str, object] | None]) -> None:
        if self.is_broken:
            raise AuditUnavailable("The audit log cannot be written.")
        self.events.append(event)


@dataclass(frozen=True, slots=True)
class Say:
    """The arguments of the scripted tool."""

    text: Annotated[str, "What to say."]
    level: Severity | None = None
    times: int = 1


@dataclass
class Script:
    """What the scripted tools do, and what they saw."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    may_end: anyio.Event = field(default_factory=anyio.Event)
    contexts: list[RequestContext] = field(default_factory=list)

    async def say(self, call: ToolCall, command: Say) -> ToolOutput:
        self.contexts.append(call.caller.context)
        return ToolOutput(command.text * command.times, {"said": command.text})

    async def wait(self, call: ToolCall, command: Any) -> ToolOutput:
        self.begun.set()
        await self.may_end.wait()
        return ToolOutput("waited", {})

    async def march(self, call: ToolCall, command: Any) -> ToolOutput:
        await call.progress.tell(1, 2, "left")
        await self.may_end.wait()
        await call.progress.tell(1, 2, "left again, which is no progress")
        await call.progress.tell(2, 2, "right")
        return ToolOutput("there", {})

    async def refuse(self, call: ToolCall, command: Any) -> ToolOutput:
        raise Overloaded("Too much at once; try again.")

    async def object(self, call: ToolCall, command: Any) -> ToolOutput:
        raise InvalidRequest("must be a time", param="since")

    async def garble(self, call: ToolCall, command: Any) -> ToolOutput:
        return ToolOutput("\ud800", {})

    async def crash(self, call: ToolCall, command: Any) -> ToolOutput:
        raise ZeroDivisionError("a prompt that must not be repeated")


def _tool(name: str, takes: type[Any], call: Any) -> Tool:
    return Tool(
        name=name,
        title=name.title(),
        description=f"Does {name}, for a test.",
        takes=takes,
        gives=lambda: {"type": "object"},
        call=call,
        effect=Effect.DESTROYS,
    )


@dataclass
class Peer:
    """A server for one peer and everything around it."""

    server: McpServer
    script: Script
    audit: FakeAudit
    log: io.StringIO
    gateway: Any
    tools: tuple[Tool, ...]


def new_peer() -> Peer:
    clock, audit, log, script = Clock(), FakeAudit(), io.StringIO(), Script()
    gateway = SimpleNamespace(
        store=SimpleNamespace(authority=SimpleNamespace(follow=anyio.lowlevel.checkpoint)),
        clock=clock,
        ids=Ids(clock),
        audit=audit,
        log=Log(log, clock),
        metrics=Metrics(),
        settings=SimpleNamespace(mcp_api_key="k-made-up"),
        authentication=SimpleNamespace(
            refusals=SimpleNamespace(record=lambda error, context, **more: audit.refuse(error))
        ),
        sign_in_throttle=SimpleNamespace(attempt=lambda account, context, **more: nullcontext()),
        agent_discovery=SimpleNamespace(record_client=lambda client: None),
    )
    tools = (
        _tool("say", Say, script.say),
        _tool("wait", NoArguments, script.wait),
        _tool("refuse", NoArguments, script.refuse),
        _tool("object", NoArguments, script.object),
        _tool("crash", NoArguments, script.crash),
        _tool("garble", NoArguments, script.garble),
        _tool("march", NoArguments, script.march),
    )
    return Peer(McpServer(lambda: cast(Gateway, gateway), tools=tools), script, audit, log, gateway, tools)


@pytest.fixture
def peer() -> Peer:
    return new_peer()
