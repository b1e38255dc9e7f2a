"""What a stream holds back after each letter, told by two machines that are made while they run. Asks no rule.

Theory of operation. How much of a text is held depends on little of it: on the shape of the run or word it ends with
(`run_steps`), and on the last letters, with which a literal may have begun (`letter_steps`). Either is a state. Where a
letter leads from there is worked out when it first comes, and costs one look-up from then on. What the rules must be
asked about is marked: a literal that is met, and what no state can remember, where the machine is lost until it is told
anew.
"""

from typing import NamedTuple

from gateway.shield.watched import Lead
from gateway.shield.ways import Way

# How a letter left the text: plain; of a shape that may hide another text; with a literal met; with a match under way,
# which the rules tell; or so that only a look tells more. Two of them are both. Or the text is blocked.
PLAIN, ODD, MET, OPEN, LOST, BLOCKED = 0, 1, 2, 4, 8, 16
# What is longer is not remembered, nor are more states than so many, and where letters lead from there.
KEPT_RUN_CHARS = 48
MOST_STEPS = 90_112


class Met(NamedTuple):
    """A literal that is complete: how long it is, and where it leads."""

    size: int
    leads: tuple[Lead, ...]


class Begun(NamedTuple):
    """A literal that may have begun: so many characters are there of it, in the text and of its letters."""

    chars: int
    letters: int


class Due(NamedTuple):
    """A literal that is complete, of a lead that need not be followed yet: so many characters and letters are there.

    way: what is left of what must come behind it.
    """

    chars: int
    letters: int
    lead: Lead
    way: Way


class State(dict[str, "State"]):
    """What a machine remembers of a text, and where each letter leads that came so far.

    kept: what it remembers. held_chars: how much is held. mark: as above. met: the literals that are complete, and
    whose leads are to be followed now. begun: those that may have begun, and are held. due: those that are complete,
    and held if they are to be. places: where in `kept` something begins that goes on. shorter: the state without the
    first of these, once that was needed.
    """

    __slots__ = ("_machine", "begun", "due", "held_chars", "kept", "mark", "met", "places", "shorter")

    def __init__(self, machine: "Machine", kept: str, held_chars: int, mark: int, met: tuple[Met, ...] = ()) -> None:
        super().__init__()
        self._machine = machine
        self.kept = kept
        self.held_chars = held_chars
        self.mark = mark
        self.met = met
        self.begun: tuple[Begun, ...] = ()
        self.due: tuple[Due, ...] = ()
        self.places: tuple[int, ...] = ()
        self.shorter: State | None = None

    def __missing__(self, char: str) -> "State":
        machine = self._machine
        state = machine.lost
        if self is not state:
            state = self[char] = machine.step(self, char)
        return state


class Machine:
    """Makes states. Threads may share it: what two make at once is the same. lost: the state that remembers nothing."""

    __slots__ = ("_states", "_steps", "lost")

    def __init__(self) -> None:
        self._states: dict[tuple[str, int, int, tuple[Met, ...]], State] = {}
        self._steps = 0
        self.lost = State(self, "", 0, LOST)

    def __len__(self) -> int:
        """Return how many states are remembered."""
        return len(self._states)

    def after(self, state: State, char: str) -> State:
        """Return the state that a character leads to, as worked out anew."""
        raise NotImplementedError

    def told(self, text: str) -> State:
        """Return the state of a text that was looked at to its end, in so far as it tells that."""
        raise NotImplementedError

    def step(self, state: State, char: str) -> State:
        """Work out and remember where a character leads."""
        self._make_room()
        return self.after(state, char)

    def _same(self, state: State) -> State:
        """Return the state that is remembered for one that is the same, or else remember it."""
        key = state.kept, state.held_chars, state.mark, state.met
        known = self._states.get(key)
        if known is None:
            self._make_room()
            known = self._states.setdefault(key, state)
        return known

    def _make_room(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            # Who stands in a state goes on from there.
            self._steps, self._states = 0, {}
