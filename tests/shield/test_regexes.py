"""Regexes that were compiled at the build: they are what is made here, or they are not used."""

import json
import random
import re
import zlib
from typing import Any

import pytest

from gateway import bundle
from gateway.shield import Direction, RuleSet, Shield, load_rules, write_plans, write_regexes
from gateway.shield.regexes import Regexes, compile_regex, differences, pack_regexes, share_pieces, whole


def texts_of(ruleset: RuleSet) -> list[list[str]]:
    return [plan.regexes() for plan in ruleset.plans]


def test_what_is_kept_of_a_regex_is_what_is_made_of_it_here(ruleset: RuleSet) -> None:
    shipped = load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans"))
    rules = texts_of(ruleset) + texts_of(shipped)[::20]
    kept = Regexes(pack_regexes("digest", rules))
    for number, texts in enumerate(rules):
        for text in texts:
            wanted, found = compile_regex(text), kept.get(number, text)
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


def test_what_pythons_have_alike_is_kept_once_and_read_by_each(ruleset: RuleSet) -> None:
    rules = texts_of(ruleset)
    first, second = pack_regexes("digest", [*rules[:-1], ["another"]]), pack_regexes("digest", rules)
    shared = share_pieces({"first": first, "second": second, "third": first})
    assert shared["first"] == first
    hasty = pack_regexes("digest", rules, is_thorough=False)
    assert hasty != second
    assert share_pieces({"first": first, "second": hasty})["second"] == shared["second"]
    assert len(shared["second"]) < len(second) / 3
    read = whole(shared["second"], shared.__getitem__)
    assert differences(read, "digest", rules) == []
    assert all(Regexes(read).get(number, text) for number, texts in enumerate(rules) for text in texts)
    assert differences(whole(shared["third"], shared.__getitem__), "digest", rules) == [
        f"the regexes of 1 rules are not theirs, the first is number {len(rules) - 1}"
    ]
    assert whole(first, {}.__getitem__) == first
    with pytest.raises(KeyError):
        whole(shared["second"], {}.__getitem__)


def test_what_was_left_in_the_archive_is_read_from_there_and_never_run_if_it_is_not_what_it_was(
    ruleset: RuleSet,
) -> None:
    rules = [*texts_of(ruleset), ["another"]]
    packs = {"first": pack_regexes("digest", rules), "second": pack_regexes("digest", [["one"], *rules[1:]])}
    members = {name: bytearray(raw) for name, raw in share_pieces(packs).items()}
    read: list[str] = []

    def part(name: str, begin: int, end: int) -> bytes:
        read.append(name)
        return bytes(members[name][begin:end])

    left = Regexes(whole(bytes(members["second"]), members.__getitem__))
    for _ in "ab":
        left.leave("second", part)
    assert left.get(0, "one") == compile_regex("one")
    assert left.get(1, rules[1][0]) == compile_regex(rules[1][0])
    assert set(read) == {"first", "second"}
    assert left.get(1, "unknown") is None
    for name, number in (("second", 0), ("first", 1)):
        members[name][:] = bytes(len(members[name]))
        assert left.get(number, "one" if name == "second" else rules[1][0]) is None
    del members["first"][10:]
    assert left.get(1, rules[1][0]) is None


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


@pytest.mark.parametrize(
    "source",
    [
        r"(?:send|share|sent|pay|se|s|paying)(?:d|)",
        r"\b(?:a|ab|abc|\d{1,2}|abcd|ab?c|x)(?P<secret>c|cd|)\b",
        r"(?i:Ab|aB|AC|b|é|É|c(?:a|A|B)|\.|abc)x?",
        r"(?:ab|(?:ab|ac)|(?>ab|a)|(?=a)ab|b(?:a|b|c|))(?<!ab|bb)c",
        r"(?:(?:a|ab|b){1,3}?(?:c|ca)|(a)|(ab)){1,2}",
        r"s[^p]{0,90}?\b(?:(?:a|(?=b)bc?)(?:d|)|(?P<secret>[abc])x|(?:d|ha){1,3}y|1{0,1}e)(?:n|\b)",
        r"(?:[^.]{0,90}(?:(?:(?:a|b)c|(?i:D)e)|x|)p|.{1,85}?(?:(?:ab|ac){0,2}d|(?:e|n)))d",
    ],
)
def test_a_regex_compiled_here_matches_where_and_how_that_of_re_does(source: str) -> None:
    dice = random.Random(source)
    ours, theirs = compile_regex(source), re.compile(source, re.ASCII)
    assert ours.groupindex == theirs.groupindex
    for _ in range(2000):
        text = "".join(dice.choices("abcdABDxsendharpyé1. ", k=dice.randrange(24)))
        assert [(one.span(), one.groups()) for one in ours.finditer(text)] == [
            (one.span(), one.groups()) for one in theirs.finditer(text)
        ]
