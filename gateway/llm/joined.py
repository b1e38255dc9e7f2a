"""Join the texts of a prompt or a reply for one scan. Pure; knows no dialect and no rule.

One scan of one joined text costs a fraction of a scan of each leaf. A line break between leaves keeps words apart. But
an attack that was cut inside a word is whole only where neighbours are read with nothing between them. So where a word
may have been cut, the ends of neighbouring content leaves are appended once more, glued together: the seams.

The parts of one message are one text to a model, so they are always glued, blanks and words of the dialect included:
single letters, or numbers that stand for letters, are read only with the blanks as sent.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import itemgetter

from gateway.llm.base import Leaf, LeafKind
from gateway.shield.detections import MASKED_CATEGORIES, Detection, ScanResult
from gateway.shield.scoring import MODEL_RULE

SEAM_CHARS = 160
"""How much of either end of a long text is glued to its neighbours."""
WORD_CHARS = 4096
"""As far a seam within a message reaches back to where an encoded text or a token begins, and forth to its end."""
INSIDE_WORDS = "-_/+=@'"
"""What a word may be cut beside, other than letters and digits."""

MOST_LEAVES = 20
"""In so many leaves a rule's matches are told one by one."""

_BEGIN = itemgetter(0)
_CONTENT = LeafKind.CONTENT
_BLANK = re.compile(r"\s+")


Seal = Callable[[str], str]
"""Returns the keyed hash of a secret."""


@dataclass(frozen=True, slots=True)
class JoinedText:
    """Many leaves as one text.

    leaves: in their order, with a line break after each. seams: after them, where each piece begins, its leaf, and
    where in that leaf it begins.
    """

    text: str
    leaves: Sequence[Leaf]
    seams: Sequence[tuple[int, Leaf, int]] = ()

    def placed(self, result: ScanResult, seal: Seal) -> ScanResult:
        """Return the result of this text with places, hashes and spans of its leaves: a detection for each leaf.

        seal: the keyed hash of a secret. A rule counts once, so that all but its first detection have no score.
        """
        if not result.detections:
            return result
        begins = accumulate((len(leaf.text) + 1 for leaf in self.leaves), initial=0)
        pieces = [*((begin, leaf, 0) for begin, leaf in zip(begins, self.leaves, strict=False)), *self.seams]
        found = [one for detection in result.detections for one in _in_leaves(detection, pieces, seal)]
        return replace(result, detections=tuple(sorted(found, key=lambda one: -one.score)))


def _in_leaves(found: Detection, pieces: Sequence[tuple[int, Leaf, int]], seal: Seal) -> Iterable[Detection]:
    """Yield a detection as it stands in each leaf, first in that of the match it is reported at.

    That of the attack model stands in one leaf, the one that has most of its words.
    """
    leaves: dict[int, Leaf] = {}
    spans: dict[int, list[tuple[int, int]]] = {}
    whole: set[tuple[int, int]] = set()
    spread: set[tuple[int, int]] = set()
    for start, end in ((found.start, found.end), *found.spans):
        index = max(bisect_right(pieces, start, key=_BEGIN) - 1, 0)
        at, leaf, offset = pieces[index]
        last = min(end - at + offset, len(leaf.text))
        first = min(start - at + offset, last)
        mine = spans.setdefault(id(leaf), [])
        leaves[id(leaf)] = leaf
        if (first, last) not in mine:
            mine.append((first, last))
        continues = index + 1 < len(pieces) and end > pieces[index + 1][0]  # a line break behind does not count
        (spread if continues else whole).add((id(leaf), first))
    spread -= whole  # a match that is whole in its text is not another one where the next text is glued to it
    stands_elsewhere = len(leaves) > 1 and found.rule == MODEL_RULE
    if stands_elsewhere:
        # The attack model judges all leaves at once: words that it shares with a short leaf, a name, say nothing there.
        most = max(leaves, key=lambda key: len(spans[key]))
        leaves = {most: leaves[most]}
    for number, (key, leaf) in enumerate(leaves.items(), 1):
        start, end = spans[key][0]
        is_last = number == MOST_LEAVES < len(leaves)
        yield replace(
            found,
            place=leaf.place,
            start=start,
            end=end,
            view=f"{leaf.view}>{found.view}" if leaf.view else found.view,
            score=found.score if number == 1 else 0,
            count=len(spans[key]) if found.spans else found.count,
            spans=tuple(spans[key]) if len(spans[key]) > 1 else (),
            sha256=digest_of(leaf.text),
            chars=len(leaf.text),
            secret=seal(leaf.text[start:end]) if found.category in MASKED_CATEGORIES and start < end else "",
            is_spread=found.is_spread or stands_elsewhere or is_last or any(leaf_id == key for leaf_id, _ in spread),
        )
        if is_last:
            return  # it stands for the other leaves as well


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, as findings have it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def in_text(result: ScanResult, text: str, seal: Seal, place: str = "text") -> ScanResult:
    """Return the result of a text that is scanned by itself, with what was found placed in it."""
    return JoinedText(text, (Leaf(place, text),)).placed(result, seal)


