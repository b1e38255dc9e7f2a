"""What a regex for the text as sent becomes in the normalized view: it asks for nothing that a match might not have."""

import json
import re

import pytest

from gateway import bundle
from gateway.shield.folded import folded_regex
from gateway.shield.normalize import Normalizer, View
from gateway.shield.plan import expand

FOLD = Normalizer()


def folded(source: str, least_items: int = 2) -> str:
    return folded_regex(source, FOLD.fold_char, least_items=least_items)


def stands(regex: str, view: View, start: int) -> bool:
    """Tell whether a folded regex matches where a place of the source is in its view."""
    places = (place for place in range(start, -1, -1) if view.position(place) == start)
    return any(re.compile(regex, re.ASCII).match(view.text, place) for place in places)


def test_every_match_of_a_rule_stands_where_its_folded_regex_matches() -> None:
    document = json.loads(bundle.read("rules.json"))
    tried = 0
    for rule in document["rules"]:
        if rule.get("view") != "text" or "pattern" not in rule:
            continue
        source = re.compile(expand(rule["pattern"], document["tables"]), re.ASCII)
        seen = folded(source.pattern)
        for text in (f"  {example}\t\n " for example in rule["match"]):
            view, match = FOLD.normalize(text), source.search(text)
            if seen and match and view.is_even and not text[match.start()].isspace():
                tried += 1
                assert stands(seen, view, match.start()), rule["id"]
    assert tried > 200


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Key[ \t]{1,4}=[ \t]{0,4}[a-z]{20}", "Key \t  = " + "abcde" * 4),
        ("(?i:key)\\s\\s=x", "KEY\n =x"),
        ("token[:\uff1a]{1,2}[^a]{4}z", "token\uff1aÉ“–\u00a0z"),
        ("pass(?:w(?:or)?d|\u00e9)=x", "pass\u00e9=x"),
        ("b(?:asic|earer) (?P<secret>[A-Z]{8,12}-x)y", "bearer ABCDEFGHIJ-xy"),
        ("a[^b]{0,40}:c", "a" + "\u4e00" * 40 + ":c"),
    ],
)
def test_blanks_and_folded_letters_hide_no_match(source: str, text: str) -> None:
    view = FOLD.normalize(text)
    assert view.is_even
    assert re.compile(source, re.ASCII).match(text)
    assert stands(folded(source), view, 0)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Key[ \t]{1,4}=[ \t]{0,4}[a-z]{20}", "key of the house"),
        ("token: [A-Z0-9]{20,40}", "token: short"),
        ("pass(?:word|wd)=x", "passes"),
    ],
)
def test_what_cannot_match_is_told_in_the_view(source: str, text: str) -> None:
    assert not re.match(folded(source), text)


def test_what_asks_for_little_more_than_its_literal_is_not_tried() -> None:
    assert folded("password[^z]{0,200}(?:x|y)") == ""
    assert folded("[\\w:.-]{0,40}<", 1) != ""
