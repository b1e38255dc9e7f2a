"""The rows of agents, public and internal. Rules are kept in `services.agents`."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.app import Gateway
from gateway.domain.agents import (
    DEFAULT_AGENT_LIMIT,
    MAX_AGENT_LIMIT,
    AgentFilter,
    AgentRisk,
    AgentSource,
    AgentStatus,
    AgentView,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import Answer, ById, Door, Operation, choice, cursor, limit, text
from gateway.schema import Bounds
from gateway.services.agents import MAX_IMPORT, Imported, Name, WantedAgent


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent(WantedAgent):
    """An agent to register."""

    name: Name
    version: None = field(default=None, metadata={"json_name": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """Agents to bring in."""

    agents: Annotated[tuple[NewAgent, ...], Bounds(1, MAX_IMPORT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAgent(WantedAgent):
    """What is to change of the agent `id`."""

    id: str
    name: None = field(default=None, metadata={"json_name": None})


async def list_all(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[AgentView]:
    """Return the inventory as one page."""
    agents = await gateway.agents.all()
    return Page(agents, len(agents), None)


async def find_agents(
    gateway: Gateway, who: Principal, wanted: AgentFilter, context: RequestContext
) -> Page[AgentView]:
    """Return a page of agents."""
    return await gateway.agents.page(wanted)


async def show_agent(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> AgentView:
    """Return one agent."""
    return await gateway.agents.show(command.id)


async def register_agent(gateway: Gateway, who: Principal, command: NewAgent, context: RequestContext) -> AgentView:
    """Register an agent."""
    return await gateway.agents.register(who, command, context)


async def import_agents(gateway: Gateway, who: Principal, command: AgentList, context: RequestContext) -> Imported:
    """Bring in a list of agents."""
    return await gateway.agents.bring_in(who, command.agents, context)


async def change_agent(gateway: Gateway, who: Principal, command: PatchAgent, context: RequestContext) -> AgentView:
    """Change an agent."""
    return await gateway.agents.change(who, command.id, command, context)


PUBLIC_AGENT_OPERATIONS = (
    Operation(
        name="agents.list",
        route=("GET", "/api/v1/agents"),
        door=Door.KEY,
        needs=Scope.AGENTS_READ,
        answer=Answer.PAGE,
        gives=AgentView,
        call=list_all,
        summary="List the agents that use the gateway, newest first, with their last 24 hours.",
    ),
)
AGENT_OPERATIONS = (
    Operation(
        name="agents.find",
        route=("GET", "/api/agents"),
        door=Door.SESSION,
        needs=Permission.AGENTS_READ,
        answer=Answer.PAGE,
        takes=AgentFilter,
        gives=AgentView,
        call=find_agents,
        query=(
            choice("status", AgentStatus, "Where the agent stands."),
            choice("source", AgentSource, "How the gateway came to know it."),
            choice("risk", AgentRisk, "How much it should be looked at."),
            text("search", "Found without regard to case in name, owner, role or tags."),
            limit(MAX_AGENT_LIMIT, DEFAULT_AGENT_LIMIT),
            cursor(),
        ),
        summary="List agents, newest first, with their last 24 hours.",
    ),
    Operation(
        name="agents.register",
        route=("POST", "/api/agents"),
        door=Door.SESSION,
        needs=Permission.AGENTS_MANAGE,
        takes=NewAgent,
        gives=AgentView,
        call=register_agent,
        status=201,
        summary="Register an agent: `name`, `owner`?, `role`?, `model`?, `tools`?, `tags`?, `status`?.",
    ),
    Operation(
        name="agents.import",
        route=("POST", "/api/agents/import"),
        door=Door.SESSION,
        needs=Permission.AGENTS_MANAGE,
        takes=AgentList,
        gives=Imported,
        call=import_agents,
        summary="Bring in a list of `agents`: new ones are made, known ones changed; all of it or nothing.",
    ),
    Operation(
        name="agents.show",
        route=("GET", "/api/agents/{id}"),
        door=Door.SESSION,
        needs=Permission.AGENTS_READ,
        takes=ById,
        gives=AgentView,
        call=show_agent,
        summary="Show one agent.",
    ),
    Operation(
        name="agents.change",
        route=("PATCH", "/api/agents/{id}"),
        door=Door.SESSION,
        needs=Permission.AGENTS_MANAGE,
        takes=PatchAgent,
        gives=AgentView,
        call=change_agent,
        summary="Change an agent: `owner`, `role`, `tags`, …; `status` blocked, retired or active. `version` guards.",
    ),
)