def message_ends(joined: JoinedText) -> Sequence[int]:
    """Return where in the text each of the content leaves ends, its line break included."""
    return tuple(accumulate(len(leaf.text) + 1 for leaf in joined.leaves if leaf.kind is _CONTENT))


def join(leaves: Sequence[Leaf]) -> JoinedText:
    """Join leaves with line breaks, and append the seams of neighbouring content leaves."""
    text = "\n".join(leaf.text for leaf in leaves)
    parts = [text, "\n"]
    seams: list[tuple[int, Leaf, int]] = []
    length = len(text) + 1

    def add(leaf: Leaf, begin: int, end: int, separator: str) -> None:
        nonlocal length
        seams.append((length, leaf, begin))
        parts.append(leaf.text[begin:end])
        parts.append(separator)
        length += end - begin + len(separator)

    def glue(run: Sequence[Leaf], *, is_whole: bool = True) -> None:
        """Append neighbours with nothing between them; of a long text only the ends. is_whole: with whole tokens."""
        for position, leaf in enumerate(run):
            size = len(leaf.text)
            is_last = position == len(run) - 1
            head = _head_end(leaf.text, is_inside=is_whole and _are_parts(run[position - 1], leaf)) if position else 0
            tail = (
                size if is_last else _tail_begin(leaf.text, is_inside=is_whole and _are_parts(leaf, run[position + 1]))
            )
            if size <= 2 * SEAM_CHARS or head >= tail:
                add(leaf, 0, size, "\n" if is_last else "")
                continue
            if position:
                add(leaf, 0, head, "\n")
            if not is_last:
                add(leaf, tail, size, "")

    for run in _runs([leaf for leaf in leaves if leaf.kind is _CONTENT]):
        glue(run)
        if len(run) > 2:  # a match must be found as well when a third text stands glued before it
            for first, second in pairwise(run):
                if not (first.text[-1].isspace() or second.text[0].isspace()):
                    glue((first, second), is_whole=False)
    return JoinedText("".join(parts[:-1]), leaves, seams)


def _head_end(text: str, *, is_inside: bool) -> int:
    """Return where the beginning of a text ends that is glued to what is before it.

    is_inside: both are parts of one message, so that the token that was cut is taken whole.
    """
    if not is_inside or len(text) <= SEAM_CHARS:
        return SEAM_CHARS
    blank = _BLANK.search(text, SEAM_CHARS, WORD_CHARS)
    return blank.start() if blank else min(len(text), WORD_CHARS)


def _tail_begin(text: str, *, is_inside: bool) -> int:
    """Return where the end of a text begins that is glued to what follows. is_inside: as above.

    Of a token that is longer than that a multiple of twelve is left out, so that what encodes a text is read as before.
    """
    size = len(text)
    if not is_inside or size <= SEAM_CHARS:
        return max(size - SEAM_CHARS, 0)
    begin = 0
    for blank in _BLANK.finditer(text, max(size - WORD_CHARS, 0), size - SEAM_CHARS):
        begin = blank.end()
    if begin or size <= WORD_CHARS:
        return begin
    start = max(text.rfind(blank) for blank in " \n\t") + 1
    return size - WORD_CHARS + (start - size + WORD_CHARS) % 12


def _runs(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Return the runs of two or more neighbours whose seams may hide a match."""
    runs: list[list[Leaf]] = []
    for leaf in leaves:
        if runs and _may_hide(runs[-1][-1], leaf):
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
    return [run for run in runs if len(run) > 1]


def _are_parts(first: Leaf, second: Leaf) -> bool:
    """Tell whether two texts are parts of one message."""
    return first.place.partition(".content")[0] == second.place.partition(".content")[0]


def _may_hide(first: Leaf, second: Leaf) -> bool:
    """Tell whether two texts, read without anything between them, say more than with a line break between them.

    Parts of one message are one text to a model. Two messages are not, unless a word seems to be cut in two: nearly
    all messages end with punctuation, so that a usual conversation has no seams at all.
    """
    before, after = first.text[-1], second.text[0]
    if (before.isalnum() or before in INSIDE_WORDS) and (after.isalnum() or after in INSIDE_WORDS):
        return True
    return _are_parts(first, second)
