"""Store policies, and what operators have changed about single rules."""

from gateway.domain.policies import PolicyRecord
from gateway.domain.rule_overrides import RuleOverride
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import AuthorityTable

POLICIES = AuthorityTable(
    "policies",
    PolicyRecord,
    changes=(
        "name", "mode", "block_score", "review_score", "category_actions", "unscannable", "outbound", "tool_injection",
        "capture", "capture_days",
    ),
)  # fmt: skip
BY_NAME = POLICIES.select("WHERE lower(name) = :folded")
OVERRIDES = AuthorityTable("rule_overrides", RuleOverride, key="rule")


class PolicyRepository:
    """The table of policies. A committed change holds in every process."""

    def insert(self, tx: AuthorityTransaction, record: PolicyRecord) -> None:
        """Insert a policy with a name that is not taken."""
        POLICIES.insert(tx, record)

    def all(self, tx: Transaction) -> tuple[PolicyRecord, ...]:
        """Return all policies, oldest first."""
        return POLICIES.all(tx)

    def count(self, tx: Transaction) -> int:
        """Count the policies."""
        return POLICIES.count(tx)

    def find(self, tx: Transaction, id_or_name: str) -> PolicyRecord | None:
        """Return the policy of this id, else of this name, whatever its case."""
        found = POLICIES.find(tx, id_or_name)
        if found is None and id_or_name.isascii():
            found = POLICIES.one(tx, BY_NAME, folded=id_or_name.lower())
        return found

    def change(self, tx: AuthorityTransaction, record: PolicyRecord) -> None:
        """Write all but id and maker, and raise the version."""
        POLICIES.update(tx, record)

    def remove(self, tx: AuthorityTransaction, policy_id: str) -> None:
        """Delete a policy that no key has."""
        POLICIES.delete(tx, policy_id)


class RuleOverrideRepository:
    """The table of overrides. None is deleted, so that versions keep rising."""

    def all(self, tx: Transaction) -> tuple[RuleOverride, ...]:
        """Return all overrides, by rule."""
        return OVERRIDES.all(tx)

    def find(self, tx: Transaction, rule: str) -> RuleOverride | None:
        """Return the override of a rule."""
        return OVERRIDES.find(tx, rule)

    def keep(self, tx: AuthorityTransaction, record: RuleOverride) -> None:
        """Write what holds for a rule from now on."""
        OVERRIDES.put(tx, record)
