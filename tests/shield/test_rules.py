"""What a rule file must be, and what is said of one that is not."""

import json
from typing import Any

import pytest

from gateway.shield import RuleError, load_rules, rules, try_rules
from gateway.shield.plan import Plan
from gateway.shield.rules import read_plans


def _raw(document: dict[str, Any], **fields: Any) -> bytes:
    """The document with the first rule's fields changed; None takes a field away."""
    first = {name: value for name, value in (document["rules"][0] | fields).items() if value is not None}
    return json.dumps(document | {"rules": [first, *document["rules"][1:]]}).encode()


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"id": None}, "id", "lower-case"),
        ({"id": "Not Kebab"}, "id", "lower-case"),
        ({"id": "words"}, "id", "twice"),
        ({"name": ""}, "name", "text"),
        ({"category": "other"}, "category", "one of"),
        ({"severity": "grave"}, "severity", "one of"),
        ({"confidence": 1.5}, "confidence", "0 to 1"),
        ({"confidence": True}, "confidence", "0 to 1"),
        ({"description": None}, "description", "missing"),
        ({"direction": []}, "direction", "inbound"),
        ({"direction": ["sideways"]}, "direction", "one of"),
        ({"view": "raw"}, "view", "one of"),
        ({"literals": ["a"]}, "literals", "too short"),
        ({"literals": [1]}, "literals", "list of texts"),
        ({"pattern": None}, "pattern", "missing"),
        ({"pattern": "ignore(all"}, "pattern", "not a regex"),
        ({"pattern": "ignore .*all"}, "pattern", "not bounded"),
        ({"pattern": "ignore .{3,}all"}, "pattern", "not bounded"),
        ({"pattern": "(?:ignore)?"}, "pattern", "empty text"),
        ({"pattern": "ignore.{0,5000}"}, "pattern", "more than"),
        ({"pattern": r"(ign)ore \1"}, "pattern", "refers back"),
        ({"pattern": "Ignore all"}, "pattern", "never has"),
        ({"pattern": "[a-z]{3,9}"}, "pattern", "no literal"),
        ({"pattern": "ignore <<nouns>>"}, "pattern", "no table"),
        ({"pattern": "ignore [а-я]{3}"}, "pattern", "range"),
        ({"validator": "no-such-check"}, "validator", "no check"),
        ({"validator": "luhn+weights:eleven/9 8 7"}, "validator", "cannot be read"),
        ({"validator": "weights:0/9 8 7"}, "validator", "cannot be read"),
        ({"match": []}, "match", "example"),
        ({"pass": None}, "pass", "missing"),
        ({"colour": "red"}, "colour", "not known"),
    ],
)
def test_bad_field_is_named_with_its_rule(
    document: dict[str, Any], fields: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(RuleError) as caught:
        load_rules(_raw(document, **fields))
    assert caught.value.field == field
    assert reason in caught.value.reason
    assert caught.value.rule in ("override", "words", "rules[0]")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"version": 2, "rules": []}',
        b'{"version": 1, "rules": []}',
        b'{"version": 1, "rules": [1]}',
        b'{"version": 1, "rules": [], "more": 1}',
        b'{"version": 1, "tables": [], "rules": [{}]}',
        b'{"version": 1, "tables": {"a": []}, "rules": [{}]}',
    ],
)
def test_file_that_is_no_rule_file_is_refused(raw: bytes) -> None:
    with pytest.raises(RuleError):
        load_rules(raw)


@pytest.mark.parametrize(
    "pattern",
    [
        r"ignore (?:a{1,30}){1,30}b",
        r"ignore (?:a|a?){1,40}b",
        r"ignore (?:\w{1,20} ?){1,30}!",
        r"ignore [a-z]{0,500}[a-z]{0,500}[a-z]{0,500}\d",
    ],
)
def test_regex_that_may_take_too_long_is_refused(document: dict[str, Any], pattern: str) -> None:
    ruleset = load_rules(_raw(document, pattern=pattern))
    with pytest.raises(RuleError) as caught:
        try_rules(ruleset)
    assert (caught.value.rule, caught.value.field) == ("override", "pattern")


def test_rules_of_the_tests_are_fast_enough(document: dict[str, Any]) -> None:
    try_rules(load_rules(json.dumps(document).encode()))


def test_error_says_rule_field_and_reason() -> None:
    assert str(RuleError("a-rule", "pattern", "is bad")) == "a-rule: pattern: is bad"
    assert str(RuleError("", "", "not JSON")) == "rules: not JSON"


def test_plans_that_were_written_are_the_plans_that_would_be_derived(document: dict[str, Any]) -> None:
    raw = json.dumps(document).encode()
    derived = load_rules(raw)
    written = derived.packed
    ready = load_rules(raw, plans=written)
    assert list(ready.rules) == list(derived.rules)
    assert (ready.plans, ready.digest, len(ready.rules)) == (derived.plans, derived.digest, len(derived.rules))
    assert load_rules(raw).packed == written


@pytest.mark.parametrize("shares", [1, 3, 100])
def test_rules_that_were_planned_in_shares_are_planned_alike(document: dict[str, Any], shares: int) -> None:
    raw = json.dumps(document).encode()
    planned = [rules.plan_share(raw, share, shares) for share in range(shares)]
    assert sum(map(len, planned)) == len(document["rules"])
    again, anew = load_rules(raw, planned=planned), load_rules(raw)
    assert again.packed == anew.packed and list(again.rules) == list(anew.rules)


def test_plans_of_another_rule_file_are_not_used(document: dict[str, Any]) -> None:
    ruleset = load_rules(json.dumps(document).encode())
    assert read_plans(ruleset.packed, "0" * 64) is None
    changed = json.dumps(document | {"rules": document["rules"][:3]}).encode()
    assert len(load_rules(changed, plans=ruleset.packed).plans) == 3


def test_rules_that_were_planned_before_are_planned_alike_and_not_again(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = next(iter(document["tables"]))
    changed = {
        **document,
        "tables": {**document["tables"], table: [*document["tables"][table], "quokkas"]},
        "rules": [{**document["rules"][-1], "description": "Another.", "severity": "low"}, *document["rules"][:-1]],
    }
    raw = json.dumps(changed).encode()
    anew, known = load_rules(raw), load_rules(json.dumps(document).encode())
    planned: list[str] = []
    plan_rule = rules.plan_rule

    def noted(pattern: str, *rest: Any, **more: Any) -> Plan:
        planned.append(pattern)
        return plan_rule(pattern, *rest, **more)

    monkeypatch.setattr(rules, "plan_rule", noted)
    again = load_rules(raw, known=known)
    assert planned == [rule["pattern"] for rule in changed["rules"] if f"<<{table}>>" in rule.get("pattern", "")]
    assert 0 < len(planned) < len(changed["rules"])
    assert again.packed == anew.packed and list(again.rules) == list(anew.rules)


def test_a_regex_that_was_tried_before_is_not_tried_again(document: dict[str, Any]) -> None:
    slow = load_rules(_raw(document, pattern=r"ignore (?:a|a?){1,40}b"))
    try_rules(slow, slow)
    with pytest.raises(RuleError):
        try_rules(slow, load_rules(json.dumps(document).encode()))
