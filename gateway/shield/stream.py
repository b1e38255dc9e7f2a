"""Scan a text that arrives in pieces: what can no longer be part of a blocked match goes out, the rest is held.

Theory of operation. A match that blocks is one whose points, on top of the score so far, reach the policy's `block_at`.
A `Watch` over the rules worth that much says where the earliest unfinished match could begin; all before that place is
final. If a match may stand there, that stretch is scanned by `Shield.scan` with what surrounds it, and the score so far
is judged anew; so it is every SCORED_CHARS characters, for the rules that are not watched and for disguises that no
beginning tells, and oftener once the score is one to review. When the score blocks, nothing more goes out. `finish`
scans the whole text: its result is, whatever the cuts, that of `Shield.scan`.

What the promise leaves out: the signs and white space a match begins with; of a key that begins with any letters at all
those before its first digit, sign or capital; and the disguises that move letters about (rot13, backwards, slips, leet
over several words), which block when they are seen.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from gateway.shield.cursor import Cursor
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.shield.engine import Shield
from gateway.shield.mention import MENTIONABLE, SAYABLE, Mentions, lowered
from gateway.shield.ordinary import AFTER_CHARS, is_undecided
from gateway.shield.runs import LONG_RUN_CHARS, RUN, RUN_CHARS
from gateway.shield.scoring import DEFAULT_POLICY, POINTS, Policy, judge
from gateway.shield.steps import BLOCKED, LOST, MET, ODD, OPEN, PLAIN, Met, State
from gateway.shield.watch import Watch
from gateway.shield.watches import making, watch_of

# So often the score is brought up to date with rules that are not watched; and so often once it is one to review, and
# before so much goes out at once.
SCORED_CHARS = 2_048
CLOSELY_SCORED_CHARS = 256
_CONTEXT_CHARS = 256
# When more than so much is held, it is looked at again once it has grown by one part of so many.
_LONG_CHARS = 128
_GROWTH = 8
# A piece that is longer is looked at as a whole.
_STEPPED_CHARS = 256
# Letters that go on with a word or a run that is held are looked at when there are so many.
_IDLE_CHARS = 16
_in_run = re.compile(f"[{re.escape(RUN)}]*").fullmatch
_ends_in_run = re.compile(f"[{re.escape(RUN)}]{{{LONG_RUN_CHARS},}}").fullmatch
# When a watch is made while pieces come, one step is gone for so many characters.
_CHARS_A_STEP = 2
# While it is open whether a match is a mention, it is looked at again for so many more.
_WAITING_CHARS = 16


class Released(NamedTuple):
    """What one piece brought.

    text: what may go out now. verdict, score, detections: of the text so far; those of `finish` are the whole text's,
    and hold. result: the result of the whole text, from `finish` alone.
    """

    text: str
    verdict: Verdict
    score: int
    detections: tuple[Detection, ...] = ()
    result: ScanResult | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether nothing more may go out."""
        return self.verdict is Verdict.BLOCK


# Without a look at what is given: a piece is as small as that.
_released: Callable[[tuple[Any, ...]], Released] = partial(tuple.__new__, Released)


