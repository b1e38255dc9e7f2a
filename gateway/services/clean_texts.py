"""Which texts the shield found nothing in, so that none of them is scanned twice. Holds no text.

Theory of operation. A scan is a function of text, direction, rules and of the categories that are looked for, and a
conversation sends all that was said before again with every turn. So a text in which nothing at all was found is noted
by a keyed digest; one with a detection never is, and is scanned each time. The key is this process's own and makes
another key for each owner: nobody can tell by the time of an answer what somebody else has sent. A change of
authority in any process empties the memory, and a scan that was under way during one is not noted.

What is sent of a conversation grows at its end, so that its beginning is noted as well: all messages of a prompt that
was clean. When it comes again with more behind it, it is scanned again from a place before its end that is further away
than any rule reaches, and nothing before that can be part of a match that was not there before. How far a rule reaches
is counted in ASCII characters that are no white space, since no reading of a text leaves those out. If anything is
found so, all of it is scanned: the answer is then that of a scan of the whole.

Digests lie one behind the other in a table, a seventh of what sets of them take. Its rows have room for sixteen; the
first bytes of a digest tell its row, in which the latest stands first and the last is forgotten.
"""

import hashlib
from collections.abc import Sequence

from gateway.clock import Ids
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.patterns import LONGEST_MATCH_CHARS
from gateway.shield.scoring import Policy

MOST_TEXTS = 16_384
"""How many digests are kept: sixteen times a power of two."""
MOST_OWNERS = 4_096
TAIL_CHARS = 2 * LONGEST_MATCH_CHARS
"""How much of a beginning that is known is scanned again with what follows."""
_DIGEST_BYTES = 16
_ROW_BYTES = 16 * _DIGEST_BYTES
_WHOLE, _BEGINNING = b"w", b"b"

Owner = tuple[str, Direction, frozenset[str] | None]
"""Who sent a text, which way it goes, and the categories that are looked for."""


class CleanTexts:
    """The memory of one process. ids: where its key comes from."""

    __slots__ = ("_generation", "_ids", "_key", "_keys", "_table")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._key = b""
        self._keys: dict[Owner, bytes] = {}
        self._table = bytearray()  # made when the first text is asked for
        self._generation = -1

    def mark(self, text: str, owner: str, direction: Direction, policy: Policy) -> bytes:
        """Return what stands for a text of an owner. Takes time in proportion to the text, a hundredth of a scan's."""
        key = self._keys.get((owner, direction, policy.categories)) or self._new_key(owner, direction, policy)
        # No HMAC: the digest leaves this process no more than the key does. SHA-256 is what processors help with.
        return hashlib.sha256(key + _WHOLE + text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]

    def beginnings(
        self, text: str, ends: Sequence[int], owner: str, direction: Direction, policy: Policy
    ) -> Sequence[bytes]:
        """Return what stands for the beginnings of a text that end at `ends`, which rise."""
        key = self._keys.get((owner, direction, policy.categories)) or self._new_key(owner, direction, policy)
        digest = hashlib.sha256(key + _BEGINNING)
        marks, begin = [], 0
        for end in ends:
            digest.update(text[begin:end].encode("utf-8", "surrogatepass"))
            marks.append(digest.digest()[:_DIGEST_BYTES])
            begin = end
        return marks

    def knows(self, mark: bytes, generation: int) -> bool:
        """Tell whether a text was found clean since authority last changed. generation: the store's."""
        if generation != self._generation:
            self._table = bytearray(MOST_TEXTS * _DIGEST_BYTES)
            self._generation = generation
            return False
        row = self._row(mark)
        place = self._table.find(mark, row, row + _ROW_BYTES)
        if place - row >= _ROW_BYTES // 2:
            self._add(mark)  # what is still sent outlives what is not
        return place >= 0

    def note(self, mark: bytes, result: ScanResult, generation: int) -> None:
        """Note a text if nothing was found in it. generation: of before the scan."""
        if generation == self._generation and not result.detections and result.verdict is Verdict.ALLOW:
            self._add(mark)

    def unknown(self, text: str, ends: Sequence[int], marks: Sequence[bytes], generation: int) -> str:
        """Return the part of a text that has to be scanned: all of it, or what follows a beginning that is known.

        ends, marks: of its beginnings.
        """
        for end, mark in zip(reversed(ends), reversed(marks), strict=True):
            start = end - TAIL_CHARS
            if start <= 0:
                break
            if self.knows(mark, generation):
                visible = text[start:end].encode("ascii", "ignore").split()
                return text[start:] if sum(map(len, visible)) >= LONGEST_MATCH_CHARS else text
        return text

    def _row(self, mark: bytes) -> int:
        """Return where the row of a digest begins."""
        return ((mark[0] << 8 | mark[1]) * _ROW_BYTES) & (len(self._table) - 1)

    def _add(self, mark: bytes) -> None:
        row, table = self._row(mark), self._table
        table[row + _DIGEST_BYTES : row + _ROW_BYTES] = table[row : row + _ROW_BYTES - _DIGEST_BYTES]
        table[row : row + _DIGEST_BYTES] = mark

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
