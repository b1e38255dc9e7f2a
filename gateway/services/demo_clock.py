"""The time of a made-up story, and ids that its seed makes. Looks at no clock and no source of randomness."""

from gateway.domain.demo import dice
from gateway.domain.paging import id_at


class DemoClock:
    """A clock that stands where the story is."""

    def __init__(self, at: int) -> None:
        self.at = at

    def now_at(self) -> int:
        """Return the time of the story."""
        return self.at

    def now_ns(self) -> int:
        """Return the same in nanoseconds."""
        return self.at * 1_000_000

    def monotonic_seconds(self) -> float:
        """Return the same in seconds."""
        return self.at / 1000


class DemoIds:
    """Ids that a seed makes."""

    def __init__(self, clock: DemoClock, seed: int) -> None:
        self._clock = clock
        self._rng = dice(seed + 2)

    def new(self, prefix: str) -> str:
        """Return an id of the time of the story."""
        return id_at(prefix, (self._clock.at, self._rng.getrandbits(40), self._rng.getrandbits(40)))

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that are no secret: nobody is told the keys made of them."""
        return self._rng.randbytes(count)
