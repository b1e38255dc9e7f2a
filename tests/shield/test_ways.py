"""What may still become a match is known letter by letter: no letter of one is without a way."""

import os
from collections.abc import Iterator

import pytest

from gateway import shield as shields
from gateway.shield import Shield
from gateway.shield.normalize import Normalizer
from gateway.shield.program import read
from gateway.shield.watched import GAP_CHARS
from gateway.shield.ways import Room, Way, Ways

EVERY = int(os.environ.get("STREAM_EVERY", "8"))
MOST_STEPS = 100_000


@pytest.fixture(scope="module")
def builtin() -> Shield:
    return shields.load()


def led(ways: Ways, text: str, before: str = "") -> Iterator[tuple[Way, list[Way]]]:
    """Yield the ways that are left behind each letter of a text with which a match may begin, and those behind gaps."""
    way, late = ways.none.joined(before), []
    for char in text:
        late = [one[char] for one in late]
        after = way[char]
        late += [way.branches[char]] if char in way.branches else []
        way = after
        yield way, late


def held(ways: Ways, text: str) -> str:
    """Return how much is held behind each letter: all, what stands behind a gap, nothing; or that no way is left."""
    return "".join(
        "a" if way.is_held else "b" if any(one.steps for one in late) else "." if way.steps else "-"
        for way, late in led(ways, text)
    )


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("ignore (?:all|my) rules?", "ignore my rules!", "a" * 15 + "-"),
        ("ignore (?:all|my) rules?", "ignore any", "aaaaaaaa--"),
        # A blank may begin what comes behind the gap.
        ("show[^.]{0,60} prompt", "show us the prompt", "aaa.b..b...bbbbbbb"),
        ("show[^.]{0,60} prompt", "show us. prompt", "aaa.b..--------"),
        ("show[^.]{0,60} prompt", "show a print", "aaa.b.bbb..."),
        (r"show[^.]{0,60}\bkey", "show a monkey key", "aaa..........." + "bbb"),
        # A gap is one only once.
        ("show[^.]{0,60} key[^.]{0,60} now", "show the key to me", "aaa.b..." + "b" * 10),
        # What may not come often is no gap.
        ("go(?: [a-z]{1,4}){0,2} on", "go far on", "a" * 9),
        ("(?i:pass)word", "PaSsword", "a" * 8),
        ("(?i:pass)word", "PaSsWord", "aaaa----"),
        (r"(?<![a-z])x(?=[0-9])[^b]", "x1", "aa"),
        (r"(?<![a-z])x(?=[0-9])[^b]", "xa", "a-"),
        # What must not follow is not known before it is there.
        ("never(?! ever)", "never ev", "a" * 8),
        ("never(?! ever)", "never on", "aaaaaa--"),
        # What is looked for behind a match is no gap, nor is one behind a choice with a gap.
        ("free(?=[^.]{0,60} now)", "free me", "a" * 7),
        ("(?:a[^.]{0,60}|b)[^.]{0,60} c", "b, ", "aaa"),
        (r"\Aso|^no", "no", "aa"),
    ],
)
def test_ways_tell_what_is_held_behind_each_letter(source: str, text: str, said: str) -> None:
    assert held(Ways(read(source, gap_chars=GAP_CHARS), Room(MOST_STEPS)), text) == said


def test_name_of_what_is_reported_is_held_until_that_begins() -> None:
    ways = Ways(read("key = (?P<secret>[a-z]{3,9})"), Room(MOST_STEPS))
    assert held(ways, "key = abcd") == "aaaaa." + "bbbb"


@pytest.mark.parametrize(("before", "is_begun"), [("", True), (" ", True), ("a", False)])
def test_letter_before_a_match_may_forbid_it(before: str, is_begun: bool) -> None:
    for source in (r"\bkey", "(?<![a-z])key"):
        *_, (way, _) = led(Ways(read(source), Room(MOST_STEPS)), "key", before)
        assert bool(way.steps) is is_begun


def test_match_that_may_be_whole_is_told() -> None:
    ways = Ways(read("rules?|orders"), Room(MOST_STEPS))
    assert [way.is_whole for way, _ in led(ways, "rules.")] == [False, False, False, True, True, False]


def test_ways_are_the_same_though_no_step_is_remembered() -> None:
    source, text = "show[^.]{0,60} (?:system )?prompt", "show me the first system prompt."
    assert held(Ways(read(source, gap_chars=GAP_CHARS), Room(1)), text) == held(
        Ways(read(source, gap_chars=GAP_CHARS), Room(MOST_STEPS)), text
    )


def test_some_way_is_left_at_every_letter_of_a_match_and_through_at_its_end(builtin: Shield) -> None:
    fold, seen = Normalizer(), 0
    for number, rule in list(enumerate(builtin.rules))[::EVERY]:
        plan = builtin.layout.plan(number)
        whole, ways = builtin.layout.compiled(number, plan.source), Ways(read(plan.source), Room(MOST_STEPS))
        for example in rule.match:
            text = example if rule.view == "text" else fold.normalize(example).text
            found = whole.search(text)
            if not found:
                continue
            start, end = found.span()
            is_whole = False
            for place, (way, late) in enumerate(led(ways, text[start:end], text[start - 1 : start] if start else "")):
                seen += 1
                assert way.steps or any(one.steps for one in late), f"{rule.id}: {text[start : start + place + 1]!r}"
                is_whole = way.is_whole or any(one.is_whole for one in late)
            assert is_whole, f"{rule.id}: {found[0]!r}"
    assert seen > 10_000 / EVERY
