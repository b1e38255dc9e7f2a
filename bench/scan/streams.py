"""What the scanner of texts in pieces costs and holds back: on prose, on code, and on texts made to be its worst."""

import gc
import statistics
import time

from bench.scan import texts
from gateway.shield import Direction, Shield
from gateway.shield.stream import StreamScanner, make_ready

_CHARS = 40_000
# So many texts are fed before those that were never fed are measured, and so many of those.
_BEFORE, _NEW = 8, 4
_END = object()
_HOSTILE_CHARS = 12_000


def measure(shield: Shield, rounds: int) -> None:
    """Print microseconds of processor time a piece, and characters held back after each."""
    # As the gateway does.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    _warm(shield)
    whole = texts.prose(_CHARS, 3)
    scan = min(_seconds(lambda: shield.scan(whole, Direction.OUTBOUND)) for _ in range(3))
    print(f"whole text at once: {scan / _CHARS * 1e6:.3f} us a character")
    for direction in Direction:
        for kind, make_text in (("prose", texts.prose), ("code", texts.code)):
            never = [_fed_once(shield, direction, make_text(_CHARS, seed)) for seed in range(50, 50 + _BEFORE + _NEW)]
            print(
                f"{direction.value:8} {kind:6}   4 a piece, never fed: the first {never[0]:.1f} us, after {_BEFORE}"
                f" others mean {statistics.mean(never[_BEFORE:]):.1f} us"
            )
            for size in (1, 4, 16, 64):
                text = make_text(_CHARS if size > 1 else _CHARS // 4, 3)
                pieces = [text[place : place + size] for place in range(0, len(text), size)]
                spent = [_seconds(lambda: _feed(shield, direction, pieces)) for _ in range(max(2, rounds // 3))]  # noqa: B023
                held = _held(shield, direction, pieces)
                print(
                    f"{direction.value:8} {kind:6} {size:3} a piece: {min(spent) / len(pieces) * 1e6:7.2f} us,"
                    f" held back mean {statistics.mean(held):5.2f}, most {max(held)}"
                )
    _worst(shield)


def _worst(shield: Shield) -> None:
    """Print the most that is held and the slowest piece on hostile texts, in pieces of four characters."""
    bound = StreamScanner(shield, Direction.OUTBOUND).most_chars
    print(f"never held back more than {bound} characters, unless blocked; pieces of 4 characters of hostile texts:")
    for name, make in texts.hostile().items():
        text = make(_HOSTILE_CHARS)
        stream = StreamScanner(shield, Direction.OUTBOUND)
        most, slowest, total = 0, 0.0, 0.0
        for place in range(0, len(text), 4):
            began = time.process_time()
            released = stream.feed(text[place : place + 4])
            spent = time.process_time() - began
            slowest, total = max(slowest, spent), total + spent
            if released.is_blocked:
                break
            most = max(most, stream.held_chars)
        blocked = ", blocked" if released.is_blocked else ""
        pieces = place // 4 + 1
        print(f"{name:16} held {most:5}, mean {total / pieces * 1e6:8.1f} us, slowest {slowest * 1e3:7.2f} ms{blocked}")


def _warm(shield: Shield) -> None:
    for direction in Direction:
        spent, ready, is_more = [], make_ready(shield, direction), True
        while is_more:
            began = time.process_time()
            is_more = next(ready, _END) is not _END
            spent.append(time.process_time() - began)
        print(
            f"made ready, {direction.value}: {sum(spent) * 1e3:.0f} ms in {len(spent)} steps, the longest"
            f" {max(spent) * 1e3:.1f} ms, once for a policy"
        )
        for make_text in (texts.prose, texts.code):
            _feed(shield, direction, [make_text(4_000, seed) for seed in range(8)])


def _feed(shield: Shield, direction: Direction, pieces: list[str]) -> None:
    feed = StreamScanner(shield, direction).feed
    for piece in pieces:
        feed(piece)


def _fed_once(shield: Shield, direction: Direction, text: str) -> float:
    """Return microseconds of processor time a piece of four characters."""
    pieces = [text[place : place + 4] for place in range(0, len(text), 4)]
    return _seconds(lambda: _feed(shield, direction, pieces)) / len(pieces) * 1e6


def _held(shield: Shield, direction: Direction, pieces: list[str]) -> list[int]:
    stream = StreamScanner(shield, direction)
    held = []
    for piece in pieces:
        stream.feed(piece)
        held.append(stream.held_chars)
    return held


def _seconds(call: object) -> float:
    began = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - began
