"""Risk acceptances: detections that a person has accepted until a date. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from gateway.shield.detections import Detection, ScanResult
from gateway.shield.scoring import Policy, judge

MAX_DAYS = 90
MAX_ACCEPTANCES = 1000
MAX_PROPOSED = 200
MAX_ACCEPTANCE_LIMIT = 500
DAY_MS = 86_400_000
AcceptanceStatus = Literal["proposed", "active", "expired", "revoked", "declined"]


class AcceptanceScope(StrEnum):
    """The extent of an acceptance: one finding, or a rule for one agent, one key, the keys of a policy, or everyone."""

    FINDING = "finding"
    RULE_AGENT = "rule_agent"
    RULE_KEY = "rule_key"
    RULE_POLICY = "rule_policy"
    RULE = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskAcceptance:
    """One acceptance. Times in Unix milliseconds.

    digest: for ``finding``, the SHA-256 (64 hex digits) of the message, reply or field with the finding, as in alerts
    and audit events. It covers exactly this text, in both directions. agent: for ``rule_agent``. key: the id of an API
    key and its rotations: of ``rule_key``, and of an agent, because callers name their agents themselves. policy: an
    id, for ``rule_policy``. request: the id of the harmless request it was made for. is_proposed: nobody has approved
    it yet, so it covers nothing; accepted_at and accepted_by are then those of the proposal. proposed_by: who proposed
    what another person approved. version: rises with every change.
    """

    id: str
    scope: AcceptanceScope
    rule: str
    agent: str | None = None
    key: str | None = None
    policy: str | None = None
    digest: str | None = None
    request: str | None = None
    reason: str
    accepted_at: int
    accepted_by: str
    until_at: int = field(metadata={"json_name": "until"})
    revoked_at: int | None = None
    revoked_by: str | None = None
    is_proposed: bool = field(default=False, metadata={"json_name": None})
    proposed_by: str | None = None
    version: int = 1

    def status_at(self, now_at: int) -> AcceptanceStatus:
        if self.revoked_at is not None:
            return "declined" if self.is_proposed else "revoked"
        if self.until_at <= now_at:
            return "expired"
        return "proposed" if self.is_proposed else "active"

    def covers(self, found: Detection, *, source: "Source", now_at: int) -> bool:
        """Return whether a finding in a text from this source is accepted at `now_at`."""
        if found.rule != self.rule or self.status_at(now_at) != "active":
            return False
        match self.scope:
            case AcceptanceScope.RULE:
                return True
            case AcceptanceScope.RULE_AGENT:
                return source.agent == self.agent and self.key in (None, source.key)
            case AcceptanceScope.RULE_KEY:
                return source.key == self.key
            case AcceptanceScope.RULE_POLICY:
                return source.policy == self.policy
            case AcceptanceScope.FINDING:
                return bool(found.sha256) and not found.is_spread and found.sha256 == self.digest


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a text. agent: as in traffic. key: the lineage of the API key, or None. policy: of the key."""

    agent: str
    key: str | None
    policy: str | None = None


def accept(
    result: ScanResult, acceptances: Iterable[RiskAcceptance], policy: Policy, *, source: Source, now_at: int
) -> ScanResult:
    """Return `result` with accepted detections marked, and the verdict without them. Masked text stays masked.

    The detections must have the hashes of their texts.
    """
    known = tuple(acceptances)

    def marked(found: Detection) -> Detection:
        by = next((one.id for one in known if one.covers(found, source=source, now_at=now_at)), None)
        return found if by is None else replace(found, accepted=by)

    detections = tuple(marked(found) for found in result.detections)
    if detections == result.detections:
        return result
    return judge(detections, policy, redacted=result.redacted)
