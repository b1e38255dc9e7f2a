"""How many refusals are worth a record of their own. Pure: told the time, records nothing itself.

A refusal of a kind not seen in the last seconds is recorded at once; its repetitions are counted and told in one sum
when the window of 10 seconds is over. Both are bounded, so that a flood of wrong keys can fill neither memory nor disk:
at most `AT_ONCE` records and one sum in any window. A sum names the first requests of each kind.
"""

from collections import defaultdict
from dataclasses import dataclass

WINDOW_SECONDS = 10.0
AT_ONCE = 8
KINDS = 64
NAMED = 20
"""How many requests of one kind a sum names."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What makes two refusals the same. action: of the audit event. reason: the code of the error."""

    action: str
    reason: str
    ip: str | None = None
    key_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class RefusalSum:
    """The refusals of one window that had no record of their own.

    repeated: with how many there were, and the ids of the first. others: of kinds too many to tell apart; their ids.
    """

    repeated: tuple[tuple[Refusal, int, tuple[str, ...]], ...]
    others: int
    others_ids: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(count for _, count, _ in self.repeated) + self.others


class RefusalCounter:
    """The refusals of the window that is open, if one is."""

    def __init__(self) -> None:
        self._counts: dict[Refusal, int] = {}
        self._others = 0
        self._ids: defaultdict[Refusal | None, list[str]] = defaultdict(list)
        self.due_seconds = float("inf")

    def note(self, refusal: Refusal, now_seconds: float, request_id: str | None = None) -> bool:
        """Count a refusal, and tell whether it is to be recorded at once. Take the sum first when it is due."""
        if not self._counts:
            self.due_seconds = now_seconds + WINDOW_SECONDS
        known = self._counts.get(refusal)
        if known is not None:
            self._counts[refusal] = known + 1
        elif len(self._counts) < KINDS:
            is_early = len(self._counts) < AT_ONCE
            self._counts[refusal] = 0 if is_early else 1
            if is_early:
                return True
        else:
            self._others += 1
        ids = self._ids[refusal if refusal in self._counts else None]
        if request_id is not None and len(ids) < NAMED:
            ids.append(request_id)
        return False

    def take(self) -> RefusalSum | None:
        """Close the window and return what it held beyond the refusals recorded at once, or None."""
        repeated = tuple((one, count, tuple(self._ids[one])) for one, count in self._counts.items() if count)
        told = RefusalSum(repeated, self._others, tuple(self._ids[None])) if repeated or self._others else None
        self._counts, self._others = {}, 0
        self._ids.clear()
        self.due_seconds = float("inf")
        return told
