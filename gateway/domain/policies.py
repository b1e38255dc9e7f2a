"""Policies: what the gateway does about a verdict, about parts it cannot scan, and which texts it captures. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.records import project
from gateway.shield.detections import CATEGORIES, Detection, Direction, Effect, ScanResult, Severity
from gateway.shield.scoring import DEFAULT_POLICY, Action, Policy, judge

UNSCANNABLE_RULE = "unscannable-part"
SECRET_CATEGORIES = frozenset(("secret", "pii", "financial"))
MAX_REASON_CHARS = 500
MAX_CAPTURE_CHARS = 20_000
DEFAULT_CAPTURE_DAYS = 7
MAX_CAPTURE_DAYS = 365
MASKING = Policy(category_actions=dict.fromkeys(sorted(CATEGORIES), "redact"))
"""A scan under this policy masks the matches of every rule."""


@dataclass(frozen=True, slots=True)
class UnscannedPart:
    """A part of a request or reply that the shield cannot scan.

    kind: its type in the dialect, such as ``image_url``, or ``other``.
    """

    place: str
    kind: str


class ShieldMode(StrEnum):
    """The effect of a BLOCK verdict: the gateway stops the text, or only records the verdict."""

    BLOCK = "block"
    OBSERVE = "observe"


class Unscannable(StrEnum):
    """The verdict on a request or reply with an unscannable part: as without it, at least REVIEW, or BLOCK."""

    ALLOW = "allow"
    REVIEW = "review"
    BLOCK = "block"


class OutboundAction(StrEnum):
    """The effect of an outbound BLOCK on a choice: a notice replaces it, or its matches are masked."""

    BLOCK = "block"
    REDACT = "redact"


class OutboundStream(StrEnum):
    """How a streamed reply leaves: its text while it grows, as far as that is settled, or all of it at its end."""

    HELD = "held"
    WHOLE = "whole"


class Capture(StrEnum):
    """What the gateway stores of a text beside its hash: nothing, the text with all matches masked, or the text."""

    NONE = "none"
    REDACTED = "redacted"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldPolicy:
    """The operator's decisions. A request cannot change them.

    scoring: thresholds and weights. tool_injection: whether names, descriptions and schemas of tools are scanned by
    all rules, or only for secrets. capture, capture_days: what is stored of the texts, and for how long.
    """

    mode: ShieldMode = ShieldMode.BLOCK
    unscannable: Unscannable = Unscannable.ALLOW
    outbound: OutboundAction = OutboundAction.BLOCK
    outbound_stream: OutboundStream = OutboundStream.HELD
    scoring: Policy = DEFAULT_POLICY
    tool_injection: bool = True
    capture: Capture = Capture.NONE
    capture_days: int = DEFAULT_CAPTURE_DAYS


DEFAULT_SHIELD_POLICY = ShieldPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord:
    """A named policy that can be assigned to keys.

    block_score, review_score: lowest scores for BLOCK and REVIEW. version: rises with every change.
    """

    id: str
    name: str
    mode: ShieldMode = ShieldMode.BLOCK
    block_score: int = DEFAULT_POLICY.block_at
    review_score: int = DEFAULT_POLICY.review_at
    category_actions: Mapping[str, Action] = field(default_factory=dict)
    unscannable: Unscannable = Unscannable.ALLOW
    outbound: OutboundAction = OutboundAction.BLOCK
    outbound_stream: OutboundStream = OutboundStream.HELD
    tool_injection: bool = True
    capture: Capture = Capture.NONE
    capture_days: int = DEFAULT_CAPTURE_DAYS
    created_at: int
    created_by: str
    version: int = 1

    def shield_policy(self) -> ShieldPolicy:
        scoring = Policy(self.block_score, self.review_score, category_actions=dict(self.category_actions))
        return project(ShieldPolicy, self, scoring=scoring)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOverride:
    """An operator's change to one rule of the rule file.

    enabled: False takes the rule out of every scan. severity: replaces that of the file; None keeps it.
    """

    rule: str
    enabled: bool
    severity: Severity | None
    reason: str | None
    changed_at: int
    changed_by: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class KeptText:
    """A captured text, as it is stored and as the API shows it. is_cut: the text was longer."""

    direction: Direction
    mode: Capture
    text: str
    is_cut: bool
    expires_at: int


def cut(text: str, *, direction: Direction, mode: Capture, expires_at: int) -> KeptText:
    """Return a text that any database stores: at most `MAX_CAPTURE_CHARS` long, lone surrogates and NUL replaced."""
    kept = text[:MAX_CAPTURE_CHARS].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    return KeptText(direction, mode, kept, len(text) > MAX_CAPTURE_CHARS, expires_at)


def with_places(texts: Iterable[tuple[str, str]]) -> str:
    """Join ``(place, text)`` pairs into one text, with each place as a heading."""
    return "\n\n".join(f"[{place}]\n{text}" for place, text in texts)


def redacted_categories(policy: ShieldPolicy) -> frozenset[str]:
    """Return the categories whose matches are masked under every verdict."""
    return frozenset(name for name, action in policy.scoring.category_actions.items() if action == "redact")


def blocking_redacted(policy: ShieldPolicy) -> Policy:
    """Return the scoring for a text whose matches cannot be masked: the action `redact` becomes `block`."""
    actions = policy.scoring.category_actions.items()
    blocking = {name: "block" if action == "redact" else action for name, action in actions}
    return replace(policy.scoring, category_actions=blocking)


def secrets_only(policy: Policy) -> Policy:
    """Return the policy restricted to secrets, personal and financial data."""
    wanted = SECRET_CATEGORIES if policy.categories is None else SECRET_CATEGORIES & policy.categories
    return replace(policy, categories=wanted)


def with_unscannable(result: ScanResult, parts: tuple[UnscannedPart, ...], policy: ShieldPolicy) -> ScanResult:
    """Return the result of a text that came with unscannable parts.

    One detection stands for the parts, so that traffic and audit show their number, the place of the first, and their
    kinds in `view`. Its share lifts the score to the threshold of `review` or `block`; it is 0 under `allow`.
    """
    if not parts:
        return result
    effect, severity = {
        Unscannable.ALLOW: (Effect.OBSERVE, Severity.LOW),
        Unscannable.REVIEW: (Effect.REVIEW, Severity.HIGH),
        Unscannable.BLOCK: (Effect.VETO, Severity.CRITICAL),
    }[policy.unscannable]
    found = Detection(
        rule=UNSCANNABLE_RULE,
        name="Part that was not scanned",
        category="encoding",
        severity=severity,
        description="A picture, sound or file that the shield cannot read.",
        effect=effect,
        count=len(parts),
        view=f"unread:{','.join(sorted({part.kind for part in parts}))}",
        place=parts[0].place,
    )
    return judge((*result.detections, found), policy.scoring, redacted=result.redacted)
