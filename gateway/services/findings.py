"""The findings of the shield as traffic, alerts and audit events store them, without any text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gateway.shield.detections import Detection, Direction, Severity
from gateway.shield.redact import MASKED_CATEGORIES

MOST_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One finding's share in the score of a request. name, description: empty for a rule that is no more.

    sha256, chars: of the one text at `place`. matched: the mask of a secret or of personal data. spread: whether other
    texts have the finding too. Fields that earlier versions did not store are None.
    """

    rule: str
    name: str
    description: str
    severity: str
    category: str
    score: int
    count: int
    view: str
    place: str | None
    start: int
    end: int
    direction: str | None
    sha256: str | None
    chars: int | None
    matched: str | None
    spread: bool
    accepted: str | None


_LINE: dict[str, Any] = {
    **dict.fromkeys(("severity", "category", "view"), ""),
    **dict.fromkeys(("score", "count", "start", "end"), 0),
    **dict.fromkeys(("place", "direction", "sha256", "chars", "matched", "accepted"), None),
    "spread": False,
}
"""The fields of a line that are stored, with their values where an earlier version did not store them."""


def described(detections: Sequence[Detection], direction: Direction | None = None) -> list[Mapping[str, object]]:
    """Return what may be stored of the strongest detections: no text, but the mask of secrets and personal data.

    sha256, chars: of the one text at `place`, which contains the span. direction: of that text.
    """
    return [_described(detection, direction) for detection in detections[:MOST_FINDINGS]]


def _described(detection: Detection, direction: Direction | None) -> Mapping[str, object]:
    shown: dict[str, object] = {
        "rule": detection.rule,
        "severity": str(detection.severity),
        "category": detection.category,
        "confidence": detection.confidence,
        "score": detection.score,
        "count": detection.count,
        "start": detection.start,
        "end": detection.end,
        "view": detection.view,
    }
    more = {
        "direction": direction and str(direction),
        "place": detection.place,
        "sha256": detection.sha256,
        "chars": detection.chars,
        "matched": detection.matched if detection.category in MASKED_CATEGORIES else "",
        "spread": detection.is_spread,
        "accepted": detection.accepted,
    }
    return shown | {name: value for name, value in more.items() if value}


def ledger_line(found: Mapping[str, object], known: Mapping[str, tuple[str, str]]) -> LedgerLine:
    """Return the line of a stored finding. known: names and descriptions of rules by id."""
    rule = str(found.get("rule", ""))
    name, description = known.get(rule, ("", ""))
    stored = _LINE | {field: value for field, value in found.items() if field in _LINE}
    return LedgerLine(rule=rule, name=name, description=description, **stored)


def kept_detection(found: Mapping[str, object]) -> Detection:
    """Return the detection of a stored finding, to score it again."""
    known = {"name": "", "description": "", "matched": "", "place": "", "sha256": "", "chars": 0} | dict(found)
    known |= {"severity": Severity(str(found["severity"])), "is_spread": found.get("spread") is True, "accepted": None}
    return Detection(**{field.name: known[field.name] for field in fields(Detection) if field.name in known})  # type: ignore[arg-type]
