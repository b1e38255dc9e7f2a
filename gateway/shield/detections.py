"""The records of a scan: direction, severity, verdict, detection, result; and the masks of what no record may show."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a record of `cls` that nobody changes: the type checker alone sees to it, which makes it cheap to make."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


MASKED_CATEGORIES = frozenset(("secret", "pii", "financial"))
_SHOWN_CHARS = 4
_LONGEST_MATCHED_CHARS = 200


class Direction(StrEnum):
    """Which way a text goes: inbound to the model, outbound from it."""

    INBOUND = "inbound"
    OUTBOUND = "outbound"


class Severity(StrEnum):
    """How grave a match of a rule is."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Verdict(StrEnum):
    """What the shield says of a text."""

    ALLOW = "ALLOW"
    REVIEW = "REVIEW"
    BLOCK = "BLOCK"


class Effect(StrEnum):
    """What a detection does to the score that does not count by its severity.

    OBSERVE: nothing. POINTS: it adds its points. REVIEW, VETO: it lifts the score to the policy's threshold of REVIEW
    or BLOCK.
    """

    OBSERVE = "observe"
    POINTS = "points"
    REVIEW = "review"
    VETO = "veto"


CATEGORIES = (
    "injection",
    "jailbreak",
    "extraction",
    "indirect",
    "tool_abuse",
    "command",
    "sensitive_path",
    "exfiltration",
    "c2",
    "social_engineering",
    "encoding",
    "steganography",
    "secret",
    "pii",
    "financial",
)


@record
class Detection:
    """One rule's matches in one text, reported at the first of them.

    rule, name, category, severity, description, confidence, standards: the rule's own; severity is lower, and the
    description says so, where what was matched is only talked about.
    matched: the text matched, masked when the category is secret, pii or financial.
    score: this rule's share of the scan's score, in points.
    count: how often the rule matched; informs and does not multiply.
    start, end: half-open span in code points of the text as sent, before normalization.
    view: how the text was read when the rule matched: ``text``, ``normalized``, ``base64``, ``base64>url`` …
    place: where in a structured request the text stood, such as ``messages[1].content``; empty for a plain text.
    accepted: id of the risk acceptance that takes it out of the score, or None.
    spans: of all matches of the rule, where there are several and not too many.
    sha256, chars: hash and length of the one text it stands in, once somebody has said which that is.
    is_spread: it may stand in other texts than this one as well, so that this text alone does not account for it.
    secret: a keyed hash of what a masked match shows only in part, so that the same secret is known again.
    effect, points: of a detection that is not scored by its severity. label, elapsed_ms: of a detector, what it said
    and how long it took.
    """

    rule: str
    name: str
    category: str
    severity: Severity
    description: str
    matched: str = ""
    confidence: float = 1.0
    score: int = 0
    count: int = 1
    start: int = 0
    end: int = 0
    view: str = "text"
    standards: tuple[str, ...] = ()
    place: str = ""
    accepted: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    sha256: str = ""
    chars: int = 0
    is_spread: bool = False
    secret: str = ""
    effect: Effect | None = None
    points: int = 0
    label: str = ""
    elapsed_ms: float = 0.0


@record
class ScanResult:
    """What one scan found.

    score: 0 to 100. verdict: the score against the policy's two thresholds.
    detections: strongest first, then by place in the text.
    redacted: the text with secret matches masked, or None when there is nothing to mask.
    """

    verdict: Verdict
    score: int
    detections: tuple[Detection, ...] = ()
    redacted: str | None = None

    def stats(self) -> Mapping[str, object]:
        """Count the detections: `total`, one count a severity, and `categories`."""
        severities = {severity.value: 0 for severity in Severity}
        categories: dict[str, int] = {}
        for detection in self.detections:
            severities[detection.severity.value] += 1
            categories[detection.category] = categories.get(detection.category, 0) + 1
        return {"total": len(self.detections), **severities, "categories": categories}


def mask(secret: str) -> str:
    """Show the first four characters, fewer of a short secret, and the length: ``AKIA…(20)``."""
    shown = min(_SHOWN_CHARS, len(secret) // 3)
    return f"{secret[:shown]}…({len(secret)})"


def matched_of(text: str, category: str) -> str:
    """Return a match as a detection may show it: masked, or cut to 200 characters."""
    return mask(text) if category in MASKED_CATEGORIES else text[:_LONGEST_MATCHED_CHARS]


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, overlapping ones as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def redact_spans(text: str, spans: Iterable[tuple[int, int]]) -> str | None:
    """Mask every span of `text`, overlapping ones as one. None when there is no span."""
    parts = []
    done = 0
    for start, end in merged(spans):
        parts += [text[done:start], mask(text[start:end])]
        done = end
    return "".join(parts) + text[done:] if parts else None


def redact(text: str, detections: Iterable[Detection]) -> str:
    """Mask the reported match of every detection whose category is secret, pii or financial."""
    spans = ((found.start, found.end) for found in detections if found.category in MASKED_CATEGORIES)
    return redact_spans(text, spans) or text
