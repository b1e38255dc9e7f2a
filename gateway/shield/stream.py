"""Let out a reply while it grows, but nothing that may still be part of a match that blocks. Waits for nothing.

Theory of operation. A match that counts is either complete or not. If it is complete, a scan of the text that is held
finds it. If not, the text ends within it: it begins where one of its literals leads to, or its literal is still to
come. A regex of its beginnings (`unfinished`) is tried at these places, and what stands behind the first one waits. So
does an unfinished word: most literals, and all tokens and encoded texts, stand in one word.

A complete match stops the stream for good, unless it is masked: the whole reply is judged at its end. What hides in
several words (letters spaced out, text encoded line by line) is found only then.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from gateway.shield.detections import Direction, ScanResult, Severity, mask, merged
from gateway.shield.layout import Brief, Layout, written
from gateway.shield.matcher import Matcher
from gateway.shield.normalize import View
from gateway.shield.runner import Runner, compile_regex
from gateway.shield.scoring import Policy, points_of
from gateway.shield.unfinished import unfinished

HELD_POINTS = 25
"""A match worth this is held, or one that blocks by itself. Those worth less may leave: they block only together."""
MOST_HELD_CHARS = 4_096
"""Where more has to be held, the rest of the text waits for its end."""
LONGEST_PIECE_CHARS = 16_384
"""After a longer piece, which would keep other callers waiting, the rest of the text waits for its end, too."""
STEP_CHARS = 40
"""So many characters are looked at together."""
# What stands before the text that is held is read with it: no gate and no look behind reaches further.
_CONTEXT_CHARS = 80
# The end of a text back to a blank, or to a letter of a script without blanks.
_WORD = re.compile(
    "[^\\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]*\\Z"
)
_BLANK_OR_BEYOND = re.compile("[^!-~]")
_DIGITS = str.maketrans("123456789", "000000000")


class Openings:
    """The patterns whose matches are held under a policy, and where a text may end within one of them."""

    __slots__ = (
        "_brief", "_everywhere", "_heads", "_is_held", "_longest_head", "_matcher", "_policy", "_reach_chars",
        "_regexes",
    )  # fmt: skip

    def __init__(self, layout: Layout, matcher: Matcher, policy: Policy, brief: Callable[[int], Brief | None]) -> None:
        """brief: returns the rule of a plan as it counts in replies, None for one that does not."""
        self._matcher = matcher
        self._policy = policy
        self._brief = brief
        self._is_held: dict[int, bool] = {}
        self._regexes: dict[int, re.Pattern[str]] = {}
        numbers = [number for how in ("before", "digits", "unseen") for number in layout.numbers(how)]
        runners = [runner for runner in map(matcher.runner, numbers) if self._holds(runner)]
        # What may begin before its first literal is sought everywhere: in the normalized text, and in the text as sent.
        self._everywhere = [
            compile_regex("|".join(self._source(one) for one in runners if one.on_text is on_text) or "(?!)")
            for on_text in (False, True)
        ]
        self._reach_chars = max((runner.reach_chars for runner in runners), default=0)
        words = [
            written(index, word)
            for index in ("words", "beyond")
            for word in layout.literals(index, Direction.OUTBOUND).values()
        ]
        self._heads = {word[:end] for word in words if _BLANK_OR_BEYOND.search(word) for end in range(1, len(word))}
        self._longest_head = max(map(len, self._heads), default=0)

    def _holds(self, runner: Runner) -> bool:
        is_held = self._is_held.get(runner.number)
        if is_held is None:
            brief = self._brief(runner.number)
            is_held = brief is not None and self.holds(brief.category, brief.severity)
            self._is_held[runner.number] = is_held
        return is_held

    def masks(self, category: str) -> bool:
        """Tell whether matches of a category are masked."""
        return self._policy.category_actions.get(category) == "redact"

    def holds(self, category: str, severity: Severity) -> bool:
        """Tell whether matches of a category and a severity may not leave unseen."""
        points = points_of(category, severity, self._policy)
        return points >= min(HELD_POINTS, self._policy.block_at) or self.masks(category)

    def first(self, view: View, begin: int, tried: int) -> int:
        """Return where the first match begins that `view` ends within, a place of its source; its end if none does.

        begin: no match begins before it, a place of the normalized text. tried: where the text ended before, when no
        match had begun before that.
        """
        text, source = view.text, view.source
        source_begin, source_tried = (view.position(at) if at < len(text) else len(source) for at in (begin, tried))
        first, source_first = self._head(text), len(source)
        for runner, low, high in self._matcher.leads(view, begin, Direction.OUTBOUND):
            if not self._holds(runner):
                continue
            subject, least = (source, source_begin) if runner.on_text else (text, begin)
            found = self._regex(runner).search(subject, max(low, least, len(subject) - runner.reach_chars))
            if found is None or found.start() > high:
                continue
            if runner.on_text:
                source_first = min(source_first, found.start())
            else:
                first = min(first, found.start())
        of_text, of_source = self._everywhere
        if found := of_text.search(text, max(tried, len(text) - self._reach_chars)):
            first = min(first, found.start())
        if found := of_source.search(source, max(source_tried, len(source) - self._reach_chars)):
            source_first = min(source_first, found.start())
        return min(source_first, view.position(first) if first < len(text) else len(source))

    def _head(self, text: str) -> int:
        """Return where the beginning of a literal begins that the text ends in; a whole word is held anyway."""
        for start in range(max(0, len(text) - self._longest_head), len(text)):
            if text[start:].translate(_DIGITS) in self._heads:
                return start
        return len(text)

    def _regex(self, runner: Runner) -> re.Pattern[str]:
        found = self._regexes.get(runner.number)
        if found is None:
            found = self._regexes[runner.number] = compile_regex(self._source(runner))
        return found

    def _source(self, runner: Runner) -> str:
        return unfinished(self._matcher.source(runner.number))


class Released(NamedTuple):
    """A part of a reply that may leave. chars: how long it was before it was masked."""

    chars: int
    text: str


class StreamScanner:
    """Reads one reply piece by piece. is_stopped: nothing more is let out, since something was found that may block."""

    __slots__ = ("_begin", "_fresh_chars", "_normalize", "_openings", "_scan", "_text", "_tried", "is_stopped")

    def __init__(
        self, openings: Openings | None, normalize: Callable[[str], View], scan: Callable[[str], ScanResult]
    ) -> None:
        """openings: None to hold nothing but unfinished words. scan: returns what is found in a text of a reply."""
        self.is_stopped = False
        self._openings = openings
        self._scan = scan
        self._normalize = normalize
        self._text = ""  # the end of what was let out, and from `_begin` on what is held
        self._begin = 0
        self._tried = 0  # no unfinished match begins before it
        self._fresh_chars = 0

    def feed(self, piece: str) -> list[Released]:
        """Take the next piece of the text; return what may leave now, masked where the policy says so."""
        self.is_stopped |= len(piece) > LONGEST_PIECE_CHARS
        if self.is_stopped:
            return []
        self._text += piece
        self._fresh_chars += len(piece)
        if self._fresh_chars < STEP_CHARS:
            return []
        self._fresh_chars = 0
        text, begin = self._text, self._begin
        end, masks = self._settled()
        self.is_stopped |= len(text) - end > MOST_HELD_CHARS
        released, place = [], begin
        for start, stop in merged(masks):
            released += [Released(start - place, text[place:start])] if place < start else []
            released.append(Released(stop - start, mask(text[start:stop])))
            place = stop
        released += [Released(end - place, text[place:end])] if place < end else []
        kept = max(0, end - _CONTEXT_CHARS)
        self._text, self._begin, self._tried = text[kept:], end - kept, max(self._tried, end) - kept
        return released

    def _settled(self) -> tuple[int, list[tuple[int, int]]]:
        """Return up to where the text may leave, and the spans before that which are masked."""
        text, begin, openings = self._text, self._begin, self._openings
        word = _WORD.search(text, begin)
        end = word.start() if word else len(text)
        if end <= begin or openings is None:
            return end, []
        view = self._normalize(text)
        offsets = range(len(view.text))
        low, tried = (bisect_left(offsets, place, key=view.position) for place in (begin, self._tried))
        first = openings.first(view, low, tried)
        # A match that had not begun by now begins behind what was read, or where the first one does.
        self._tried = min(first, len(text))
        end = min(end, first)
        masks = []
        for found in self._scan(text).detections:
            if not openings.holds(found.category, found.severity):
                continue
            spans = [span for span in found.spans or ((found.start, found.end),) if span[1] > begin]
            if openings.masks(found.category):
                masks += spans
            elif spans:
                self.is_stopped = True
                end = min(end, *(start for start, _ in spans))
        for start, stop in sorted(masks, reverse=True):
            if stop > end:
                end = min(end, start)
        return max(begin, end), [(max(start, begin), stop) for start, stop in masks if start < end]
