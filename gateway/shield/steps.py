"""What a stream holds back after each letter, told by two machines that are made while they run. Asks no rule.

Theory of operation. How much of a text is held depends on little of it: on the shape of the run or word it ends with,
and on the last letters, with which a literal may have begun. Either is a state. Where a letter leads from there is
worked out when it first comes, and costs one look-up from then on. What the rules must be asked about is marked: a
literal that is complete, and what no state can remember, where the machine is lost until it is told anew.

A state keeps no more of a text than it needs: letters of a word with which no key can begin are all the same letter,
and what stands before the longest beginning of a literal is a letter, or none.
"""

import re
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer
from gateway.shield.runs import CODE_LETTERS, HEAD_CHARS, LONG_RUN_CHARS, Runs, is_long
from gateway.shield.watched import INNER_CHARS, KEPT_CHARS, SPACELESS, Lead, Leads

# How a letter left the text: plain; of a shape that may hide another text; with a literal complete; with a match under
# way, which the rules tell; or so that only a look tells more. Two of them are both.
PLAIN, ODD, MET, OPEN, LOST = 0, 1, 2, 4, 8
# What is longer is not remembered, nor are more states than so many, and where letters lead from there.
_RUN_CHARS = 48
MOST_STEPS = 49_152
# So many characters tell with which letters a literal may have begun.
_TOLD_CHARS = 40
# Stand for any letter, or none, before those of a literal; and for any of a script without blanks between words.
_LETTER, _NO_LETTER, _SPACELESS_LETTER = "x", ".", "\u4e00"
# Stands for a blank behind another.
_MORE = "\x01"
_BLANKS = " " + _MORE
_groups = re.compile("[A-Za-z]+")
# A run ended behind more than one letter; a word behind a single letter.
_ended = re.compile(r"[A-Za-z0-9]{2}([\"'()\[\]{},]{1,3})\Z").search
_after_letter = re.compile(r"[A-Za-z][ \n][A-Za-z]{2,}").fullmatch
_may_begin_code = re.compile("[0-9+(]").search


class Met(NamedTuple):
    """A literal that is complete: how long it is, and where it leads."""

    size: int
    leads: tuple[Lead, ...]


class Begun(NamedTuple):
    """A literal that may have begun: so many characters are there of it, in the text and of its letters."""

    chars: int
    letters: int


class State(dict[str, "State"]):
    """What a machine remembers of a text, and where each letter leads that came so far.

    kept: what it remembers. held_chars: how much is held. mark: as above. met: the literals that are complete.
    begun: those that may have begun, and are held.
    """

    __slots__ = ("_machine", "begun", "held_chars", "kept", "mark", "met")

    def __init__(self, machine: "Machine", kept: str, held_chars: int, mark: int) -> None:
        super().__init__()
        self._machine = machine
        self.kept = kept
        self.held_chars = held_chars
        self.mark = mark
        self.met: tuple[Met, ...] = ()
        self.begun: tuple[Begun, ...] = ()

    def __missing__(self, char: str) -> "State":
        machine = self._machine
        state = machine.lost
        if self is not state:
            state = self[char] = machine.step(self.kept, char)
        return state


class Pair(dict[str, "Pair"]):
    """A state of each of two machines that read the same text, and where each letter leads both.

    held_chars: the more that one of them holds. mark: what both say of the last letter.
    """

    __slots__ = ("_pairs", "begun", "held_chars", "mark", "shape")

    def __init__(self, pairs: "Pairs", shape: State, begun: State) -> None:
        super().__init__()
        self._pairs = pairs
        self.shape = shape
        self.begun = begun
        self.held_chars = max(shape.held_chars, begun.held_chars)
        self.mark = shape.mark | begun.mark

    def __missing__(self, char: str) -> "Pair":
        pairs = self._pairs
        pairs.make_room()
        pair = self[char] = pairs.of(self.shape[char], self.begun[char])
        return pair


