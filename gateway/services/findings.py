"""The findings of the shield as traffic, alerts and audit events store them, without any text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from gateway.llm.base import Leaf, LeafKind
from gateway.llm.joined import digest_of
from gateway.shield.detections import MASKED_CATEGORIES, Detection, Direction, Effect, ScanResult, Severity

MOST_FINDINGS = 20
_STORED = ("rule", "severity", "category", "confidence", "score", "count", "start", "end", "view")
_STORED_IF_SET = ("place", "sha256", "chars", "accepted", "secret", "effect", "points", "label", "elapsed_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One finding's share in the score of a request. name, description: empty for a rule that is no more.

    sha256, chars: of the one text at `place`. matched: the mask of a secret or of personal data. secret: the keyed hash
    of that. spread: whether other texts have the finding too. label, elapsed_ms: what a detector said, and how long it
    took. A field that an earlier version did not store has its default.
    """

    rule: str = ""
    name: str
    description: str
    severity: str = ""
    category: str = ""
    score: int = 0
    count: int = 0
    view: str = ""
    place: str | None = None
    start: int = 0
    end: int = 0
    direction: str | None = None
    sha256: str | None = None
    chars: int | None = None
    matched: str | None = None
    secret: str | None = None
    spread: bool = False
    accepted: str | None = None
    confidence: float | None = None
    label: str | None = None
    elapsed_ms: float | None = None


def described(detections: Sequence[Detection], direction: Direction | None = None) -> list[Mapping[str, object]]:
    """Return what may be stored of the strongest detections: no text, but the mask of secrets and personal data.

    sha256, chars: of the one text at `place`, which contains the span. direction: of that text.
    """
    return [_described(detection, direction) for detection in detections[:MOST_FINDINGS]]


def _described(detection: Detection, direction: Direction | None) -> Mapping[str, object]:
    shown = {name: getattr(detection, name) for name in _STORED} | {"severity": detection.severity.value}
    more = {name: getattr(detection, name) for name in _STORED_IF_SET} | {
        "direction": direction and direction.value,
        "matched": detection.matched if detection.category in MASKED_CATEGORIES else "",
        "spread": detection.is_spread,
    }
    return shown | {name: value for name, value in more.items() if value}


def text_at_fault(result: ScanResult, leaves: Sequence[Leaf]) -> tuple[str, int]:
    """Return SHA-256 and length of the one text with the strongest detection, else of the conversation."""
    if result.detections and result.detections[0].sha256:
        return result.detections[0].sha256, result.detections[0].chars
    text = "\n".join(leaf.text for leaf in leaves if leaf.kind is LeafKind.CONTENT and not leaf.view)
    return digest_of(text), len(text)


def ledger_line(found: Mapping[str, object], known: Mapping[str, tuple[str, str]]) -> LedgerLine:
    """Return the line of a stored finding. known: names and descriptions of rules by id."""
    name, description = known.get(str(found.get("rule")), ("", ""))
    stored = {field.name: found[field.name] for field in fields(LedgerLine) if field.name in found}
    return LedgerLine(**stored | {"name": name, "description": description})  # type: ignore[arg-type]


def kept_detection(found: Mapping[str, object]) -> Detection:
    """Return the detection of a stored finding, to score it again."""
    known = {"name": "", "description": "", "matched": "", "place": "", "sha256": "", "chars": 0} | dict(found)
    known |= {"severity": Severity(str(found["severity"])), "is_spread": found.get("spread") is True, "accepted": None}
    known |= {"effect": Effect(str(found["effect"]))} if "effect" in found else {}
    return Detection(**{field.name: known[field.name] for field in fields(Detection) if field.name in known})  # type: ignore[arg-type]
