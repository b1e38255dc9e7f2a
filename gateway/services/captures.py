"""Prepare what a policy keeps of a text: all of it, or the text with every match masked. Stores nothing.

A match that spans several texts of a conversation cannot be masked in any of them. Then each text is kept as its first
four characters and its length. The same applies to a text that was not scanned to its end.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from gateway.clock import Clock
from gateway.domain.policies import MASKING, MAX_CAPTURE_CHARS, Capture, KeptText, ShieldPolicy, cut, with_places
from gateway.llm.base import Leaf
from gateway.llm.joined import join
from gateway.shield.detections import Direction, ScanResult, mask
from gateway.shield.engine import BUDGET_RULE
from gateway.shield.scoring import Policy

Scan = Callable[[str, Direction, Policy], Awaitable[ScanResult]]


class Captures:
    """Prepares texts for storage. scan: scans one text and records nothing."""

    def __init__(self, scan: Scan, clock: Clock) -> None:
        self._scan = scan
        self._clock = clock

    async def of_text(self, text: str, direction: Direction, policy: ShieldPolicy) -> KeptText | None:
        """Return what is kept of one text, or None. Raises ShieldUnavailable: it is unknown what to mask."""
        mode = policy.capture
        if mode is Capture.NONE:
            return None
        if mode is Capture.REDACTED:
            text = await self._masked(text, direction)
        return self._cut(text, direction, policy)

    async def of_leaves(self, leaves: Sequence[Leaf], direction: Direction, policy: ShieldPolicy) -> KeptText | None:
        """Return what is kept of the texts of a prompt or a reply, each with its place. Raises as `of_text`."""
        mode = policy.capture
        if mode is Capture.NONE:
            return None
        kept = _beginning(leaves)
        if mode is Capture.REDACTED:
            kept = await self._masked_leaves(kept, direction)
        sent = {leaf.place for leaf in kept if not leaf.view}
        # Another reading of a text is shown only where the text itself is none, such as a file.
        shown = [(leaf.place, leaf.text) for leaf in kept if not leaf.view or leaf.place not in sent]
        return self._cut(with_places(shown), direction, policy)

    def _cut(self, text: str, direction: Direction, policy: ShieldPolicy) -> KeptText:
        expires_at = self._clock.now_at() + policy.capture_days * 86_400_000
        return cut(text, direction=direction, mode=policy.capture, expires_at=expires_at)

    async def _masked(self, text: str, direction: Direction) -> str:
        result = await self._scan(text, direction, MASKING)
        return mask(text) if _is_unread(result) else result.redacted or text

    async def _masked_leaves(self, leaves: Sequence[Leaf], direction: Direction) -> Sequence[Leaf]:
        if not await self._has_match(leaves, direction):
            return leaves
        masked = [replace(leaf, text=await self._masked(leaf.text, direction)) for leaf in leaves]
        pairs = list(zip(leaves, masked, strict=True))
        # A match that only another reading shows has no known span in the text as it was sent.
        hidden = {new.place for old, new in pairs if old.view and old.text != new.text}
        masked = [
            replace(new, text=mask(old.text)) if new.place in hidden and old.text == new.text else new
            for old, new in pairs
        ]
        if await self._has_match(masked, direction):
            return [replace(leaf, text=mask(leaf.text)) for leaf in leaves]
        return masked

    async def _has_match(self, leaves: Sequence[Leaf], direction: Direction) -> bool:
        result = await self._scan(join(leaves).text, direction, MASKING)
        return result.redacted is not None or _is_unread(result)


def _beginning(leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the first texts, up to one more than fits: a match may reach into it."""
    chars = 0
    for number, leaf in enumerate(leaves):
        if chars > MAX_CAPTURE_CHARS:
            return leaves[: number + 1]
        chars += len(leaf.text)
    return leaves


def _is_unread(result: ScanResult) -> bool:
    return any(found.rule == BUDGET_RULE for found in result.detections)
