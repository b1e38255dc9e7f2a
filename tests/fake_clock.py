"""A clock that stands until a test moves it."""


class FakeClock:
    """at: the wall clock in Unix milliseconds. seconds: the monotonic clock; None lets it move with the wall clock."""

    def __init__(self, at: int = 1_700_000_000_000, seconds: float | None = 1000.0) -> None:
        self.at, self.seconds = at, seconds

    def now_at(self) -> int:
        return self.at

    def now_ns(self) -> int:
        return self.at * 1_000_000

    def monotonic_seconds(self) -> float:
        return self.at / 1000 if self.seconds is None else self.seconds

    def pass_seconds(self, seconds: float) -> None:
        self.at += int(seconds * 1000)
        if self.seconds is not None:
            self.seconds += seconds
