"""Regexes that were compiled at the build: they are what `re` makes here, or they are not used."""

import json
import re
import zlib
from typing import Any

import pytest

from gateway import bundle
from gateway.shield import Direction, RuleSet, Shield, load_rules, write_plans, write_regexes
from gateway.shield.regexes import FLAGS, Regexes, differences, pack_regexes


def texts_of(ruleset: RuleSet) -> list[list[str]]:
    return [plan.regexes() for plan in ruleset.plans]


def test_what_is_kept_of_a_regex_is_what_re_makes_of_it(ruleset: RuleSet) -> None:
    shipped = load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans"))
    rules = texts_of(ruleset) + texts_of(shipped)[::20]
    kept = Regexes(pack_regexes("digest", rules))
    for number, texts in enumerate(rules):
        for text in texts:
            wanted, found = re.compile(text, FLAGS), kept.get(number, text)
            assert found == wanted, text
            assert found and (found.groupindex, found.groups, found.flags) == (
                wanted.groupindex,
                wanted.groups,
                wanted.flags,
            )


def test_a_shield_with_kept_regexes_finds_the_same(
    document: dict[str, Any], ruleset: RuleSet, positives: dict[str, str]
) -> None:
    raw = json.dumps(document).encode()
    ready = Shield(load_rules(raw, plans=write_plans(ruleset), regexes=write_regexes(ruleset)))
    for text in (*positives.values(), " ".join(positives.values())):
        assert ready.scan(text, Direction.OUTBOUND) == Shield(ruleset).scan(text, Direction.OUTBOUND)


@pytest.mark.parametrize(("ours", "theirs"), [(b'"engine":"', b'"engine":"other '), (b'"digest":"', b'"digest":"0')])
def test_regexes_of_another_engine_or_rule_file_are_never_run(
    document: dict[str, Any], ruleset: RuleSet, positives: dict[str, str], ours: bytes, theirs: bytes
) -> None:
    raw = json.dumps(document).encode()
    head, line, packed = write_regexes(ruleset).partition(b"\n")
    foreign = head.replace(ours, theirs) + line + packed
    assert Regexes(foreign).fits(ruleset.digest) is False
    ready = Shield(load_rules(raw, plans=write_plans(ruleset), regexes=foreign))
    assert ready.scan(positives["override"], Direction.INBOUND).detections
    assert differences(foreign, ruleset.digest, texts_of(ruleset)) == ["its regexes are of another engine or rule file"]


def test_a_pack_that_was_changed_or_is_of_other_rules_is_told(ruleset: RuleSet) -> None:
    rules = texts_of(ruleset)
    pack = pack_regexes("digest", rules)
    assert differences(pack, "digest", rules) == []
    assert differences(pack, "digest", rules[:-1]) == ["its regexes are of other rules"]
    other = pack_regexes("digest", [[*rules[0][:-1], "another"], *rules[1:]])
    assert differences(other, "digest", rules) == ["the regexes of 1 rules are not theirs, the first is number 0"]
    for place in range(0, len(pack), 37):
        changed = bytearray(pack)
        changed[place] ^= 0x55
        try:
            assert differences(bytes(changed), "digest", rules), place
        except (ValueError, LookupError, TypeError, zlib.error):
            continue  # what `verify` turns into one line
