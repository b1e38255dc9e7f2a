"""The rows of agents, public and internal. Rules are kept in `services.agents`."""

from dataclasses import dataclass
from typing import Annotated

from gateway.app import Gateway
from gateway.domain.agents import (
    DEFAULT_AGENT_LIMIT,
    MAX_AGENT_LIMIT,
    MAX_NAME_CHARS,
    MAX_TAGS,
    MAX_TOOLS,
    AgentFilter,
    AgentRisk,
    AgentSource,
    AgentStatus,
    AgentView,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.forms import line
from gateway.operations.operation import Answer, ById, Door, Operation, choice, cursor, limit, text
from gateway.schema import Bounds
from gateway.services.agents import MAX_IMPORT, Imported, WantedAgent, WantedStatus

_Name = Annotated[str, line(MAX_NAME_CHARS), "Kept in Unicode's form NFC, without blanks around it."]
_NameOrNone = Annotated[str, line(MAX_NAME_CHARS, 0), "The empty text takes it away."]
_Tools = Annotated[tuple[_Name, ...], Bounds(0, MAX_TOOLS)]
_Tags = Annotated[tuple[_Name, ...], Bounds(0, MAX_TAGS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """An agent to register."""

    name: _Name
    owner: _NameOrNone | None = None
    role: _NameOrNone | None = None
    model: _NameOrNone | None = None
    tools: _Tools | None = None
    tags: _Tags | None = None
    status: WantedStatus | None = None

    def wanted(self) -> WantedAgent:
        """Return it as the service takes it."""
        return WantedAgent(
            name=self.name,
            owner=self.owner,
            role=self.role,
            model=self.model,
            tools=self.tools,
            tags=self.tags,
            status=self.status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """Agents to bring in."""

    agents: Annotated[tuple[NewAgent, ...], Bounds(1, MAX_IMPORT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAgent:
    """What is to change of the agent `id`."""

    id: str
    owner: _NameOrNone | None = None
    role: _NameOrNone | None = None
    model: _NameOrNone | None = None
    tools: _Tools | None = None
    tags: _Tags | None = None
    status: WantedStatus | None = None
    version: int | None = None


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
    return await gateway.agents.register(who, command.wanted(), context)


async def import_agents(gateway: Gateway, who: Principal, command: AgentList, context: RequestContext) -> Imported:
    """Bring in a list of agents."""
    return await gateway.agents.bring_in(who, [one.wanted() for one in command.agents], context)


async def change_agent(gateway: Gateway, who: Principal, command: PatchAgent, context: RequestContext) -> AgentView:
    """Change an agent."""
    wanted = WantedAgent(
        owner=command.owner,
        role=command.role,
        model=command.model,
        tools=command.tools,
        tags=command.tags,
        status=command.status,
        version=command.version,
    )
    return await gateway.agents.change(who, command.id, wanted, context)


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
