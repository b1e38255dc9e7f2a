"""What leads to matches never changes what matches: the engine's answer is that of trying every regex everywhere."""

import json
import random
import re
import string
from typing import Any

import pytest

from gateway import bundle
from gateway.shield import Direction, Rule, RuleSet, Shield, load_rules
from gateway.shield.matcher import BLOCK_CHARS, BUDGET, Matcher
from gateway.shield.normalize import Normalizer
from gateway.shield.plan import GATE_CHARS, Plan
from gateway.shield.validators import VALIDATORS
from tests.shield.conftest import make_rule

NORMALIZER = Normalizer()
_TAIL = "specific=" + "a1" * 6


def _naive(rule: Rule, plan: Plan, text: str) -> list[tuple[int, int]]:
    """Try the rule's regex at each place, and take the leftmost matches that do not overlap."""
    view = NORMALIZER.normalize(text)
    subject = text if rule.view == "text" else view.text
    regex = re.compile(plan.source, re.ASCII)
    literals = rule.literals if rule.pattern else ()
    found, place = [], 0
    while match := regex.search(subject, place):
        place = match.start() + 1
        near = subject[max(0, match.start() - GATE_CHARS) : match.end()]
        if literals and not any(literal in near for literal in literals):
            continue
        start, end = match.span("secret") if "secret" in regex.groupindex else match.span()
        names = rule.validator.split("+") if rule.validator else []
        if not all(VALIDATORS[name.partition(":")[0]](subject[start:end], name.partition(":")[2]) for name in names):
            continue
        found.append((start, end) if rule.view == "text" else view.span(start, end))
        place = match.end()
    return found


def _found_by(matcher: Matcher, ruleset: RuleSet, text: str) -> list[list[tuple[int, int]]]:
    matches = matcher.scan(NORMALIZER.normalize(text))
    assert not matches.is_cut_short
    spans: list[list[tuple[int, int]]] = [[] for _ in ruleset.rules]
    for match in matches.found:
        spans[match.rule].append((match.start, match.end))
    return spans


def _mangle(dice: random.Random, text: str) -> str:
    """Change a text a little, so that some of its matches stay and others just miss."""
    chars = list(text)
    for _ in range(dice.randrange(4)):
        place = dice.randrange(len(chars))
        chars[place] = dice.choice([chars[place].upper(), "", " ", "\n", "\u200b", "0", chars[place] * 2, "é"])
    return "".join(chars)


@pytest.fixture(scope="module")
def matchers(ruleset: RuleSet) -> list[Matcher]:
    """The same rules over each of the two automata."""
    return [Matcher(ruleset.layout, native=native) for native in (True, False)]


