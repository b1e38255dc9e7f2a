"""Pass a text to the shield: the only way there for chats, scans and captures. Records nothing.

A long text is scanned in a thread, so that the event loop keeps answering. Whatever fails, the text is not let through.

A scan depends on the text, its direction, the rules and the categories, and each turn of a conversation repeats all
turns before it. So the scanner remembers a text without any detection by a keyed digest; it keeps no text. The key is
random for each process. The owner of a text is part of its digest, so that no response time reveals what somebody else
sent. So are the generation of the store and the rules in use: after a change of rules or policies, no text is known any
more.

The scanner remembers the beginnings of a long text as well. When more follows a known beginning, the scan starts inside
that beginning, further back than any rule reaches. That distance is counted in visible ASCII characters, because no
reading of a text leaves those out.
"""

import hashlib
from collections.abc import Sequence

from gateway.clock import Ids
from gateway.errors import Shed, ShieldUnavailable
from gateway.offload import ThreadOffload
from gateway.services.rules import Rules
from gateway.shield import Shield
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.patterns import LONGEST_MATCH_CHARS
from gateway.shield.scoring import Policy, nothing_found
from gateway.shield.stream import StreamScanner
from gateway.store.store import Store

THREAD_CHARS = 16_384
THREADS = 2
HUGE_CHARS = 500_000
HUGE_WAIT = 10
MOST_HUGE_WAITING = 8
MOST_TEXTS = 16_384
TAIL_CHARS = 2 * LONGEST_MATCH_CHARS
"""How much of a known beginning is scanned again with what follows it."""
_DIGEST_BYTES = 16


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
        self.seal = store.seal
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
            rules = self._rules.apply() if self._rules is not None else str(self._store.generation.value())
            if not owner:
                return await self._run(text, direction, policy, is_patient)
            categories = "*" if policy.categories is None else ",".join(sorted(policy.categories))
            digests = self._clean.digests(text, ends, (owner, direction, categories, rules))
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

    async def stream(self, policy: Policy | None) -> StreamScanner:
        """Return what lets out a reply while it grows, as `Shield.stream` says.

        Raises:
            ShieldUnavailable: the shield failed. Shed: no thread was free in time.
        """
        try:
            if self._rules is not None:
                self._rules.apply()
            # For a policy that is new here, hundreds of regexes are made.
            return await self._long.run(self._shield.stream, policy)
        except Shed:
            raise
        except Exception as error:
            raise ShieldUnavailable("The shield could not scan the text; try again.", retry_after_seconds=1) from error

    async def _run(self, text: str, direction: Direction, policy: Policy, is_patient: bool) -> ScanResult:
        if len(text) <= THREAD_CHARS:
            return self._shield.scan(text, direction, policy)
        threads = self._huge if len(text) > HUGE_CHARS else self._long
        return await threads.run(lambda one: self._shield.scan(one, direction, policy), text, is_patient=is_patient)


class CleanTexts:
    """The clean texts of this process; the one used longest ago is forgotten first."""

    def __init__(self, ids: Ids) -> None:
        self._secret = ids.random_bytes(32)
        self._known: dict[bytes, None] = {}

    def digests(self, text: str, ends: Sequence[int], scope: Sequence[str]) -> list[bytes]:
        """Return the digest of each beginning of `text`, up to each of the rising `ends`, and last that of all of it.

        scope: the owner and everything else that the result of a scan depends on.
        """
        digest = hashlib.sha256(self._secret + "\0".join((*scope, "")).encode("utf-8", "surrogatepass"))
        found, begin = [], 0
        for end in (*ends, len(text)):
            digest.update(text[begin:end].encode("utf-8", "surrogatepass"))
            found.append(digest.digest()[:_DIGEST_BYTES])
            begin = end
        return found

    def knows(self, digest: bytes) -> bool:
        """Tell whether the text of this digest was found clean."""
        if digest not in self._known:
            return False
        self._known[digest] = self._known.pop(digest)
        return True

    def add(self, digests: Sequence[bytes]) -> None:
        for digest in digests:
            self._known[digest] = None
        while len(self._known) > MOST_TEXTS:
            del self._known[next(iter(self._known))]

    def unknown_part(self, text: str, ends: Sequence[int], digests: Sequence[bytes]) -> str:
        """Return what must be scanned of `text`: what follows its longest known beginning, and the end of that."""
        for end, digest in zip(reversed(ends), reversed(digests[:-1]), strict=True):
            start = end - TAIL_CHARS
            if start <= 0:
                break
            if self.knows(digest):
                visible = text[start:end].encode("ascii", "ignore").split()
                return text[start:] if sum(map(len, visible)) >= LONGEST_MATCH_CHARS else text
        return text
