"""The rows of agents, public and internal. The rules are in `services.agents`."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.domain.agents import (
    AGENT_SORTS,
    MAX_AGENT_LIMIT,
    AgentFilter,
    AgentRisk,
    AgentSource,
    AgentStatus,
    AgentView,
)
from gateway.domain.principals import Permission, Scope
from gateway.operations.operation import choice, text
from gateway.operations.rows import Noun, paging, public
from gateway.schema import Bounds
from gateway.services.agents import MAX_IMPORT, Imported, Name, WantedAgent


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent(WantedAgent):
    """An agent to register."""

    name: Name
    version: None = field(default=None, metadata={"json_name": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """Agents to import."""

    agents: Annotated[tuple[NewAgent, ...], Bounds(1, MAX_IMPORT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAgent(WantedAgent):
    """Changes of an agent, whose name stays."""

    name: None = field(default=None, metadata={"json_name": None})


_AGENTS = Noun("agents", AgentView, Permission.AGENTS_READ, Permission.AGENTS_MANAGE)

PUBLIC_OPERATIONS = (
    public(
        _AGENTS.list("List the agents that use the gateway, newest first, with their last 24 hours.", method="views"),
        "agents.list",
        Scope.AGENTS_READ,
    ),
)
OPERATIONS = (
    _AGENTS.list(
        "List agents, newest first, with their last 24 hours.",
        verb="find",
        takes=AgentFilter,
        query=(
            choice("status", AgentStatus, "The status of the agent."),
            choice("source", AgentSource, "How the gateway learned of it."),
            choice("risk", AgentRisk, "How much attention it needs."),
            text("search", "Text in name, owner, role or tags, in any case."),
            *paging(MAX_AGENT_LIMIT, sorts=AGENT_SORTS),
        ),
    ),
    _AGENTS.create(
        NewAgent,
        "Register an agent: `name`, `owner`?, `role`?, `model`?, `tools`?, `tags`?, `status`?.",
        verb="register",
        method="register",
    ),
    _AGENTS.row(
        "import",
        "POST /import",
        "Import a list of `agents`: creates new ones, changes known ones; all of them or none.",
        takes=AgentList,
        gives=Imported,
        call=lambda gateway, caller, command: gateway.agents.import_list(caller, command.agents),
    ),
    _AGENTS.show("Show one agent.", method="view"),
    _AGENTS.change(
        PatchAgent,
        "Change an agent: `owner`, `role`, `tags`, …; `status` blocked, retired or active. `version` guards.",
    ),
)