@pytest.mark.parametrize("texts", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_each_rule_matches_where_trying_it_everywhere_does(
    rule_name: str, positives: dict[str, str], ruleset: RuleSet, matchers: list[Matcher], texts: int
) -> None:
    number = [rule.id for rule in ruleset.rules].index(rule_name)
    assert _expected(ruleset, positives[rule_name])[number], "the example must match"
    dice = random.Random(rule_name)
    for _ in range(texts):
        noise = "".join(dice.choices(string.ascii_letters + " .-0123456789\n", k=dice.randrange(80)))
        parts = [_mangle(dice, dice.choice([positives[rule_name], *positives.values()])) for _ in range(3)]
        text = noise + dice.choice([" ", "", "\n\n", "x"]).join(parts)
        expected = _expected(ruleset, text)
        for matcher in matchers:
            assert _found_by(matcher, ruleset, text) == expected


def _expected(ruleset: RuleSet, text: str) -> list[list[tuple[int, int]]]:
    return [_naive(rule, plan, text) for rule, plan in zip(ruleset.rules, ruleset.plans, strict=True)]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_each_shipped_rule_matches_its_examples_where_trying_it_everywhere_does(step: int) -> None:
    ruleset = load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans"))
    matcher = Matcher(ruleset.layout)
    dice = random.Random(1)
    matched = 0
    plans = ruleset.plans  # unpacked anew at each access
    rules = [rule for rule in ruleset.rules for _ in rule.sources]
    for number in range(0, len(plans), step):
        rule, plan = rules[number], plans[number]
        for example in rule.match[:3]:
            # Once as it is, at the very edges of the text, and once changed a little in other words.
            for text in (example, f"So, {_mangle(dice, example)} {example}\n"):
                found = matcher.scan(NORMALIZER.normalize(text)).found
                spans = [(match.start, match.end) for match in found if match.rule == number]
                assert spans == _naive(rule, plan, text), rule.id
                matched += bool(spans)
    assert matched > len(ruleset.rules) // step // 2


def test_what_is_left_out_for_replies_is_what_does_not_count_there() -> None:
    ruleset = load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans"))
    matcher = Matcher(ruleset.layout)
    left_out = 0
    for rule in ruleset.rules[::5]:
        view = NORMALIZER.normalize(f"{rule.match[0]}\n")
        every, wanted = matcher.scan(view), matcher.scan(view, direction=Direction.OUTBOUND)
        counted = [match for match in every.found if Direction.OUTBOUND in ruleset.layout.rule(match.rule)[0].direction]
        assert [match for match in wanted.found if match in counted] == counted
        assert wanted.signals == every.signals
        left_out += len(every.found) - len(wanted.found)
    assert left_out > 25


@pytest.mark.parametrize("shift", range(-40, 12, 3))
def test_match_across_the_edge_of_a_block_is_found(shift: int, positives: dict[str, str], either: Shield) -> None:
    for name in ("override", "gap", "aws", "assigned", "card"):
        text = "lorem ipsum " * (BLOCK_CHARS // 12 + 9)
        at = BLOCK_CHARS + shift
        found = either.scan(text[:at] + " " + positives[name] + " " + text, Direction.INBOUND).detections
        assert [one for one in found if one.rule == name and at < one.start <= at + 60], name


def test_order_of_rules_changes_nothing(document: dict[str, Any], positives: dict[str, str]) -> None:
    text = " ".join(positives.values())
    results = []
    for seed in range(6):
        rules = list(document["rules"])
        random.Random(seed).shuffle(rules)
        results.append(
            Shield(load_rules(json.dumps(document | {"rules": rules}).encode())).scan(text, Direction.OUTBOUND)
        )
    assert all(result == results[0] for result in results)
    assert {one.rule for one in results[0].detections} == set(positives)


def test_flood_of_beginnings_is_cut_short_and_asks_for_review(either: Shield) -> None:
    flood = "MT." * (2 * BUDGET)
    result = either.scan(flood, Direction.INBOUND)
    assert [one.rule for one in result.detections] == ["scan-budget"]
    assert result.verdict == "REVIEW"


def test_both_automata_say_the_same_of_a_flood(rule_name: str, positives: dict[str, str], ruleset: RuleSet) -> None:
    text = (positives[rule_name][:-1] + "\u00e9 " + positives[rule_name]) * 2000
    native, python = (Shield(ruleset, native=native).scan(text, Direction.INBOUND) for native in (True, False))
    assert native == python


@pytest.mark.parametrize("shift", [-9, -6, -3, -1, 0, 1, 4])
def test_what_is_unseen_is_found_at_the_edge_of_what_is_searched_at_once(shift: int, either: Shield) -> None:
    unseen = "\u200b\u200c" * 3
    for edge in (65_536, 131_072, 262_144):
        text = "a" * (edge + shift) + unseen + "b" * 70_000
        found = either.scan(text, Direction.INBOUND).detections
        assert [(one.start, one.end) for one in found if one.rule == "hidden"] == [(edge + shift, edge + shift + 6)]


@pytest.mark.parametrize("size", [0, 3, 3_000])
def test_what_begins_with_an_ideograph_is_found_in_the_text_as_sent_however_many_stand_around(size: int) -> None:
    rule = make_rule("code", view="text", pattern=r"[\u5bc6\u673a][0-9]{3}[A-Z]", match=["\u5bc6123A"])
    ruleset = load_rules(json.dumps({"version": 1, "rules": [rule]}).encode())
    text = "\u6ca1\u6709\u5bc6" * size + "\u5bc6456B\uff0c" + "\u673a" * size
    found = _found_by(Matcher(ruleset.layout), ruleset, text)
    assert found == _expected(ruleset, text) == [[(3 * size, 3 * size + 5)]]


@pytest.mark.parametrize("between", ["", "\u2026" * 12, "\u2474" * 12, " \t" * 6, "\u200b" * 12, "Q" * 12])
@pytest.mark.parametrize("value", ["aB3.-" * 4, "aB3 -" * 4, "aB3.-" * 3])
def test_value_far_from_its_name_is_found_however_the_text_between_is_normalized(between: str, value: str) -> None:
    patterns = {
        r"key[^=]{0,12}= ?[A-Za-z0-9.-]{20}": "key=" + "a" * 20,
        r"'[A-Za-z0-9.-]{20}[^=]{0,12}=quirk": "'" + "a" * 20 + "=quirk",
    }
    rules = [
        make_rule(f"named-{number}", view="text", pattern=pattern, match=[match])
        for number, (pattern, match) in enumerate(patterns.items())
    ]
    ruleset = load_rules(json.dumps({"version": 1, "rules": rules}).encode())
    assert all(plan.holds_value and plan.how == "words" for plan in ruleset.plans)
    # What a word leads to is known once it was met.
    for before in ("", "No key, =quirk. "):
        text = f"{before}The key{between}={value} is here, {'x' * 30} and here, '{value}{between}=quirk."
        assert _found_by(Matcher(ruleset.layout), ruleset, text) == _expected(ruleset, text)


@pytest.mark.parametrize("native", [True, False])
def test_token_of_one_letter_and_what_it_may_be_is_found_behind_every_sign(*, native: bool) -> None:
    patterns = [r"(?<![A-Za-z0-9])t[1-9a-z]{25}(?![A-Za-z0-9])", r"t[1-9]{15}x", r"(?<!\w)[t3][a-z_]{19}"]
    rules = [
        make_rule(f"token-{number}", view="text", pattern=pattern, match=[match])
        for number, (pattern, match) in enumerate(
            zip(patterns, ["t" + "a1" * 12 + "z", "t" + "1" * 15 + "x", "3" + "a_" * 9 + "b"], strict=True)
        )
    ]
    ruleset = load_rules(json.dumps({"version": 1, "rules": rules}).encode())
    assert {plan.how for plan in ruleset.plans} == {"tokens"}
    matcher = Matcher(ruleset.layout, native=native)
    for before in ("", "\n", "é", *string.printable):
        text = " and ".join(before + rule["match"][0] for rule in rules)
        for told in (text, "word " + text, "a long/enough-token " + text, "x" * (BLOCK_CHARS - 9) + text):
            assert _found_by(matcher, ruleset, told) == _expected(ruleset, told), (before, told[-90:])


@pytest.mark.parametrize("between", [".", "x", " ", "\n", "  ", " \n", "\t", "é", "\u200b", "…", ""])
def test_match_that_begins_before_its_literal_is_found_whatever_stands_between(between: str) -> None:
    rules = [
        make_rule(
            name, view="text", pattern=f"(?i:qu{gap}specific)[=:]{{1,2}}[a-z0-9]{{12}}", match=[f"qu{held}" + _TAIL]
        )
        for name, gap, held in (("one", ".", "."), ("two", r"[\s\w][\s\w]", "  "))
    ]
    ruleset = load_rules(json.dumps({"version": 1, "rules": rules}).encode())
    assert [{(lead.low, lead.high) for lead in plan.leads} for plan in ruleset.plans] == [{(3, 3)}, {(4, 4)}]
    matcher = Matcher(ruleset.layout)
    for text in ("{}", "for  {}", "é\n\n{}", "qu. {} specific="):
        told = text.format(f"qu{between}{_TAIL}")
        assert _found_by(matcher, ruleset, told) == _expected(ruleset, told)


_ENDINGS = (
    r"\bkey\b",
    r"\bkey(?:s|hole)?\b(?! [a-c])",
    r"(?:the|this) (?:key|note)(?![a-z0-9])",
    r"\bnot (?: ?[a-z]{1,4}){0,2}? ?key\b",
    r"(?<![a-z])key[^.a-m]{1,3}note",
    r"note\B[a-z]",
    r"(?i:key) ?(?:=|:)\s{0,2}\d[a-z]",
    r"\bthe note(?: \d{1,2}|s?:|é)",
    r"(?:key|the key|this key)[ -]{1,2}(?:of|to)?",
)


@pytest.mark.parametrize("view", ["normalized", "text"])
def test_what_may_stand_behind_a_literal_hides_no_match(view: str) -> None:
    rules = [make_rule(f"ending-{number}", pattern=source, view=view) for number, source in enumerate(_ENDINGS)]
    ruleset = load_rules(json.dumps({"version": 1, "rules": rules}).encode())
    matcher = Matcher(ruleset.layout)
    dice = random.Random(view)
    pieces = "key Key keys keyhole note notes noten the this not of to a b d é ö \u200b \n . : = - 1 12 7x".split(" ")
    matched = 0
    for _ in range(1000):
        text = "".join(dice.choice(["", " ", " ", "  "]) + dice.choice(pieces) for _ in range(dice.randrange(1, 9)))
        expected = _expected(ruleset, text)
        assert _found_by(matcher, ruleset, text) == expected, text
        matched += sum(map(len, expected))
    assert matched > 500


@pytest.mark.parametrize("native", [True, False])
def test_a_key_told_by_its_inside_is_looked_for_in_long_tokens_alone(*, native: bool) -> None:
    rule = make_rule(
        "inner", pattern=r"(?<![A-Za-z0-9])[A-Za-z0-9]{11}AAAA[A-Za-z0-9_-]{9}(?![A-Za-z0-9])", view="text"
    )
    ruleset = load_rules(json.dumps({"version": 1, "rules": [rule]}).encode())
    assert ruleset.plans[0].how == "tokens"
    matcher = Matcher(ruleset.layout, native=native)
    dice = random.Random(5)
    matched = 0
    for _ in range(1500):
        pieces = dice.choices(["AAAA", "aaaa", "A", "-", " ", "\n", "b2c3d4e5f6g", "h_7i8j9k0"], k=9)
        expected = _expected(ruleset, "".join(pieces))
        assert _found_by(matcher, ruleset, "".join(pieces)) == expected
        matched += bool(expected[0])
    assert matched > 10
    for shift in range(-30, 8):
        text = ("x=" * BLOCK_CHARS)[: BLOCK_CHARS + shift] + " b2c3d4e5f6gAAAAh_7i8j9k0 "
        assert _found_by(matcher, ruleset, text) == [[(BLOCK_CHARS + shift + 1, BLOCK_CHARS + shift + 25)]]
    flood = Shield(ruleset, native=native).scan("aaaa" * BUDGET * 2, Direction.INBOUND)
    assert flood.verdict == "ALLOW"
