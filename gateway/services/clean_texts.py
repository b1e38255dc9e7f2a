"""Which texts the shield found nothing in, so that none of them is scanned twice. Holds no text.

Theory of operation. A scan is a function of text, direction, rules and of the categories that are looked for, and a
conversation sends all that was said before again with every turn. So a text in which nothing at all was found is noted
by a keyed digest; one with a detection never is, and is scanned each time. The key is this process's own and makes
another key for each owner: nobody can tell by the time of an answer what somebody else has sent. A change of
authority in any process empties the memory, and a scan that was under way during one is not noted.
"""

import hashlib

from gateway.clock import Ids
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import Policy

MOST_TEXTS = 8_192
"""How many digests one generation holds; there are two, and the older one goes when the newer one is full."""
MOST_OWNERS = 4_096
_DIGEST_BYTES = 16

Owner = tuple[str, Direction, frozenset[str] | None]
"""Who sent a text, which way it goes, and the categories that are looked for."""


class CleanTexts:
    """The memory of one process. ids: where its key comes from."""

    __slots__ = ("_generation", "_ids", "_key", "_keys", "_newer", "_older")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._key = b""
        self._keys: dict[Owner, bytes] = {}
        self._newer: set[bytes] = set()
        self._older: set[bytes] = set()
        self._generation = -1

    def __len__(self) -> int:
        """How many texts are noted."""
        return len(self._newer) + len(self._older)

    def mark(self, text: str, owner: str, direction: Direction, policy: Policy) -> bytes:
        """Return what stands for a text of an owner. Takes time in proportion to the text, a hundredth of a scan's."""
        key = self._keys.get((owner, direction, policy.categories)) or self._new_key(owner, direction, policy)
        raw = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES, key=key).digest()

    def knows(self, mark: bytes, generation: int) -> bool:
        """Tell whether a text was found clean since authority last changed. generation: the store's."""
        if generation != self._generation:
            self._newer, self._older = set(), set()
            self._generation = generation
            return False
        if mark in self._newer:
            return True
        if mark not in self._older:
            return False
        self._add(mark)  # what is still sent outlives what is not
        return True

    def note(self, mark: bytes, result: ScanResult, generation: int) -> None:
        """Note a text if nothing was found in it. generation: of before the scan."""
        if generation == self._generation and not result.detections and result.verdict is Verdict.ALLOW:
            self._add(mark)

    def _add(self, mark: bytes) -> None:
        if len(self._newer) >= MOST_TEXTS:
            self._older, self._newer = self._newer, set()
        self._newer.add(mark)

    def _new_key(self, owner: str, direction: Direction, policy: Policy) -> bytes:
        if not self._key:  # not before the process is forked
            self._key = self._ids.random_bytes(32)
        if len(self._keys) >= MOST_OWNERS:
            self._keys.clear()  # they are made again as they were
        categories = policy.categories
        about = "\0".join((owner, direction.value, "*" if categories is None else ",".join(sorted(categories))))
        key = hashlib.blake2b(about.encode("utf-8", "surrogatepass"), digest_size=32, key=self._key).digest()
        self._keys[owner, direction, categories] = key
        return key
