"""The rows of policies on the internal API. Rules are kept in `services.policies`."""

from dataclasses import dataclass, field

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.policies import PolicyRecord
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.field_types import PlainName
from gateway.operations.operation import Answer, ById, Door, Operation
from gateway.services.policies import WantedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPolicy(WantedPolicy):
    """A policy to be made; what is left out is as in a gateway without settings."""

    name: PlainName
    version: None = field(default=None, metadata={"json_name": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPolicy(WantedPolicy):
    """What is to change of the policy `id`."""

    id: str


async def list_policies(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[PolicyRecord]:
    """Return all policies as one page."""
    records = await gateway.policies.list()
    return Page(records, len(records), None)


async def create_policy(gateway: Gateway, who: Principal, command: NewPolicy, context: RequestContext) -> PolicyRecord:
    """Make a policy."""
    return await gateway.policies.create(who, command, context)


async def show_policy(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> PolicyRecord:
    """Return one policy."""
    return await gateway.policies.show(command.id)


async def change_policy(
    gateway: Gateway, who: Principal, command: PatchPolicy, context: RequestContext
) -> PolicyRecord:
    """Change a policy."""
    return await gateway.policies.change(who, command.id, command, context)


async def remove_policy(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> PolicyRecord:
    """Remove a policy and show it a last time."""
    return await gateway.policies.remove(who, command.id, context)


POLICY_OPERATIONS = (
    Operation(
        name="policies.list",
        route=("GET", "/api/policies"),
        door=Door.SESSION,
        needs=Permission.POLICIES_READ,
        answer=Answer.PAGE,
        gives=PolicyRecord,
        call=list_policies,
        summary="List the policies, oldest first.",
    ),
    Operation(
        name="policies.create",
        route=("POST", "/api/policies"),
        door=Door.SESSION,
        needs=Permission.POLICIES_MANAGE,
        takes=NewPolicy,
        gives=PolicyRecord,
        call=create_policy,
        status=201,
        summary="Create a policy: `name`, `mode`?, thresholds?, `category_actions`?, `capture`?.",
    ),
    Operation(
        name="policies.show",
        route=("GET", "/api/policies/{id}"),
        door=Door.SESSION,
        needs=Permission.POLICIES_READ,
        takes=ById,
        gives=PolicyRecord,
        call=show_policy,
        summary="Show one policy, by id or name.",
    ),
    Operation(
        name="policies.change",
        route=("PATCH", "/api/policies/{id}"),
        door=Door.SESSION,
        needs=Permission.POLICIES_MANAGE,
        takes=PatchPolicy,
        gives=PolicyRecord,
        call=change_policy,
        summary="Change a policy; it holds for its keys at their next request. `version` or `If-Match` guards.",
    ),
    Operation(
        name="policies.remove",
        route=("DELETE", "/api/policies/{id}"),
        door=Door.SESSION,
        needs=Permission.POLICIES_MANAGE,
        takes=ById,
        gives=PolicyRecord,
        call=remove_policy,
        summary="Remove a policy that no key has.",
    ),
)
