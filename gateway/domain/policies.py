"""What is done about a verdict: block or observe, withhold or redact, and parts nobody can read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.domain.captures import DEFAULT_CAPTURE_DAYS, Capture
from gateway.shield.detections import Detection, ScanResult, Severity
from gateway.shield.scoring import DEFAULT_POLICY, Action, Policy, verdict_of

UNSCANNABLE_RULE = "unscannable-part"
SECRET_CATEGORIES = frozenset(("secret", "pii", "financial"))


@dataclass(frozen=True, slots=True)
class UnscannedPart:
    """A part of a request or reply that the shield could not read.

    kind: its type in words of the dialect, such as ``image_url``, else ``other``.
    """

    place: str
    kind: str


class ShieldMode(StrEnum):
    """What a BLOCK does: it stops the text, or it is only recorded."""

    BLOCK = "block"
    OBSERVE = "observe"


class Unscannable(StrEnum):
    """What becomes of a request or reply with a part the shield cannot read: passed, at least REVIEW, or BLOCK."""

    ALLOW = "allow"
    REVIEW = "review"
    BLOCK = "block"


class OutboundAction(StrEnum):
    """What an outbound BLOCK does to a choice: a notice in its place, or its matches masked."""

    BLOCK = "block"
    REDACT = "redact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldPolicy:
    """What the operator decided. A request can change none of it.

    scoring: thresholds and weights. tool_injection: whether names, descriptions and schemas of tools are scanned for
    everything; when not, they are scanned for secrets alone. capture, capture_days: what is kept
    of the texts, and for how long.
    """

    mode: ShieldMode = ShieldMode.BLOCK
    unscannable: Unscannable = Unscannable.ALLOW
    outbound: OutboundAction = OutboundAction.BLOCK
    scoring: Policy = DEFAULT_POLICY
    tool_injection: bool = True
    capture: Capture = Capture.NONE
    capture_days: int = DEFAULT_CAPTURE_DAYS


DEFAULT_SHIELD_POLICY = ShieldPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord:
    """A named policy, which keys may have.

    block_score, review_score: least scores for BLOCK and REVIEW. version: rises with every change.
    """

    id: str
    name: str
    mode: ShieldMode = ShieldMode.BLOCK
    block_score: int = DEFAULT_POLICY.block_at
    review_score: int = DEFAULT_POLICY.review_at
    category_actions: Mapping[str, Action] = field(default_factory=dict)
    unscannable: Unscannable = Unscannable.ALLOW
    outbound: OutboundAction = OutboundAction.BLOCK
    tool_injection: bool = True
    capture: Capture = Capture.NONE
    capture_days: int = DEFAULT_CAPTURE_DAYS
    created_at: int
    created_by: str
    version: int = 1

    def shield_policy(self) -> ShieldPolicy:
        """Return what the policy says."""
        scoring = Policy(
            block_at=self.block_score, review_at=self.review_score, category_actions=dict(self.category_actions)
        )
        return ShieldPolicy(
            mode=self.mode,
            unscannable=self.unscannable,
            outbound=self.outbound,
            scoring=scoring,
            tool_injection=self.tool_injection,
            capture=self.capture,
            capture_days=self.capture_days,
        )


def redacted_categories(policy: ShieldPolicy) -> frozenset[str]:
    """Return the categories whose matches are masked, whatever the verdict."""
    return frozenset(name for name, action in policy.scoring.category_actions.items() if action == "redact")


def blocking_redacted(policy: ShieldPolicy) -> Policy:
    """Return the scoring for a text in which something should be masked and cannot be: it weighs like `block`."""
    actions = dict(policy.scoring.category_actions)
    return replace(
        policy.scoring,
        category_actions={name: "block" if action == "redact" else action for name, action in actions.items()},
    )


def secrets_only(policy: Policy) -> Policy:
    """Return the policy for texts in which only secrets, personal and financial data are looked for."""
    wanted = SECRET_CATEGORIES if policy.categories is None else SECRET_CATEGORIES & policy.categories
    return replace(policy, categories=wanted)


def with_unscannable(result: ScanResult, parts: tuple[UnscannedPart, ...], policy: ShieldPolicy) -> ScanResult:
    """Return the result of a text that came with parts that the shield cannot read.

    The parts are a detection of their own, so that traffic and audit show them: how many, the first place, and in
    `view` their kinds. Its share is what the score lacks to the threshold of `review` or `block`, and 0 under `allow`.
    """
    if not parts:
        return result
    scoring = policy.scoring
    least, severity = {
        Unscannable.ALLOW: (0, Severity.LOW),
        Unscannable.REVIEW: (scoring.review_at, Severity.HIGH),
        Unscannable.BLOCK: (scoring.block_at, Severity.CRITICAL),
    }[policy.unscannable]
    share = max(0, least - result.score)
    found = Detection(
        rule=UNSCANNABLE_RULE,
        name="Part that was not scanned",
        category="encoding",
        severity=severity,
        description="A picture, sound or file that the shield cannot read.",
        matched="",
        confidence=1.0,
        score=share,
        count=len(parts),
        start=0,
        end=0,
        view=f"unread:{','.join(sorted({part.kind for part in parts}))}",
        place=parts[0].place,
    )
    score = result.score + share
    detections = (found, *result.detections) if share else (*result.detections, found)
    return ScanResult(verdict_of(score, scoring), score, detections, result.redacted)
