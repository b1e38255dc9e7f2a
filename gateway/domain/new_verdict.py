"""The verdict that a stored request would get now. Pure."""

from dataclasses import dataclass

from gateway.shield.detections import Verdict


@dataclass(frozen=True, slots=True)
class RuleShare:
    """The share of a rule in a score."""

    rule: str
    score: int


@dataclass(frozen=True, slots=True)
class NewVerdict:
    """The verdict that a request would get now, and in words. verdict, score: None when they are unknown."""

    request_id: str | None
    verdict: Verdict | None
    score: int | None
    rules: tuple[RuleShare, ...]
    says: str
