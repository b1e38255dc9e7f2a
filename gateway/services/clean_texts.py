"""Remember which texts the shield found nothing in, so that a conversation is not scanned again with every turn.

A scan depends on the text, its direction, the rules and the categories, and each turn of a conversation repeats all
turns before it. A text without any detection is remembered by a keyed digest; no text is kept. The key is random for
each process. The owner of a text is part of its digest, so that no response time reveals what somebody else sent. So is
the generation of the store: after a change of rules or policies, nothing is known any more.

The beginnings of a long text are remembered as well. When more follows a known beginning, the scan starts inside that
beginning, further back than any rule reaches. That distance is counted in visible ASCII characters, because no reading
of a text leaves those out.
"""

import hashlib
from collections.abc import Sequence

from gateway.clock import Ids
from gateway.shield.patterns import LONGEST_MATCH_CHARS

MOST_TEXTS = 16_384
TAIL_CHARS = 2 * LONGEST_MATCH_CHARS
"""How much of a known beginning is scanned again with what follows it."""
_DIGEST_BYTES = 16


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
        """Remember texts that were found clean."""
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
