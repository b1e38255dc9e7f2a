"""What the words around a match say of it, by the statistical model: a second sign beside the rules. Finds nothing.

One rule alone may be wrong about a text that only sounds like an attack. Where no other rule sees much near it and the
words around it, in its paragraph, are those of harmless texts, its match is doubted, unless its sentence by itself is
an attack's: pages of something else around it gain nothing then. And an excuse (`mention`) is believed by half where
the words are those of attacks all the same. Only what stands near is read, so that a text in pieces is judged as the
whole one is.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable

from gateway.shield.linear import OTHER, LinearModel, Weights, margin_of, words_of
from gateway.shield.ordinary import AFTER_CHARS, BEFORE_CHARS

DOUBT_NOTE = (
    " No other rule is sure of it, and the words around it are those of harmless texts: it counts less for that."
)
# What each doubling of the rules that see something near adds to the words' margin, and how many leave no doubt.
_DOUBLED = 1.1
_MANY_RULES = 4
# Words on either side of a match that are read with it, and the margin from which they, or its whole sentence, leave no
# doubt: what a writer pads it with farther off says nothing of it then.
_NEXT_WORDS = 6
_SURE_MARGIN = 0.5
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?\n。！？]")
# So few words, those of the match included, are no ground for a doubt.
_FEW_WORDS = 20
Span = tuple[int, int]


class _Near:
    """The words of a match and of what stands around it in its paragraph; their margins are told when asked for."""

    __slots__ = ("_around", "_parts", "_sentence", "_surest", "_weights", "count")

    def __init__(
        self, parts: tuple[list[bytes], list[bytes], list[bytes]], sentence: list[bytes] | None, weights: Weights
    ) -> None:
        """parts: the words before the match, of it, and behind it. sentence: those of its sentence, None for all."""
        self._parts = parts
        self._sentence = sentence
        self._weights = weights
        self.count = sum(map(len, parts))
        self._around: float | None = None
        self._surest: float | None = None

    def around(self) -> float:
        """Return the margin of all words."""
        if self._around is None:
            before, matched, after = self._parts
            self._around = margin_of(before + matched + after, self._weights)
        return self._around

    def surest(self, enough: float = math.inf) -> float:
        """Return the margin of the match with the next words, or of its sentence, whichever is more.

        enough: from which on it does not matter how much more.
        """
        if self._surest is None:
            before, matched, after = self._parts
            if len(before) <= _NEXT_WORDS and len(after) <= _NEXT_WORDS:
                margin = self.around()
            else:
                margin = margin_of(before[-_NEXT_WORDS:] + matched + after[:_NEXT_WORDS], self._weights)
            if margin >= enough:
                return margin
            sentence = self._sentence
            self._surest = max(margin, self.around() if sentence is None else margin_of(sentence, self._weights))
        return self._surest


class Wording:
    """How matches in one text are worded."""

    __slots__ = ("_everywhere", "_known", "_model", "_normalized", "_places", "_text", "_words_in")

    def __init__(
        self,
        text: str,
        model: LinearModel,
        normalized: Callable[[str], str],
        rules: Iterable[Collection[Span] | None],
    ) -> None:
        """rules: where each rule matched, None for too many places to ask; normalized: a text as the model reads it."""
        self._text = text
        self._model = model
        self._normalized = normalized
        listed = list(rules)
        self._everywhere = sum(1 for places in listed if places is None)
        self._places = sorted((*place, rule) for rule, places in enumerate(listed) for place in places or ())
        self._known: dict[Span, _Near] = {}
        self._words_in: dict[str, list[bytes]] = {}

    def is_doubted(self, start: int, end: int, category: str) -> bool:
        """Say whether a match, a half-open span, is alone among words of harmless texts."""
        count = self._rules_near(start, end)
        if count >= _MANY_RULES:
            return False
        near = self._near(start, end)
        if near.count <= _FEW_WORDS or near.surest(_SURE_MARGIN) >= _SURE_MARGIN:
            return False
        doubts = self._model.weights.doubts
        return near.around() < doubts.get(category, doubts[OTHER]) - _DOUBLED * math.log2(max(count, 1))

    def is_meant(self, start: int, end: int) -> bool:
        """Say whether the words of a match are those of attacks, and so are all around it."""
        near = self._near(start, end)
        return min(near.surest(), near.around()) >= self._model.weights.levels[1]

    def _rules_near(self, start: int, end: int) -> int:
        """Return how many rules match near a match, its own among them, as far as it matters."""
        high = end + AFTER_CHARS
        seen: set[int] = set()
        for at in range(bisect_left(self._places, (start - BEFORE_CHARS,)), len(self._places)):
            first, last, rule = self._places[at]
            if first > high or len(seen) >= _MANY_RULES:
                break
            if last <= high:
                seen.add(rule)
        return self._everywhere + len(seen)

    def _near(self, start: int, end: int) -> _Near:
        known = self._known.get((start, end))
        if known is None:
            text = self._text
            lead = _PARAGRAPH_END.split(text[max(0, start - BEFORE_CHARS) : start])[-1]
            trail = _PARAGRAPH_END.split(text[end : end + AFTER_CHARS], maxsplit=1)[0]
            before, matched, after = self._words(lead), self._words(text[start:end]), self._words(trail)
            opening = self._words(_SENTENCE_END.split(lead)[-1])
            closing = self._words(_SENTENCE_END.split(trail, maxsplit=1)[0])
            sentence = None if opening is before and closing is after else opening + matched + closing
            known = self._known[start, end] = _Near((before, matched, after), sentence, self._model.weights)
        return known

    def _words(self, part: str) -> list[bytes]:
        words = self._words_in.get(part)
        if words is None:
            words = self._words_in[part] = words_of(self._normalized(part))
        return words
