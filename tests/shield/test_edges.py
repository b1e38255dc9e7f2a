"""What may not stand before a literal from which a regex is read backwards."""

import random

import pytest

from gateway import bundle
from gateway.shield import Direction, Shield, load_rules
from gateway.shield.edges import edge_before, edge_chars


@pytest.mark.parametrize(
    ("back", "edge"),
    [
        ("(?:[^0-9]){0,28}drac", "digit"),
        ("(?![a-z0-9])(?:[^0-9]){0,28}nss", "plain"),
        ("(?![A-Za-z0-9])(?:[^x]){0,9}x", "alnum"),
        (r"(?:\ |\-){0,2}(?:[ .:]|#)di", "word"),
        (r"(?:\ |\-){1,2}di", "word"),
        ("(?:[0-9]){0,4}drac", ""),
        ("(?:[^0-9]){0,28}", ""),
        ("(?:[0-9a-z](?![a-z0-9])){0,1}[ ]", ""),
    ],
)
def test_an_edge_is_what_a_regex_read_backwards_cannot_begin_with(back: str, edge: str) -> None:
    assert edge_before(back) == edge


@pytest.mark.parametrize(
    ("back", "edge", "chars"),
    [
        ("(?:[^0-9]){0,28}drac", "digit", 4),
        ("(?:[^0-9]){0,28}(?:drac|cc)(?![a-z])", "digit", 2),
        ("(?:[^0-9]){0,28}drac(?:[0-9]){0,2}cc", "digit", 4),
        ("(?:\\-){0,1}[a-h](?![a-z0-9])(?:[^0-9]){0,28}?(?:fic|fin)", "digit", 4),
        ("(?:[^0-9]){3,28}[0-9]drac", "digit", 3),
        (r"(?:\ |\-){1,2}di", "letter", 1),
        ("(?:[0-9]){0,4}drac", "digit", 1),
        ("(?:[^0-9]){0,28}(?:drac tiderc|erom dna tnuocca)", "digit", 8),
    ],
)
def test_the_edge_is_as_wide_as_what_must_stand_before_none_of_it(back: str, edge: str, chars: int) -> None:
    assert edge_chars(back, edge) == chars


def test_numbers_in_a_row_are_tried_as_numbers_no_oftener_than_one_may_be_named() -> None:
    """Twice as long a page as the one below, where what stands before is asked two characters far and further."""
    shield = Shield(load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans")))
    dice = random.Random(7)
    page = "\n".join(f"{dice.randrange(10**4)} {dice.randrange(10**6)}.{dice.randrange(10**3)}" for _ in range(700))
    assert not [one.rule for one in shield.scan(page, Direction.INBOUND).detections]
    named = page + "\ncard number: 4111 1111 1111 1111"
    assert [one.rule for one in shield.scan(named, Direction.INBOUND).detections] == [
        "card-number",
        "card-number-named",
    ]


def test_a_page_of_times_and_numbers_is_read_to_its_end() -> None:
    shield = Shield(load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans")))
    dice = random.Random(4)
    seconds = (f"{dice.randrange(60):02}.{dice.randrange(10**6):06} {dice.randrange(10**6)}" for _ in range(240))
    page = "\n".join(f"2026-05-12 12:30:{second}" for second in seconds)
    for direction in Direction:
        assert not [one.rule for one in shield.scan(page, direction).detections]
