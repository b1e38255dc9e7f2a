"""How much of a text is held for what rules' literals begin with, remembered letter by letter. Asks no rule.

Theory of operation. One of the two machines of `steps`. A state keeps the last letters, from where on a literal may
have begun; what stands before them is a letter, or none. A literal that is complete may be one of a rule that wants
certain words behind it. While these come they are remembered like the literal. Most stop soon, and no rule hears of
them; what is through, or where almost anything leads on, is met.
"""

from collections.abc import Iterable

from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer
from gateway.shield.steps import KEPT_RUN_CHARS, MET, PLAIN, Begun, Due, Machine, Met, State
from gateway.shield.watched import INNER_CHARS, KEPT_CHARS, SPACELESS, Lead, Leads
from gateway.shield.ways import Room, Way

# So many characters tell with which letters a literal may have begun.
_TOLD_CHARS = 40
# A literal and what is waited for behind it are no longer.
_WAITED_LETTERS = 24
# Stand for any letter, or none, before those of a literal.
_LETTER, _NO_LETTER = "x", "."
# Stands for a blank behind another.
_MORE = "\x01"
_BLANKS = " " + _MORE


class Beginnings(Machine):
    """Remembers the last letters: what is held for a literal that may have begun with them."""

    __slots__ = ("_awaited", "_fold", "_leads")

    def __init__(self, leads: Leads, fold: Normalizer, room: Room) -> None:
        """room: where the ways behind literals are remembered."""
        super().__init__()
        self._leads = leads
        self._fold = fold
        self._forget()
        room.enter(self._forget)

    def _forget(self) -> None:
        # Of literals, the leads to follow at once, and those that wait.
        self._awaited: dict[str, tuple[tuple[Lead, ...], tuple[tuple[Lead, Way], ...]]] = {}

    def after(self, state: State, char: str) -> State:
        """Return the state that a character leads to."""
        kept, letter = state.kept, self._fold.fold_char(char)
        if len(letter) != 1 or len(kept) > KEPT_RUN_CHARS or (letter == " " and not char.isspace()):
            return self.lost
        if letter == " " and kept[-1] in _BLANKS:
            # Of several blanks one counts.
            if not state.begun:
                return self._told(kept, state.places, state.due)
            due = [one._replace(chars=one.chars + 1) for one in state.due]
            return self._told(kept + _MORE, state.places, due)
        if state.places and not self._goes_on(state, letter):
            return self._without_longest(state)[char]
        is_capital = kept[-1].isalpha() and char.isupper() and letter.upper().lower() == letter
        kept += letter.upper() if is_capital else squash_digits(letter)
        met: dict[int, tuple[Lead, ...]] = {}
        due = []
        for one in state.due:
            way = one.way[letter]
            is_forked = letter in one.way.branches
            if way.steps or is_forked:
                one = Due(one.chars + 1, one.letters + 1, one.lead, way)
                if is_forked or letter.isdigit() or one.letters >= _WAITED_LETTERS or _is_told(way):
                    met[one.letters] = (*met.get(one.letters, ()), one.lead)
                else:
                    due.append(one)
        places = (*state.places, len(kept) - 1)
        for place in places:
            is_inside = kept[place - 1].isalpha() and not kept[place].isupper()
            tail = _tail(kept, place)
            led = self._leads.led.get(tail)
            if led and not (is_inside and self._leads.is_at_word(tail)):
                at_once, waiting = self._awaited.get(tail) or self._await(tail, led)
                if at_once:
                    met[len(tail)] = met.get(len(tail), ()) + at_once
                due += [Due(len(kept) - place, len(tail), lead, way) for lead, way in waiting]
        return self._told(kept, places, due, tuple(Met(size, met[size]) for size in sorted(met, reverse=True)))

    def _goes_on(self, state: State, letter: str) -> bool:
        """Say whether a letter goes on with the longest end of a state with which something may begin."""
        leads, place = self._leads, state.places[0]
        tail = _tail(state.kept, place) + squash_digits(letter)
        return (
            tail in leads.prefixes
            or tail in leads.blank_prefixes
            or tail in leads.led
            or any(
                one.chars == len(state.kept) - place and (one.way[letter].steps or letter in one.way.branches)
                for one in state.due
            )
        )

    def _without_longest(self, state: State) -> State:
        """Return the state that has forgotten the longest end of another with which something may begin."""
        shorter = state.shorter
        if shorter is None:
            due = [one for one in state.due if one.chars < len(state.kept) - state.places[0]]
            shorter = state.shorter = self._told(state.kept, state.places[1:], due)
        return shorter

    def told(self, text: str) -> State:
        """Return the state of a text that was looked at to its end, if that is long enough to tell it."""
        tail = text[-_TOLD_CHARS:]
        state = self._told(_LETTER if text[:-_TOLD_CHARS][-1:].isalpha() else _NO_LETTER)
        for char in tail:
            state = state[char]
        return state if len(tail) == len(text) or len("".join(tail.split())) > KEPT_CHARS else self.lost

    def _await(self, word: str, led: tuple[Lead, ...]) -> tuple[tuple[Lead, ...], tuple[tuple[Lead, Way], ...]]:
        """Return which leads of a literal are to be followed at once, and which wait for what comes behind it."""
        at_once, waiting = [], []
        for lead in led:
            way = None if "0" in word else lead.way(word)
            if way is None or _is_told(way):
                at_once.append(lead)
            elif way.steps:
                waiting.append((lead, way))
        awaited = self._awaited[word] = tuple(at_once), tuple(waiting)
        return awaited

    def _told(
        self, letters: str, places: Iterable[int] = (), due: Iterable[Due] = (), met: tuple[Met, ...] = ()
    ) -> State:
        """Return the state of a text that ends so: with the longest end with which something may begin.

        places: where that may be.
        """
        leads, size = self._leads, len(letters)
        begun = [Begun(one.chars, one.letters) for one in due if one.lead.is_held]
        alive = {size - one.chars for one in due}
        for place in places:
            tail = _tail(letters, place)
            if tail in leads.prefixes or tail in leads.blank_prefixes:
                alive.add(place)
                if tail in leads.held and self._is_begun(letters, tail, place):
                    begun.append(Begun(size - place, len(tail)))
        first = min(alive, default=size)
        before = letters[first - 1]
        kept = letters[first:]
        # Of blanks that are not part of a literal it counts that they are there.
        kept = (_LETTER if before.isalpha() else " " if not kept and before in _BLANKS else _NO_LETTER) + kept
        held_chars = max((one.chars for one in begun), default=0)
        state = State(self, kept, held_chars, MET if met else PLAIN, met)
        state.begun, state.due = tuple(begun), tuple(due)
        state.places = tuple(sorted(place - first + 1 for place in alive))
        return self._same(state)

    def _is_begun(self, letters: str, tail: str, place: int) -> bool:
        first = letters[place]
        if not (first.isalpha() and letters[place - 1].isalpha()) or first >= SPACELESS or first.isupper():
            return True
        return len(tail) >= INNER_CHARS and tail in self._leads.inside


def _is_told(way: Way) -> bool:
    """Say whether some ways are to be gone by themselves: a match may be whole, or almost anything leads on."""
    return way.is_whole or not way.is_narrow


def _tail(letters: str, place: int) -> str:
    """Return how some letters go on from a place."""
    return letters[place:].lower().replace(_MORE, "")
