"""A bounded number of audit records for refused requests. Pure: the caller passes the time and writes the records.

The first refusal of each kind in a window of 10 seconds gets its own record. Repetitions are counted, and one sum
reports them at the end of the window. A window has at most `AT_ONCE` records and one sum, so that a flood of wrong keys
cannot fill memory or disk. A sum names the first requests of each kind.
"""

from collections import defaultdict
from dataclasses import dataclass

WINDOW_SECONDS = 10.0
AT_ONCE = 8
KINDS = 64
NAMED = 20
"""The most requests of one kind that a sum names."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The kind of a refusal. action: of the audit event. reason: the code of the error."""

    action: str
    reason: str
    ip: str | None = None
    key_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class RefusalSum:
    """The refusals of one window without their own record.

    repeated: each kind with its count and the first request ids. others, others_ids: of kinds beyond `KINDS`.
    """

    repeated: tuple[tuple[Refusal, int, tuple[str, ...]], ...]
    others: int
    others_ids: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(count for _, count, _ in self.repeated) + self.others


class RefusalCounter:
    """The refusals of the open window, if there is one."""

    def __init__(self) -> None:
        self._counts: dict[Refusal, int] = {}
        self._others = 0
        self._ids: defaultdict[Refusal | None, list[str]] = defaultdict(list)
        self.due_seconds = float("inf")

    def add(self, refusal: Refusal, now_seconds: float, request_id: str | None = None) -> bool:
        """Count a refusal and return whether to record it at once. Call `take` first when the sum is due."""
        if not self._counts:
            self.due_seconds = now_seconds + WINDOW_SECONDS
        if refusal in self._counts:
            self._counts[refusal] += 1
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
        """Close the window and return the sum of the refusals without a record, or None."""
        repeated = tuple((one, count, tuple(self._ids[one])) for one, count in self._counts.items() if count)
        total = RefusalSum(repeated, self._others, tuple(self._ids[None])) if repeated or self._others else None
        self._counts, self._others = {}, 0
        self._ids.clear()
        self.due_seconds = float("inf")
        return total
