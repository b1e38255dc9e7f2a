"""What is kept of what the shield found: in traffic, alerts and audit events. Never a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from gateway.shield.detections import Detection, Direction, Severity
from gateway.shield.redact import MASKED_CATEGORIES

MOST_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One finding's share in the score of a request. name, description: empty for a rule that is no more.

    sha256, chars: of the one text at `place`. matched: the mask of a secret or of personal data. spread: the finding
    stands in other texts as well. What requests of before do not have is None.
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


def described(detections: Sequence[Detection], direction: Direction | None = None) -> list[Mapping[str, object]]:
    """Say of the strongest detections what may be kept, and never a text: of secrets and personal data the mask.

    sha256, chars: of the one text at `place`, in which the span stands. direction: the way that text went.
    """
    return [_described(detection, direction) for detection in detections[:MOST_FINDINGS]]


def _described(detection: Detection, direction: Direction | None) -> Mapping[str, object]:
    told: dict[str, object] = {
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
    return told | {name: value for name, value in more.items() if value}


def ledger_line(found: Mapping[str, object], known: Mapping[str, tuple[str, str]]) -> LedgerLine:
    """Return what is shown of a kept finding. known: names and descriptions of rules by id."""
    rule = str(found.get("rule", ""))
    name, description = known.get(rule, ("", ""))

    def word(field_name: str) -> str | None:
        value = found.get(field_name)
        return value if isinstance(value, str) else None

    def number(field_name: str) -> int:
        value = found.get(field_name)
        return value if isinstance(value, int) else 0

    return LedgerLine(
        rule=rule,
        name=name,
        description=description,
        severity=str(found.get("severity", "")),
        category=str(found.get("category", "")),
        score=number("score"),
        count=number("count"),
        view=str(found.get("view", "")),
        place=word("place"),
        start=number("start"),
        end=number("end"),
        direction=word("direction"),
        sha256=word("sha256"),
        chars=number("chars") or None,
        matched=word("matched"),
        spread=found.get("spread") is True,
        accepted=word("accepted"),
    )


def kept_detection(found: Mapping[str, object]) -> Detection:
    """Return a detection as far as what is kept of it says, to be judged again."""
    known = {"name": "", "description": "", "matched": "", "place": "", "sha256": "", "chars": 0} | dict(found)
    known |= {"severity": Severity(str(found["severity"])), "is_spread": found.get("spread") is True, "accepted": None}
    return Detection(**{field.name: known[field.name] for field in fields(Detection) if field.name in known})  # type: ignore[arg-type]
