"""Mask what must not be shown: matches of secrets, personal and financial data. Decides nothing about them."""

from collections.abc import Iterable

from gateway.shield.detections import Detection

MASKED_CATEGORIES = frozenset(("secret", "pii", "financial"))
_SHOWN_CHARS = 4
_LONGEST_MATCHED_CHARS = 200


def mask(secret: str) -> str:
    """Show the first four characters, fewer of a short secret, and the length: ``AKIA…(20)``."""
    shown = min(_SHOWN_CHARS, len(secret) // 3)
    return f"{secret[:shown]}…({len(secret)})"


def matched_of(text: str, category: str) -> str:
    """Return a match as a detection may show it: masked, or cut to 200 characters."""
    return mask(text) if category in MASKED_CATEGORIES else text[:_LONGEST_MATCHED_CHARS]


def redact_spans(text: str, spans: Iterable[tuple[int, int]]) -> str | None:
    """Mask every span of `text`, overlapping ones as one. None when there is no span."""
    parts = []
    done = 0
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    if not merged:
        return None
    for start, end in merged:
        parts += [text[done:start], mask(text[start:end])]
        done = end
    return "".join(parts) + text[done:]


def redact(text: str, detections: Iterable[Detection]) -> str:
    """Mask the reported match of every detection whose category is secret, pii or financial."""
    spans = ((found.start, found.end) for found in detections if found.category in MASKED_CATEGORIES)
    return redact_spans(text, spans) or text