class Pairs:
    """Joins the states of two machines, so that a letter costs one look-up for both. lost: where both are."""

    __slots__ = ("_beginnings", "_known", "_shapes", "_steps", "lost")

    def __init__(self, shapes: "Shapes", beginnings: "Beginnings") -> None:
        self._shapes = shapes
        self._beginnings = beginnings
        self._known: dict[tuple[int, int], Pair] = {}
        self._steps = 0
        self.lost = Pair(self, shapes.lost, beginnings.lost)

    def __len__(self) -> int:
        """Return how many pairs are remembered."""
        return len(self._known)

    def told(self, text: str, begin: int, pair: Pair | None = None) -> Pair:
        """Return the pair of a text that was looked at to its end, as far as it is told. begin: where its last run is.

        pair: what is known of it.
        """
        pair = self.lost if pair is None else pair
        shape, begun = pair.shape, pair.begun
        if shape is self.lost.shape:
            shape = self._shapes.told(text[begin:])
        if begun is self.lost.begun:
            begun = self._beginnings.told(text)
        return self.of(shape, begun)

    def of(self, shape: State, begun: State) -> Pair:
        """Return the pair of two states."""
        # Who is known keeps its states, and so their numbers.
        key = id(shape), id(begun)
        pair = self._known.get(key)
        if pair is None:
            self.make_room()
            pair = self._known.setdefault(key, Pair(self, shape, begun))
        return pair

    def make_room(self) -> None:
        """Count one more thing to remember; forget all when it is too much."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._steps, self._known = 0, {}


class Machine:
    """Makes states. Threads may share it: what two make at once is the same. lost: the state that remembers nothing."""

    __slots__ = ("_states", "_steps", "lost")

    def __init__(self) -> None:
        self._states: dict[tuple[str | int, ...], State] = {}
        self._steps = 0
        self.lost = State(self, "", 0, LOST)

    def __len__(self) -> int:
        """Return how many states are remembered."""
        return len(self._states)

    def after(self, kept: str, char: str) -> State:
        """Return the state that a character leads to, as worked out anew."""
        raise NotImplementedError

    def step(self, kept: str, char: str) -> State:
        """Work out and remember where a character leads."""
        self._make_room()
        return self.after(kept, char)

    def _state(self, kept: str, held_chars: int, mark: int, *met: str | int) -> State:
        key = kept, held_chars, mark, *met
        state = self._states.get(key)
        if state is None:
            self._make_room()
            state = self._states.setdefault(key, State(self, kept, held_chars, mark))
        return state

    def _make_room(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            # Who stands in a state goes on from there.
            self._steps, self._states = 0, {}


class Shapes(Machine):
    """Remembers the run that a text ends with: what is held for its shape."""

    __slots__ = ("_runs", "_same")

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._runs = runs
        self._same = _same_letters(runs)

    def after(self, kept: str, char: str) -> State:
        """Return the state that a character leads to."""
        return self.told(kept + char)

    def told(self, run: str) -> State:
        """Return the state of a text that ends with a run, in so far as it remembers that."""
        runs, size = self._runs, len(run)
        plain = runs.plain(run, 0) if size <= _RUN_CHARS else None
        if plain is not None:
            begin, live, mark = plain.begin, plain.live, PLAIN
        elif size > _RUN_CHARS or (size >= LONG_RUN_CHARS and is_long(run, 0)):
            return self.lost
        else:
            live = runs.live(run)
            begin = min(live, max(run.rfind(" "), run.rfind("\n")) + 1)
            mark = PLAIN if run.isspace() else ODD
        kept = self._kept(run[begin:], is_held=live < size)
        return self._state(kept, size - live, mark)

    def _kept(self, run: str, *, is_held: bool) -> str:
        """Return a run in which all is the same that makes no difference."""
        same = self._same
        if not same or not run:
            return run
        if not run.isascii():
            if run.isalpha() and max(run) < SPACELESS:
                return same[ord("a")] * len(run)
            return _SPACELESS_LETTER if len(run) > 1 and min(run[-2:]) >= SPACELESS and run[-2:].isalnum() else run
        if not is_held:
            ended = _ended(run)
            if ended:
                return same[ord("a")] * 2 + ended[1]
            if _after_letter(run):
                run = run[2:]
        return squash_digits(_groups.sub(self._same_group, run))

    def _same_group(self, group: "re.Match[str]") -> str:
        letters = group[0]
        if self._runs.is_head(letters):
            return letters[:HEAD_CHARS] + letters[HEAD_CHARS:].translate(self._same)
        # Letters that may stand in a code of characters go on with one.
        is_code = not letters.strip(CODE_LETTERS) and _may_begin_code(group.string, 0, group.start())
        return letters if is_code else letters.translate(self._same)


class Beginnings(Machine):
    """Remembers the last letters: what is held for a literal that may have begun with them."""

    __slots__ = ("_fold", "_leads")

    def __init__(self, leads: Leads, fold: Normalizer) -> None:
        super().__init__()
        self._leads = leads
        self._fold = fold

    def after(self, kept: str, char: str) -> State:
        """Return the state that a character leads to."""
        letter = squash_digits(self._fold.fold_char(char))
        if len(letter) != 1 or len(kept) > _RUN_CHARS or (letter == " " and not char.isspace()):
            return self.lost
        if letter == " " and kept[-1] in _BLANKS:
            # Of several blanks one counts.
            return self._told(kept + _MORE if self._begun(kept) else kept)
        is_capital = kept[-1].isalpha() and char.isupper() and letter.upper().lower() == letter
        kept += letter.upper() if is_capital else letter
        return self._told(kept, self._met(kept))

    def told(self, text: str) -> State:
        """Return the state of a text that was looked at to its end, if that is long enough to tell it."""
        tail = text[-_TOLD_CHARS:]
        state = self._told(_LETTER if text[:-_TOLD_CHARS][-1:].isalpha() else _NO_LETTER)
        for char in tail:
            state = state[char]
        return state if len(tail) == len(text) or len("".join(tail.split())) > KEPT_CHARS else self.lost

    def _told(self, letters: str, met: tuple[Met, ...] = ()) -> State:
        """Return the state of a text that ends so: with the longest end with which a literal may begin."""
        prefixes, blank_prefixes = self._leads.prefixes, self._leads.blank_prefixes
        tails = _tails(letters)
        place = next((at for at, tail in tails if tail in prefixes or tail in blank_prefixes), len(letters))
        before = letters[place - 1]
        kept = letters[place:]
        # Of blanks that are not part of a literal it counts that they are there.
        kept = (_LETTER if before.isalpha() else " " if not kept and before in _BLANKS else _NO_LETTER) + kept
        begun = self._begun(letters)
        held_chars = max((one.chars for one in begun), default=0)
        longest = tails[-met[0].size][1] if met else ""
        state = self._state(kept, held_chars, MET if met else PLAIN, longest, *(one.size for one in met))
        state.met, state.begun = met, begun
        return state

    def _begun(self, letters: str) -> tuple[Begun, ...]:
        """Return the literals that are held and may have begun."""
        held = self._leads.held
        return tuple(
            Begun(len(letters) - place, len(tail))
            for place, tail in _tails(letters)
            if tail in held and self._is_begun(letters, tail, place)
        )

    def _is_begun(self, letters: str, tail: str, place: int) -> bool:
        first = letters[place]
        if not (first.isalpha() and letters[place - 1].isalpha()) or first >= SPACELESS or first.isupper():
            return True
        return len(tail) >= INNER_CHARS and tail in self._leads.inside

    def _met(self, letters: str) -> tuple[Met, ...]:
        """Return the literals that are complete with the last letter, the longest first."""
        leads, met = self._leads, []
        for place, tail in _tails(letters):
            led = leads.led.get(tail)
            if led:
                is_inside = letters[place - 1].isalpha() and not letters[place].isupper()
                if not (is_inside and leads.is_at_word(tail)):
                    met.append(Met(len(tail), led))
        return tuple(met)


def _tails(letters: str) -> list[tuple[int, str]]:
    """List how some letters end, from the second one on, each with the place where that begins."""
    low = letters.lower()
    if _MORE not in low:
        return [(place, low[place:]) for place in range(1, len(low))]
    return [(place, low[place:].replace(_MORE, "")) for place in range(1, len(low)) if low[place] != _MORE]


def _same_letters(runs: Runs) -> dict[int, str]:
    """Map letters to one with which no key begins, and which is in no code; capitals to a capital."""
    known: dict[int, str] = {}
    for letters in (ascii_lowercase, ascii_uppercase):
        free = [char for char in letters if char not in CODE_LETTERS and not runs.is_head(char)]
        if not free:
            return {}
        known |= dict.fromkeys(map(ord, letters), free[0])
    return known
