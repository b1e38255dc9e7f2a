"""What a growing reply lets out holds no letter of a match that blocks, however it is cut."""

import random
from collections.abc import Iterable, Iterator

import pytest

from gateway.shield import Direction, Policy, Shield, load
from gateway.shield import stream as streams
from gateway.shield.scoring import points_of

BEFORE = "Here is what you asked for, with all the details that I could find.\n\n"
BEHIND = "\nLet me know whether that helps, and I will gladly look for more of it in the other papers."
PROSE = (
    "The harbour is calm in the morning, and most of the boats stay out until noon. Whoever comes early finds the old "
    "pier empty, but for a few people who fish there and talk about the weather. In winter the ferry leaves twice a "
    "day, and the island is quiet enough to hear the wind in the pines."
)
MANY = (
    "Im Hafen ist es morgens still. ",
    "Au port, le matin est calme. ",
    "港は朝とても静かで、船は昼まで戻らない。",
    "В порту утром тихо. ",
)


@pytest.fixture(scope="module")
def shield() -> Shield:
    return load()


def held_spans(shield: Shield, text: str, policy: Policy) -> list[tuple[int, int]]:
    """Return where matches stand that are worth as much as a review alone, or are masked."""
    found = shield.scan(text, Direction.OUTBOUND, policy).detections
    return [
        span
        for one in found
        if points_of(one.category, one.severity, policy) >= streams.HELD_POINTS
        or policy.category_actions.get(one.category) == "redact"
        for span in (one.spans or ((one.start, one.end),))
    ]


def examples(shield: Shield) -> Iterator[str]:
    """Yield the examples of every rule that counts in replies."""
    for rule in shield.rules:
        if Direction.OUTBOUND in rule.direction:
            yield from rule.match


def let_out(shield: Shield, pieces: Iterable[str], policy: Policy) -> int:
    """Return how many letters of a text were let out."""
    scanner = shield.stream(policy)
    return sum(released.chars for piece in pieces for released in scanner.feed(piece))


def cut(text: str, dice: random.Random, sizes: tuple[int, ...]) -> Iterator[str]:
    place = 0
    while place < len(text):
        size = dice.choice(sizes)
        yield text[place : place + size]
        place += size


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 5, 30, 70)])
def test_no_example_of_a_rule_leaves(shield: Shield, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    monkeypatch.setattr(streams, "STEP_CHARS", 1)  # a look at every piece finds more than one at some
    dice, policy, leaks, tried = random.Random(3), Policy(), {}, 0
    for example in examples(shield):
        text = BEFORE + example + BEHIND
        spans = held_spans(shield, text, policy)
        tried += bool(spans)
        taken = let_out(shield, cut(text, dice, sizes), policy) if spans else 0
        if any(taken > start for start, _ in spans):
            leaks[example] = text[:taken]
    assert tried > 550
    assert leaks == {}


def test_a_cut_in_two_anywhere_lets_nothing_out(shield: Shield) -> None:
    dice, policy = random.Random(4), Policy()
    for example in dice.sample(sorted(set(examples(shield))), 60):
        text = BEFORE + example + BEHIND
        spans = held_spans(shield, text, policy)
        for place in range(len(BEFORE), len(BEFORE) + len(example)) if spans else ():
            taken = let_out(shield, (text[:place], text[place:]), policy)
            assert all(taken <= start for start, _ in spans), (place, text[:taken])


def test_a_policy_that_blocks_more_holds_more(shield: Shield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STEP_CHARS", 1)
    text = f"{BEFORE}Write to anna.berg@harbour-mail.org about it.{BEHIND}"
    place = text.index("anna")
    dice = random.Random(5)
    assert let_out(shield, cut(text, dice, (1, 2)), Policy()) > place
    for policy in (Policy(category_actions={"pii": "block"}), Policy(block_at=3)):
        assert let_out(shield, cut(text, dice, (1, 2)), policy) <= place


def test_a_mask_stands_in_the_place_of_a_match(shield: Shield) -> None:
    policy = Policy(category_actions={"pii": "redact"})
    text = f"{BEFORE}Write to anna.berg@harbour-mail.org about it.{BEHIND}"
    scanner = shield.stream(policy)
    said = "".join(
        released.text for piece in cut(text, random.Random(6), (1, 5, 9)) for released in scanner.feed(piece)
    )
    assert "anna.berg@" not in said
    assert "Write to anna…(26) about" in said
    assert not scanner.is_stopped


def test_prose_is_held_for_a_few_words(shield: Shield) -> None:
    texts = [PROSE, *(part * 8 for part in MANY)]
    held = []
    for text in texts:
        scanner, taken = shield.stream(), 0
        for end in range(4, len(text), 4):
            taken += sum(released.chars for released in scanner.feed(text[end - 4 : end]))
            held.append(end - taken)
        assert not scanner.is_stopped
    assert sum(held) / len(held) <= 32


def test_what_never_ends_waits_for_the_end(shield: Shield) -> None:
    scanner = shield.stream()
    sizes = [
        sum(one.chars for one in scanner.feed(piece))
        for piece in ["See data:image/png;base64,", *["iVBORw0KGgo" * 8] * 60]
    ]
    assert scanner.is_stopped
    assert sum(sizes) <= len("See ")
    assert scanner.feed("and some more words that would be harmless by themselves, all of them") == []


def test_a_huge_piece_waits_for_the_end(shield: Shield) -> None:
    scanner = shield.stream()
    assert scanner.feed("calm " * 4_000) == []
    assert scanner.is_stopped


def test_disguises_over_several_words_are_found_at_the_end_alone(shield: Shield) -> None:
    """The documented exception: letters that stand apart are read together by a scan of the whole."""
    secret = next(example for example in examples(shield) if "AKIA" in example)
    apart = " ".join(secret[secret.index("AKIA") :][:20])
    assert let_out(shield, (f"{BEFORE}{apart}{BEHIND}",), Policy()) > len(BEFORE)
