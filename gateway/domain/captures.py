"""What is kept of a text when a policy says so: nothing, the text with every match masked, or all of it. Pure."""

from collections.abc import Iterable
from enum import StrEnum

from gateway.records import record
from gateway.shield.detections import CATEGORIES, Direction
from gateway.shield.scoring import Policy

MAX_CAPTURE_CHARS = 20_000
DEFAULT_CAPTURE_DAYS = 7
MAX_CAPTURE_DAYS = 365
_DAY_MS = 86_400_000
MASKING = Policy(category_actions=dict.fromkeys(sorted(CATEGORIES), "redact"))
"""Under which a scan's masked text has the matches of every rule masked."""


class Capture(StrEnum):
    """What is kept of a text beside its hash. Redacted: with every match masked."""

    NONE = "none"
    REDACTED = "redacted"
    FULL = "full"


@record
class CapturedText:
    """What is to be kept of one text. is_cut: there was more of it. days: how long it is kept."""

    direction: Direction
    mode: Capture
    text: str
    is_cut: bool
    days: int

    def expires_at(self, captured_at: int) -> int:
        """Return when it is to be gone."""
        return captured_at + self.days * _DAY_MS


@record
class KeptText:
    """What was kept of one text, as it is shown."""

    direction: Direction
    mode: Capture
    text: str
    is_cut: bool
    expires_at: int


def cut(text: str, *, direction: Direction, mode: Capture, days: int) -> CapturedText:
    """Return a text as it may be stored: not too long, and without halves of characters."""
    kept = text[:MAX_CAPTURE_CHARS].encode("utf-8", "replace").decode("utf-8")
    return CapturedText(direction, mode, kept, len(text) > MAX_CAPTURE_CHARS, days)


def with_places(texts: Iterable[tuple[str, str]]) -> str:
    """Join texts, each under its place."""
    return "\n\n".join(f"[{place}]\n{text}" for place, text in texts)
