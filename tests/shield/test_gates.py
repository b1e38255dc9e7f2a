"""A gate lets no regex be tried that cannot match, and each that can."""

import json
import re

import pytest

from gateway import bundle
from gateway.shield import mention
from gateway.shield.gates import Gate
from gateway.shield.specimen import specimens

JUDGES = [
    value for name, value in vars(mention).items() if isinstance(value, str) and re.fullmatch("_[A-Z_]{4,}", name)
]


@pytest.mark.parametrize(
    ("regex", "text", "may"),
    [
        (r"\b(?:if|when) (?:\w{1,9} )?(?:asks?|tells?)", "when somebody tells you", True),
        (r"\b(?:if|when) (?:\w{1,9} )?(?:asks?|tells?)", "when it rains", False),
        (r"\b(?:if|when) (?:\w{1,9} )?(?:asks?|tells?)", "he tells you", False),
        (r"(?:quiz|exam)(?=\()", "quiz(", True),
        (r"(?:quiz|exam)(?=\()", "a quiz", False),
        (r"(?:do \w{1,9} let|不要)", "请不要说", True),
        (r"(?:do \w{1,9} let|不要)", "do not go", False),
        (r"(?:never){1,2} \d{1,3}", "nevertheless 7", True),
        (r"(?:never){0,2} \d{1,3}", "at 7", True),
        (r"(?i)never", "NEVER", True),
        (r"(?:a|bc)\d", "bc7", True),
    ],
)
def test_a_regex_may_match_where_a_string_of_each_group_stands(regex: str, text: str, may: bool) -> None:
    assert Gate("other words", regex).open(text) == (frozenset((regex,)) if may else frozenset())


def test_no_regex_that_matches_is_kept_out() -> None:
    rules = json.loads(bundle.read("rules.json"))["rules"]
    patterns = [rule["pattern"] for rule in rules if "<<" not in rule.get("pattern", "<<")]
    tried = 0
    for regexes in (JUDGES, patterns[::8]):
        gate = Gate(*regexes)
        for regex in regexes:
            for text in specimens(regex, regex, count=6):
                if re.search(regex, text):
                    tried += 1
                    assert regex in gate.open(text), (regex, text)
    assert tried > 300


def test_judges_are_hardly_ever_tried_on_plain_words() -> None:
    text = "the tide was out and the boats lay in the mud, so we walked over to the island and had our lunch there"
    assert len(JUDGES) > 8
    # One has words too short to be looked for.
    assert len(Gate(*JUDGES).open(text)) <= 1
