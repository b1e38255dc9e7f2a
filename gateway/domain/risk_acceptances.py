"""Risk acceptances: what somebody answers for, until when, and what that covers. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from gateway.shield.detections import Detection, ScanResult
from gateway.shield.scoring import Policy, judge

MAX_DAYS = 90
MAX_ACCEPTANCES = 1000
DAY_MS = 86_400_000


class AcceptanceScope(StrEnum):
    """How much is accepted: one finding, a rule for one agent, or a rule for everybody."""

    FINDING = "finding"
    RULE_AGENT = "rule_agent"
    RULE = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskAcceptance:
    """One acceptance. Times in Unix milliseconds.

    digest: of a finding's text, 64 hex digits: the SHA-256 of the one message, reply or field it stands in, as alerts
    and audit events have it. It holds wherever just this text stands, in either direction, and for no other.
    agent: for ``rule_agent``; callers name their agents themselves, so `key`, the id of an API key, narrows it to that
    key and those that take its place.
    version: rises with every change.
    """

    id: str
    scope: AcceptanceScope
    rule: str
    agent: str | None = None
    key: str | None = None
    digest: str | None = None
    reason: str
    accepted_at: int
    accepted_by: str
    until_at: int
    revoked_at: int | None = None
    revoked_by: str | None = None
    version: int = 1

    def status(self, now_at: int) -> Literal["active", "expired", "revoked"]:
        """Return the state at `now_at`."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.until_at > now_at else "expired"

    def covers(self, found: Detection, *, source: "Source", now_at: int) -> bool:
        """Tell whether a finding in a text of this source is accepted at `now_at`."""
        if found.rule != self.rule or self.status(now_at) != "active":
            return False
        match self.scope:
            case AcceptanceScope.RULE:
                return True
            case AcceptanceScope.RULE_AGENT:
                return source.agent == self.agent and self.key in (None, source.key)
            case AcceptanceScope.FINDING:
                return bool(found.sha256) and not found.is_spread and found.sha256 == self.digest


@dataclass(frozen=True, slots=True)
class Source:
    """Where a text came from. agent: as traffic shows it. key: the first of the key's row of rotations, or None."""

    agent: str
    key: str | None


def accept(
    result: ScanResult,
    acceptances: Iterable[RiskAcceptance],
    policy: Policy,
    *,
    source: Source,
    now_at: int,
) -> ScanResult:
    """Return `result` with what is accepted marked, and judged without it. What is masked stays masked.

    What was found must be placed in its texts, so that it has their hashes.
    """
    known = tuple(acceptances)

    def marked(found: Detection) -> Detection:
        for one in known:
            if one.covers(found, source=source, now_at=now_at):
                return replace(found, accepted=one.id)
        return found

    detections = tuple(marked(found) for found in result.detections)
    if detections == result.detections:
        return result
    return judge(detections, policy, redacted=result.redacted)
