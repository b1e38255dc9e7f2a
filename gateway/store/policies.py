"""Store policies, and what operators have changed about single rules."""

from gateway.domain.policies import PolicyRecord, RuleOverride
from gateway.store.table import AuthorityTable


class PolicyRepository(AuthorityTable[PolicyRecord]):
    """The table of policies."""

    def __init__(self) -> None:
        super().__init__("policies", PolicyRecord)


class RuleOverrideRepository(AuthorityTable[RuleOverride]):
    """The table of overrides. None is removed, so that versions keep rising."""

    def __init__(self) -> None:
        super().__init__("rule_overrides", RuleOverride, key="rule")
