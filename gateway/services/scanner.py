"""Pass a text to the shield: the only way there for chats, scans and captures. Records nothing.

A long text is scanned in a thread, so that the event loop keeps answering. Whatever fails, the text is not let through.
"""

from collections.abc import Sequence

from gateway.clock import Ids
from gateway.errors import Shed, ShieldUnavailable
from gateway.offload import ThreadOffload
from gateway.services.clean_texts import CleanTexts
from gateway.services.rules import Rules
from gateway.shield import Shield
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import Policy, nothing_found
from gateway.store.store import Store

THREAD_CHARS = 16_384
THREADS = 2
HUGE_CHARS = 500_000
HUGE_WAIT = 10
MOST_HUGE_WAITING = 8


class TextScanner:
    """Scans texts, and knows those again in which nothing was found.

    rules: what operators have set, None for the shield as it is. max_wait_seconds: the longest wait of a long text for
    a thread, None for no limit.
    """

    def __init__(
        self, shield: Shield, store: Store, ids: Ids, *, rules: Rules | None, max_wait_seconds: float | None
    ) -> None:
        self._shield = shield
        self._store = store
        self._rules = rules
        self._clean = CleanTexts(ids)
        # Threads share one interpreter lock, and each takes its turn before the event loop: more would not scan more.
        self._long = ThreadOffload(THREADS, wait_seconds=max_wait_seconds)
        # A huge text takes seconds and a hundred megabytes, so only one is scanned at a time.
        huge_seconds = None if max_wait_seconds is None else max_wait_seconds * HUGE_WAIT
        self._huge = ThreadOffload(wait_seconds=huge_seconds, most_waiting=MOST_HUGE_WAITING)

    async def scan(
        self,
        text: str,
        direction: Direction,
        policy: Policy,
        *,
        owner: str = "",
        ends: Sequence[int] = (),
        is_patient: bool = True,
    ) -> ScanResult:
        """Scan one text.

        owner: whose text it is; if given, a clean text is not scanned again until rules or policies change. ends: of
        the beginnings of a long text that may be known already. is_patient: wait for a thread without limit. Only the
        first scan of a request is impatient: a detection, or a reply that was paid for, must not be lost.

        Raises:
            ShieldUnavailable: the shield failed. Shed: no thread was free in time.
        """
        try:
            generation = self._rules.apply() if self._rules is not None else self._store.generation.value()
            if not owner:
                return await self._run(text, direction, policy, is_patient)
            categories = "*" if policy.categories is None else ",".join(sorted(policy.categories))
            digests = self._clean.digests(text, ends, (owner, direction, categories, str(generation)))
            if self._clean.knows(digests[-1]):
                return nothing_found(policy)
            part = self._clean.unknown_part(text, ends, digests)
            result = await self._run(part, direction, policy, is_patient)
            if result.detections and part is not text:  # the answer is that of a scan of the whole text
                result = await self._run(text, direction, policy, is_patient=True)
            if not result.detections and result.verdict is Verdict.ALLOW:
                self._clean.add(digests[-2:])
            return result
        except Shed:
            raise
        except Exception as error:  # whatever fails in a rule or in the matcher
            # The cause is kept for the log. Its message may quote the text, so it is not repeated here.
            raise ShieldUnavailable("The shield could not scan the text; try again.", retry_after_seconds=1) from error

    async def _run(self, text: str, direction: Direction, policy: Policy, is_patient: bool) -> ScanResult:
        if len(text) <= THREAD_CHARS:
            return self._shield.scan(text, direction, policy)
        threads = self._huge if len(text) > HUGE_CHARS else self._long
        return await threads.run(lambda one: self._shield.scan(one, direction, policy), text, is_patient=is_patient)