class StreamScanner:
    """One text in pieces. Keeps the whole of it until `finish`; not for use by two threads at once.

    Never holds back more than `most_chars` characters, unless the text is blocked.
    """

    __slots__ = (
        "_at", "_base", "_begun", "_coming", "_direction", "_found", "_idle_chars", "_mark", "_next_chars", "_parts",
        "_policy", "_said", "_scored", "_scored_chars", "_shape", "_shield", "_state", "_text", "_waits", "_watch",
    )  # fmt: skip

    def __init__(self, shield: Shield, direction: Direction, policy: Policy = DEFAULT_POLICY) -> None:
        """shield, direction, policy: what the pieces are scanned with, as `Shield.scan` would the whole text."""
        self._shield = shield
        self._direction = direction
        self._policy = policy
        self._parts: list[str] = []
        # What is held, what went out and is not scored yet, and some more before it.
        self._text = ""
        # Where in the whole text that begins, and how much of it is scored.
        self._base = self._scored = 0
        # How much of it may be unscored.
        self._scored_chars = SCORED_CHARS
        self._at = Cursor()
        # How long the text must be to be looked at again.
        self._next_chars = 1
        self._found: dict[str, Detection] = {}
        self._state = Released("", Verdict.ALLOW, 0)
        # What that says beside the text.
        self._said = self._state[1:]
        self._watch = watch_of(shield, direction, policy, policy.block_at)
        # The steps in which one over more rules is made, while it is wanted and not there: till then all is held.
        self._coming: Generator[None, None, Watch] | None = None
        # Till it is so long, letters that go on with what is held, by a match or a run, are not looked at.
        self._idle_chars = 0
        # What the machines remember of it, and what they have marked since the rules were asked last.
        self._shape, self._begun = self._watch.shapes.told(""), self._watch.beginnings.told("")
        self._mark = PLAIN
        # Whether a match is held that what comes next may make a mention, or none.
        self._waits = False

    @property
    def most_chars(self) -> int:
        """The most that is held back, one piece of whatever length aside."""
        return self._watch.most_chars + self._watch.most_chars // _GROWTH + AFTER_CHARS

    @property
    def held_chars(self) -> int:
        """How much is held back now; when the text is blocked, how much was then."""
        return len(self._text) - self._at.out

    def feed(self, piece: str) -> Released:
        """Take the next piece, and return what may go out."""
        self._parts.append(piece)
        shape, begun = self._shape, self._begun
        before, mark, at = begun, self._mark, self._at
        if mark == BLOCKED:
            return self._state
        self._text = text = self._text + piece
        if len(piece) <= _STEPPED_CHARS:
            for char in piece:
                shape = shape[char]
                begun = begun[char]
                mark |= shape.mark | begun.mark
        else:
            shape, begun, mark = self._watch.shapes.lost, self._watch.beginnings.lost, LOST
        self._shape, self._begun = shape, begun
        size, out = len(text), at.out
        held, others = shape.held_chars, begun.held_chars
        live = size - (held if held > others else others)
        if mark <= ODD:
            if live <= out:
                self._mark = mark
                return self._state
            if (
                live - out <= CLOSELY_SCORED_CHARS
                and live - self._scored <= self._scored_chars
                and not (mark and self._watch.is_strange(text, out, live))
            ):
                at.out, self._mark = live, shape.mark
                return _released((text[out:live], *self._said))
        if self._coming and not self._is_made(len(piece)):
            return self._state
        if size < self._next_chars or (size < self._idle_chars and mark & LOST and _in_run(piece)):
            self._mark = LOST
            return self._state
        watch = self._watch
        if self._mark & LOST or begun is watch.beginnings.lost:
            live = watch.live(text, at)
        else:
            met = _met(before, text, len(piece)) if mark & MET else ()
            if mark & LOST or (mark & ODD and watch.is_strange(text, out, live)):
                live = watch.shaped(text, at, met, begun)
            else:
                live = watch.weighed(text, at, met, begun, live)
                if not self._is_full(live) and size - live <= _LONG_CHARS:
                    at.out, self._idle_chars = live, 0
                    self._mark = OPEN if at.opens else shape.mark & ODD
                    return _released((text[out:live], *self._said)) if out < live else self._state
        return self._looked(live, len(piece))

    def _is_full(self, live: int) -> bool:
        """Say whether what stands before `live` is to be scanned before it goes out."""
        at = self._at
        return (
            self._waits
            or at.is_suspect
            or live - self._scored > self._scored_chars
            or live - at.out > CLOSELY_SCORED_CHARS
        )

    def _looked(self, live: int, piece_chars: int) -> Released:
        """Return what may go out of what was looked at to its end."""
        at, text, out, watch = self._at, self._text, self._at.out, self._watch
        size = len(text)
        if self._is_full(live):
            released = self._release_scored(live)
        else:
            at.out = live
            # What is long is not looked at again for every letter: the work stays in proportion to the text.
            asked = size - live
            self._next_chars = size + (asked // _GROWTH if asked > _LONG_CHARS else 1)
            released = text[out:live]
        self._mark, self._idle_chars = LOST, 0
        if self._state.is_blocked:
            # Nothing more is looked at, nor goes out.
            self._mark, self._text = BLOCKED, text[at.out :]
            self._base += at.out
            at.out = 0
        elif piece_chars <= _STEPPED_CHARS and not (self._waits or self._coming or self._watch is not watch):
            self._find_way()
        return _released((released, *self._said)) if released else self._state

    def _find_way(self) -> None:
        """Tell the machines that are lost where they are, and how long letters that go on are only held."""
        shapes, beginnings = self._watch.shapes, self._watch.beginnings
        if self._begun is beginnings.lost:
            self._begun = beginnings.told(self._text)
        if self._shape is shapes.lost:
            self._shape = shapes.told(self._text[self._at.begin :])
        shape = self._shape
        self._mark = OPEN if self._at.opens else shape.mark & ODD
        size = len(self._text)
        held = size - self._at.out
        if shape is shapes.lost and _ends_in_run(self._text, self._at.out):
            self._idle_chars = size + max(_IDLE_CHARS, held // _GROWTH)

    def finish(self) -> Released:
        """Scan the whole text and return the rest of it, or nothing if it is blocked. Nothing may be fed after it."""
        whole = "".join(self._parts)
        result = self._shield.scan(whole, self._direction, self._policy)
        is_blocked = result.verdict is Verdict.BLOCK
        text = "" if is_blocked else whole[self._base + self._at.out :]
        self._at.out = len(self._text)
        return Released(text, result.verdict, result.score, result.detections, result)

    def _release_scored(self, live: int) -> str:
        """Release what stands before `live`, unless what is found there blocks. Forget what is scored."""
        at, text = self._at, self._text
        watch, live = self._watch, self._score(live)
        if self._state.verdict is Verdict.BLOCK:
            return ""
        if self._coming or self._watch is not watch:
            live = at.out  # more rules are to be asked of what is held
        released, at.out = text[at.out : live], live
        cut = min(live - max(_CONTEXT_CHARS, self._watch.behind_chars), self._watch.first_open(text, at))
        if cut > 0:
            self._text = text[cut:]
            self._base += cut
            self._scored -= cut
            at.move(cut, len(self._text))
        self._next_chars = len(self._text) + (_WAITING_CHARS if self._waits else 1)
        return released

    def _score(self, live: int) -> int:
        """Scan what went out lately and what is held, and count what was found before `live`, which is final.

        Returns what may go out: nothing of a match that blocks or not by what follows it.
        """
        out, base = self._at.out, self._base
        final = max(live, self._at.final)
        # What ends before was found before, or looks like a match only because the text is cut there.
        done, self._scored = self._scored, live
        fresh = [
            one
            for one in self._shield.scan(self._text, self._direction, self._policy).detections
            if done < one.end
            and (one.start < live or one.end <= final)
            and (out <= one.start or one.end <= final)
            and self._is_news(one)
        ]
        self._waits = False
        if not fresh:
            return live
        found = self._found | {one.rule: replace(one, start=one.start + base, end=one.end + base) for one in fresh}
        judged = judge(found.values(), self._policy)
        undecided = self._undecided(fresh)
        # What blocks may turn out a mention, and what is a mention so far may turn out to be meant.
        meant = [replace(found[one.rule], severity=severity) for one, severity in undecided]
        if undecided and self._blocks(found | {one.rule: one for one in meant}):
            self._waits, self._scored = True, done
            return max(out, min(one.start for one, _ in undecided))
        self._found = found
        self._state = Released("", judged.verdict, judged.score, judged.detections)
        self._said = self._state[1:]
        if judged.verdict is not Verdict.ALLOW:
            self._scored_chars = CLOSELY_SCORED_CHARS
        if judged.verdict is not Verdict.BLOCK:
            self._coming = self._making()
            self._is_made(0)
        return live

    def _is_made(self, chars: int) -> bool:
        """Go some steps on with the watch that the score asks for, the more the more came; say whether it is there."""
        steps = self._coming
        is_long = self.held_chars > RUN_CHARS
        while steps:
            try:
                next(steps)
            except StopIteration as made:
                self._look_out(made.value)
                return True
            except BaseException:
                self._coming = self._making()  # till it is there all is held
                raise
            chars -= _CHARS_A_STEP
            if chars <= 0 and not is_long:
                break
        self._mark = LOST
        return False

    def _making(self) -> Generator[None, None, Watch]:
        """Return the steps in which the watch is made that the score asks for."""
        return making(self._shield, self._direction, self._policy, self._policy.block_at - self._state.score)

    def _look_out(self, watch: Watch) -> None:
        """Look out for other rules, in what is held, too."""
        self._coming = None
        if watch is not self._watch:
            at = self._at
            first = self._watch.first_open(self._text[: at.seen], at)
            self._watch, self._shape, self._begun = watch, watch.shapes.lost, watch.beginnings.lost
            at.seek(max(0, min(first, at.out - max(_CONTEXT_CHARS, watch.behind_chars))))

    def _undecided(self, fresh: list[Detection]) -> list[tuple[Detection, Severity]]:
        """Return the detections that what comes next may make mentions, or none, and how severe they are if none."""
        undecided = [
            one
            for one in fresh
            if one.category in MENTIONABLE
            and one.view in ("text", "normalized")
            and (self._lacks_words(one) or is_undecided(self._text, one.start, one.end, one.category))
        ]
        if not undecided:
            return []
        severities = {brief.id: brief.severity for _, brief in self._shield.counted(self._direction, self._policy)}
        mentions = Mentions(self._text)
        meant = (
            lowered(severities.get(one.rule, one.severity), mentions.level(one.start, one.category))
            for one in undecided
        )
        return [
            (one, max(one.severity, severity, key=POINTS.__getitem__))
            for one, severity in zip(undecided, meant, strict=True)
        ]

    def _lacks_words(self, one: Detection) -> bool:
        """Say whether the words that are still to come may bear out what a prompt's match is, or cast doubt on it."""
        is_asked = self._direction is Direction.INBOUND and one.category in SAYABLE
        return is_asked and len(self._text) - one.end < AFTER_CHARS

    def _blocks(self, found: dict[str, Detection]) -> bool:
        return judge(found.values(), self._policy).verdict is Verdict.BLOCK

    def _is_news(self, one: Detection) -> bool:
        """Say whether a rule was not found before, or only where it was talked about."""
        before = self._found.get(one.rule)
        return before is None or POINTS[one.severity] > POINTS[before.severity]


def _met(begun: State, text: str, size: int) -> list[tuple[int, Met]]:
    """List the literals that are complete with the last letters of a text, each with how many come after it.

    begun: the state before those. size: how many they are; of several blanks one counts.
    """
    found: list[tuple[int, Met]] = []
    count = 0
    for place in range(len(text) - size, len(text)):
        begun = begun[text[place]]
        count += not (place and text[place].isspace() and text[place - 1].isspace())
        found += [(count, met) for met in begun.met]
    return [(count - at, met) for at, met in found]


def make_ready(shield: Shield, direction: Direction, policy: Policy = DEFAULT_POLICY) -> Iterator[None]:
    """Make, in steps of a few milliseconds, what the first stream of a policy needs: between them others may run."""
    yield from making(shield, direction, policy, policy.block_at)
