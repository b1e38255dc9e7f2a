"""The one way to the shield: a text and a policy to what was found. Records nothing."""

from collections.abc import Sequence
from typing import Protocol

from gateway.clock import Ids
from gateway.errors import Shed, ShieldUnavailable
from gateway.offload import ThreadOffload
from gateway.services.clean_texts import CleanTexts, Digests
from gateway.services.rules import Rules
from gateway.shield import Shield
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import Policy, verdict_of
from gateway.store.store import Store

THREAD_CHARS = 16_384
THREADS = 2
HUGE_CHARS = 500_000
HUGE_WAIT = 10
MOST_HUGE_WAITING = 8
_CLEAN = ScanResult(Verdict.ALLOW, 0)


class TextJudge(Protocol):
    """What scans one text."""

    async def judge_text(
        self,
        text: str,
        direction: Direction,
        policy: Policy,
        *,
        owner: str = "",
        ends: Sequence[int] = (),
        is_patient: bool = True,
    ) -> ScanResult:
        """Scan without recording anything. owner: whose text it is, so that a clean one is scanned once.

        ends: of the beginnings of a long text that may be known already. is_patient: wait for a thread without limit.

        Raises:
            ShieldUnavailable: the shield failed, in whatever way. Shed: the text waited too long for its turn.
        """
        ...

    def judge_here(self, text: str, direction: Direction, policy: Policy, *, owner: str = "") -> ScanResult | None:
        """Scan as `judge_text` does, without waiting. None: the text is too long for that."""
        ...


class Judge:
    """Scans texts, and knows again those in which nothing was found.

    rules: what operators have set, None for the shield as it is. max_wait_seconds: the longest wait of a long text for
    its turn, None for no limit. clean: of texts that other processes have scanned too, by the same rules.
    """

    def __init__(
        self,
        shield: Shield,
        store: Store,
        ids: Ids,
        *,
        rules: Rules | None,
        max_wait_seconds: float | None,
        clean: Digests | None = None,
    ) -> None:
        self._shield = shield
        self._store = store
        self._rules = rules
        self.clean = CleanTexts(ids, clean)
        # More threads scan no more, and each takes its turn before the event loop gets another: with one for each of 64
        # processors, all else takes ten times as long.
        self._aside = ThreadOffload(THREADS, wait_seconds=max_wait_seconds)
        # A very long text takes seconds and a hundred megabytes: one is scanned at a time, apart from all others. A few
        # may wait, and for longer.
        huge_seconds = None if max_wait_seconds is None else max_wait_seconds * HUGE_WAIT
        self._huge = ThreadOffload(wait_seconds=huge_seconds, most_waiting=MOST_HUGE_WAITING)

    async def judge_text(
        self,
        text: str,
        direction: Direction,
        policy: Policy,
        *,
        owner: str = "",
        ends: Sequence[int] = (),
        is_patient: bool = True,
    ) -> ScanResult:
        """Scan without recording anything; a long text in a worker thread, so that others are answered meanwhile.

        owner: whose text it is. One that was found clean is then not scanned again, until authority changes. ends: of
        the beginnings of a long text that may be known already. is_patient: wait for a thread without limit. Only the
        first scan of a request is not: what was found, or a reply that a model was paid for, must not be lost.

        Raises:
            ShieldUnavailable: the shield failed, in whatever way. Shed: the text waited too long for its turn.
        """
        if not ends and (result := self.judge_here(text, direction, policy, owner=owner)) is not None:
            return result
        try:
            generation = self._rules.apply() if self._rules is not None else self._store.generation.value()
            if not owner:
                return await self._scan(text, direction, policy, is_patient)
            clean = self.clean
            if not ends:
                mark = clean.mark(text, owner, direction, policy, generation)
                if clean.knows(mark):
                    return _nothing(policy)
                result = await self._scan(text, direction, policy, is_patient)
                clean.note(mark, result)
                return result
            # The whole is its own last beginning: a long text is gone through once for all of them.
            *marks, mark = clean.beginnings(text, (*ends, len(text)), owner, direction, policy, generation)
            if clean.knows(mark):
                return _nothing(policy)
            rest = clean.unknown(text, ends, marks)
            result = await self._scan(rest, direction, policy, is_patient)
            if result.detections and rest is not text:
                result = await self._scan(text, direction, policy, is_patient=True)
            clean.note(mark, result)
            clean.note(marks[-1], result)
            return result
        except Shed:
            raise
        except Exception as error:  # whatever fails in a rule or the matcher: the text is not let through
            raise _unavailable() from error

    def judge_here(self, text: str, direction: Direction, policy: Policy, *, owner: str = "") -> ScanResult | None:
        """Scan a text as `judge_text` does, without waiting. None: it is too long for that.

        Raises:
            ShieldUnavailable: the shield failed, in whatever way.
        """
        if len(text) > THREAD_CHARS:
            return None
        try:
            generation = self._rules.apply() if self._rules is not None else self._store.generation.value()
            if not owner:
                return self._shield.scan(text, direction, policy)
            clean = self.clean
            mark = clean.mark(text, owner, direction, policy, generation)
            if clean.knows(mark):
                return _nothing(policy)
            result = self._shield.scan(text, direction, policy)
            clean.note(mark, result)
            return result
        except Exception as error:  # as above
            raise _unavailable() from error

    async def _scan(self, text: str, direction: Direction, policy: Policy, is_patient: bool) -> ScanResult:
        if len(text) <= THREAD_CHARS:
            return self._shield.scan(text, direction, policy)
        aside = self._huge if len(text) > HUGE_CHARS else self._aside
        return await aside.run(lambda one: self._shield.scan(one, direction, policy), text, is_patient=is_patient)


def _nothing(policy: Policy) -> ScanResult:
    """Return the result of a text in which nothing was found."""
    return _CLEAN if policy.review_at > 0 < policy.block_at else ScanResult(verdict_of(0, policy), 0)


def _unavailable() -> ShieldUnavailable:
    # The cause is kept for the log. Its own message may quote the text, so it is not repeated here.
    return ShieldUnavailable("The shield could not scan the text; try again.", retry_after_seconds=1)
