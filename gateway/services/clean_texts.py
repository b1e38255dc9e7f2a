"""Which texts the shield found nothing in, so that none of them is scanned twice. Holds no text.

Theory of operation. A scan is a function of text, direction, rules and of the categories that are looked for, and a
conversation sends all that was said before again with every turn. So a text in which nothing at all was found is noted
by a keyed digest; one with a detection never is, and is scanned each time. The key is the host's own and makes another
key for each owner: nobody can tell by the time of an answer what somebody else has sent. It makes others, too, when
authority changes in any process: what was known before is known no more, and what a scan notes that began before never.

What is sent of a conversation grows at its end, so that its beginning is noted as well: all messages of a prompt that
was clean. When it comes again with more behind it, it is scanned again from a place before its end that is further away
than any rule reaches, and nothing before that can be part of a match that was not there before. How far a rule reaches
is counted in ASCII characters that are no white space, since no reading of a text leaves those out. If anything is
found so, all of it is scanned: the answer is then that of a scan of the whole.

Digests lie one behind the other in a table, a seventh of what sets of them take. Its rows have room for sixteen; the
first bytes of a digest tell its row, in which the latest stands first and the last is forgotten. Workers of one host
have one table. None waits for another: a row that is read while it is written to may lack a digest, or hold one that
is half of two, which is nobody's.
"""

import hashlib
import mmap
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


class Digests:
    """Those of one host, or of a process: made before the fork, they are of all processes after it.

    secret: makes the keys of digests.
    """

    __slots__ = ("_table", "secret")

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._table = mmap.mmap(-1, MOST_TEXTS * _DIGEST_BYTES)

    def has(self, digest: bytes) -> bool:
        """Tell whether a digest was added of late. One that is asked for now and then stays."""
        row = self._row(digest)
        place = self._table[row : row + _ROW_BYTES].find(digest)
        if place >= _ROW_BYTES // 2:
            self.add(digest)  # what is still sent outlives what is not
        return place >= 0

    def add(self, digest: bytes) -> None:
        """Have a digest be the latest of its row."""
        row, table = self._row(digest), self._table
        table[row : row + _ROW_BYTES] = digest + table[row : row + _ROW_BYTES - _DIGEST_BYTES]

    def _row(self, digest: bytes) -> int:
        """Return where the row of a digest begins."""
        return ((digest[0] << 8 | digest[1]) * _ROW_BYTES) & (len(self._table) - 1)


class CleanTexts:
    """The memory of one process. ids: where its key comes from, unless it has `digests` in common with others."""

    __slots__ = ("_digests", "_generation", "_ids", "_keys")

    def __init__(self, ids: Ids, digests: Digests | None = None) -> None:
        self._ids = ids
        self._digests = digests  # made when the first text is asked for
        self._keys: dict[Owner, bytes] = {}
        self._generation = -1

    def mark(self, text: str, owner: str, direction: Direction, policy: Policy, generation: int) -> bytes:
        """Return what stands for a text of an owner. Takes time in proportion to the text, a hundredth of a scan's.

        generation: the store's, of before the scan.
        """
        key = self._key(owner, direction, policy, generation)
        # No HMAC: the digest leaves this host no more than the key does. SHA-256 is what processors help with.
        return hashlib.sha256(key + _WHOLE + text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]

    def beginnings(
        self, text: str, ends: Sequence[int], owner: str, direction: Direction, policy: Policy, generation: int
    ) -> Sequence[bytes]:
        """Return what stands for the beginnings of a text that end at `ends`, which rise. generation: as for `mark`."""
        digest = hashlib.sha256(self._key(owner, direction, policy, generation) + _BEGINNING)
        marks, begin = [], 0
        for end in ends:
            digest.update(text[begin:end].encode("utf-8", "surrogatepass"))
            marks.append(digest.digest()[:_DIGEST_BYTES])
            begin = end
        return marks

    def knows(self, mark: bytes) -> bool:
        """Tell whether a text was found clean since authority last changed."""
        return self._known().has(mark)

    def note(self, mark: bytes, result: ScanResult) -> None:
        """Note a text if nothing was found in it."""
        if not result.detections and result.verdict is Verdict.ALLOW:
            self._known().add(mark)

    def unknown(self, text: str, ends: Sequence[int], marks: Sequence[bytes]) -> str:
        """Return the part of a text that has to be scanned: all of it, or what follows a beginning that is known.

        ends, marks: of its beginnings.
        """
        for end, mark in zip(reversed(ends), reversed(marks), strict=True):
            start = end - TAIL_CHARS
            if start <= 0:
                break
            if self.knows(mark):
                visible = text[start:end].encode("ascii", "ignore").split()
                return text[start:] if sum(map(len, visible)) >= LONGEST_MATCH_CHARS else text
        return text

    def _known(self) -> Digests:
        if self._digests is None:  # not before the process is forked
            self._digests = Digests(self._ids.random_bytes(32))
        return self._digests

    def _key(self, owner: str, direction: Direction, policy: Policy, generation: int) -> bytes:
        if generation != self._generation:
            self._keys = {}
            self._generation = generation
        categories = policy.categories
        key = self._keys.get((owner, direction, categories))
        if key is None:
            if len(self._keys) >= MOST_OWNERS:
                self._keys.clear()  # they are made again as they were
            told = "*" if categories is None else ",".join(sorted(categories))
            about = "\0".join((owner, direction.value, told, str(generation))).encode("utf-8", "surrogatepass")
            key = hashlib.blake2b(about, digest_size=32, key=self._known().secret).digest()
            self._keys[owner, direction, categories] = key
        return key
