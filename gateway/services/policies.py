"""Named policies, and the policy that applies to a caller."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from gateway.domain.policies import (
    MAX_CAPTURE_DAYS,
    Capture,
    OutboundAction,
    OutboundStream,
    PolicyRecord,
    ShieldMode,
    ShieldPolicy,
    Unscannable,
)
from gateway.domain.principals import Principal
from gateway.errors import Conflict, PermissionDenied
from gateway.field_types import PlainName
from gateway.schema import Bounds, check
from gateway.services.resource import Resource, patched
from gateway.shield.detections import CATEGORIES
from gateway.shield.scoring import HIGHEST_SCORE, Action
from gateway.store.authority import AuthorityTransaction

_NO_POLICY = "The policy of this API key does not exist, so the key is refused. Give the key another policy."

Score = Annotated[int, Bounds(1, HIGHEST_SCORE)]
Actions = Mapping[Annotated[str, Bounds(words=CATEGORIES)], Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPolicy:
    """The fields of a policy. None leaves a field as it is, or gives a new policy the default."""

    name: PlainName | None = None
    mode: ShieldMode | None = None
    block_score: Score | None = None
    review_score: Score | None = None
    category_actions: Actions | None = None
    unscannable: Unscannable | None = None
    outbound: OutboundAction | None = None
    outbound_stream: OutboundStream | None = None
    tool_injection: bool | None = None
    capture: Capture | None = None
    capture_days: Annotated[int, Bounds(1, MAX_CAPTURE_DAYS)] | None = None
    version: int | None = None


class Policies(Resource[PolicyRecord]):
    """The policies of this gateway."""

    noun, nouns = "policy", "policies"
    most = 1000
    name_field = "name"
    is_found_by_name = True
    audited = tuple(one.name for one in fields(WantedPolicy) if one.name != "version")

    def of(self, principal: Principal, default: ShieldPolicy) -> ShieldPolicy:
        """Return the policy of the caller's key, or `default` if the key has none.

        Raises:
            PermissionDenied: the policy of the key does not exist. StoreUnavailable: no policies were read yet.
        """
        if principal.policy is None:
            return default
        policy = self.store.authority.now.policies.get(principal.policy)
        if policy is None:
            raise PermissionDenied(_NO_POLICY)
        return policy

    def draft(self, wanted: WantedPolicy, changed: PolicyRecord | None = None) -> ShieldPolicy:
        """Return the policy that these fields would make of `changed` or of a new one. Raises InvalidRequest."""
        check(wanted)
        new = PolicyRecord(id="", name="draft", created_at=0, created_by="")
        return _checked(changed or new, wanted).shield_policy()

    def _made(self, tx: AuthorityTransaction, new: WantedPolicy) -> PolicyRecord:
        blank = PolicyRecord(**self._born("pol", tx.caller.principal), name="")
        return self._changed(tx, blank, new)

    def _changed(self, tx: AuthorityTransaction, before: PolicyRecord, changes: WantedPolicy) -> PolicyRecord:
        return _checked(before, changes)

    def _check_removal(self, tx: AuthorityTransaction, record: PolicyRecord) -> None:
        if self.store.keys.count_of_policy(tx, record.id, now_at=self.clock.now_at()):
            raise Conflict("API keys have this policy; give them another one first.")


def _checked(record: PolicyRecord, wanted: WantedPolicy) -> PolicyRecord:
    """Return the record with the wanted fields, after the checks that concern several fields."""
    after = patched(record, wanted, name=record.name if wanted.name is None else wanted.name.strip())
    if after.review_score > after.block_score:
        raise Conflict("review_score must not be more than block_score.", param="review_score")
    return after
