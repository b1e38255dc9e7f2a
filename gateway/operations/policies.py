"""The rows of policies on the internal API. The rules are in `services.policies`."""

from dataclasses import dataclass, field

from gateway.domain.policies import PolicyRecord
from gateway.domain.principals import Permission
from gateway.field_types import PlainName
from gateway.operations.rows import Noun
from gateway.services.policies import WantedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPolicy(WantedPolicy):
    """A policy to create. A field that is left out has the default of a gateway without settings."""

    name: PlainName
    version: None = field(default=None, metadata={"json_name": None})


_POLICIES = Noun(
    name="policies",
    path="/api/policies",
    service=lambda gateway: gateway.policies,
    gives=PolicyRecord,
    reads=Permission.POLICIES_READ,
    manages=Permission.POLICIES_MANAGE,
)

POLICY_OPERATIONS = (
    _POLICIES.list("List the policies, oldest first."),
    _POLICIES.create(NewPolicy, "Create a policy: `name`, `mode`?, thresholds?, `category_actions`?, `capture`?."),
    _POLICIES.show("Show one policy, by id or name."),
    _POLICIES.change(
        WantedPolicy,
        "Change a policy; it holds for its keys at their next request. `version` or `If-Match` guards.",
    ),
    _POLICIES.remove("Remove a policy that no key has."),
)
