"""What may not stand before a literal from which a regex is read backwards."""

import random

import pytest

from gateway import bundle
from gateway.shield import Direction, Shield, load_rules
from gateway.shield.edges import edge_before


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


def test_a_page_of_times_and_numbers_is_read_to_its_end() -> None:
    shield = Shield(load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans")))
    dice = random.Random(4)
    seconds = (f"{dice.randrange(60):02}.{dice.randrange(10**6):06} {dice.randrange(10**6)}" for _ in range(240))
    page = "\n".join(f"2026-05-12 12:30:{second}" for second in seconds)
    for direction in Direction:
        assert not [one.rule for one in shield.scan(page, direction).detections]
