"""Records of security scans, which an operator runs over files. No text: only hash, place and rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.shield.detections import Verdict

MAX_SCANS = 100
KEPT_SCANS = 500

ItemKind = Literal["prompt", "tool", "config", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedItem:
    """The result for one text. detections: JSON objects with rule, severity, place and line, never the matched text.

    error: the reason why the text could not be read, or None.
    """

    name: str
    kind: ItemKind
    sha256: str | None
    chars: int
    verdict: Verdict | None
    score: int | None
    detections: tuple[Mapping[str, object], ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScan:
    """One run. verdict, score: the highest of its items. unreadable: items that could not be read."""

    id: str
    occurred_at: int
    started_by: str
    verdict: Verdict
    score: int
    scanned: int
    blocked: int
    reviewed: int
    unreadable: int
    detections: int
    items: tuple[ScannedItem, ...]


def security_scan(run_id: str, items: tuple[ScannedItem, ...], *, occurred_at: int, started_by: str) -> SecurityScan:
    """Return the run with these `items`, sorted by score, the highest first."""
    score = max((item.score or 0 for item in items), default=0)
    verdicts = [item.verdict for item in items]
    order = (Verdict.BLOCK, Verdict.REVIEW, Verdict.ALLOW)
    return SecurityScan(
        id=run_id,
        occurred_at=occurred_at,
        started_by=started_by,
        verdict=next((verdict for verdict in order if verdict in verdicts), Verdict.ALLOW),
        score=score,
        scanned=sum(item.error is None for item in items),
        blocked=verdicts.count(Verdict.BLOCK),
        reviewed=verdicts.count(Verdict.REVIEW),
        unreadable=sum(item.error is not None for item in items),
        detections=sum(len(item.detections) for item in items),
        items=tuple(sorted(items, key=lambda item: -(item.score or 0))),
    )
