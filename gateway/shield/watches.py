"""The watches of a shield: one for each direction, policy and number of points that its rules have. Reads no text."""

from collections.abc import Callable, Generator
from functools import partial
from threading import Lock

from gateway.shield.detections import Direction
from gateway.shield.engine import Shield
from gateway.shield.scoring import POINTS, Policy, points_of
from gateway.shield.watch import Watch


def watch_of(shield: Shield, direction: Direction, policy: Policy, missing: int) -> Watch:
    """Return the watch over the rules of so many points. It is made once for a shield."""
    steps = making(shield, direction, policy, missing)
    while True:
        try:
            next(steps)
        except StopIteration as made:
            watch: Watch = made.value
            return watch


def making(shield: Shield, direction: Direction, policy: Policy, missing: int) -> Generator[None, None, Watch]:
    """Make that watch in steps of a few milliseconds; in none if it is there. Who else makes it shares the steps."""
    # Rules have few kinds of points, so there are few watches, whatever the score is.
    least = min((points for points in POINTS.values() if points >= missing), default=missing)
    actions = tuple(sorted(policy.category_actions.items()))
    key, watches = (direction, actions, policy.categories, least), shield.watches
    known = watches.get(key)
    if known is None:
        known = watches.setdefault(key, Making(partial(_steps, shield, direction, policy, least)))
    while isinstance(known, Making):
        watch = known.step()
        if watch is None:
            yield
            continue
        if watches.get(key) is known:
            watches[key] = watch
        known = watch
    assert isinstance(known, Watch)
    return known


def _steps(shield: Shield, direction: Direction, policy: Policy, least: int) -> Generator[None, None, Watch]:
    rules = (
        (brief, shield.layout.plan(number), partial(shield.layout.compiled, number))
        for number, brief in shield.counted(direction, policy)
        if points_of(brief.category, brief.severity, policy) >= least
    )
    return Watch.making(rules, direction, native=shield.matcher == "native")


class Making:
    """A watch that is being made. Threads may share it: each step is gone by one of them.

    begin: begins to make it; once more, if a step has failed.
    """

    __slots__ = ("_begin", "_lock", "_steps", "_watch")

    def __init__(self, begin: Callable[[], Generator[None, None, Watch]]) -> None:
        self._lock = Lock()
        self._begin = begin
        self._steps = begin()
        self._watch: Watch | None = None

    def step(self) -> Watch | None:
        """Go one step on. Return the watch once it is there."""
        with self._lock:
            if self._watch is None:
                try:
                    next(self._steps)
                except StopIteration as made:
                    self._watch = made.value
                except BaseException:
                    self._steps = self._begin()
                    raise
            return self._watch
