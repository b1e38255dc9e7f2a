"""`rules import`: rules of gitleaks' format, made up here, as rules of ours."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.cli.command import Console
from gateway.cli.main import _parser
from gateway.cli.re2 import translate
from gateway.errors import SetupError
from gateway.shield import Direction, Shield, load_rules
from gateway.shield.patterns import PatternError
from gateway.shield.suite import run_examples

GOOD = r"""
title = "made up"
[[rules]]
id = "zorg-api-token"
description = "A token of Zorg,   which opens its API."
regex = '''\b(zorg_[a-z0-9]{24})(?:['"\s;]|$)'''
entropy = 3
keywords = ["zorg_"]
tags = ["api"]

[[rules]]
id = "Blip.Secret"
regex = '''(?i)blip(?:[\w.-]{0,20}?)(?:=|:){1}\s*"?([[:alnum:]]{16})'''
secretGroup = 1
keywords = ["blip"]
[[rules.allowlists]]
regexes = ['''^example''', '''sample$''']
stopwords = ["test"]

[[rules]]
id = "quux-line"
regex = '''quux-key-(?<value>[A-F0-9]+)-(?P<rest>[a-z]+)\z'''
"""
BAD = r"""
[[rules]]
id = "by-path"
path = '''\.p12$'''
[[rules]]
id = "path-too"
path = '''\.env$'''
regex = '''secret_[a-z]{8}'''
[[rules]]
id = "script"
regex = '''key-\p{Greek}{4}'''
[[rules]]
id = "zorg-api-token"
regex = '''zorg_[a-z]{4}'''
[[rules]]
id = "anything"
regex = '''.*'''
[[rules]]
id = "no-such-group"
regex = '''abcd(e)f'''
secretGroup = 4
[[rules]]
regex = '''nameless_[a-z]{4}'''
[[rules]]
id = "broken"
regex = '''bro(ken'''
"""


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(toml: str, *words: str) -> tuple[int, str, str]:
        path = tmp_path / "leaks.toml"
        path.write_bytes(toml.encode("utf-8", "surrogateescape"))
        out, err = io.StringIO(newline=""), io.StringIO()
        options = _parser().parse_args(["rules", "import", str(path), *words])
        code = options.run(options, Console(out, err, io.BytesIO(), NativeReport("python", None, ())))
        return code, out.getvalue(), err.getvalue()

    return call


def shield_of(text: str) -> Shield:
    return Shield(load_rules(text.encode()))


def test_imported_rules_find_what_they_were_written_for_and_hold_their_own_examples(run: Run) -> None:
    code, out, err = run(GOOD)
    assert code == 0, err
    shield = shield_of(out)
    assert [rule.id for rule in shield.rules] == ["zorg-api-token", "blip-secret", "quux-line"]
    assert run_examples(shield).failures == ()
    token = "zorg_8fk2m1x9qw7e5r4t3y6u0i2o"
    found = shield.scan(f"token: {token};", Direction.OUTBOUND).detections
    assert [(one.rule, one.end - one.start) for one in found] == [("zorg-api-token", len(token))]
    assert shield.rules[0].description == "A token of Zorg, which opens its API."


def test_entropy_group_and_the_allowlist_that_can_be_stated_are_kept(run: Run) -> None:
    shield = shield_of(run(GOOD)[1])

    def found(text: str) -> list[str]:
        return [one.rule for one in shield.scan(text, Direction.INBOUND).detections]

    assert found("zorg_aaaaaaaaaaaaaaaaaaaaaaaa ") == []
    assert found('BLIP.key="q8W2e9R4t7Y1u5I3"') == ["blip-secret"]
    assert found('blip.key="exampleR4t7Y1u5I"') == []


def test_what_was_changed_is_told(run: Run) -> None:
    code, _, err = run(GOOD)
    assert code == 0
    assert "quux-line: unbounded repeats are limited to 256 times" in err
    assert "blip-secret: 2 entries of its allowlist are not imported" in err
    assert "3 rules imported, 0 left out" in err


def test_what_cannot_be_imported_is_left_out_with_its_reason_and_the_exit_code_says_so(run: Run) -> None:
    code, out, err = run(GOOD + BAD)
    assert code == 1
    assert len(json.loads(out)["rules"]) == 3
    for line in (
        "left out: by-path: has no regex",
        "left out: path-too: applies to files by their path",
        r"left out: script: holds \p",
        "left out: zorg-api-token: another rule has this id",
        "left out: anything: pattern: matches the empty text",
        "left out: no-such-group: has no group 4",
        "left out: rules[9]: has no id",
        "left out: broken: not a regex",
    ):
        assert line in err
    assert "3 rules imported, 8 left out" in err


def test_rules_are_added_to_a_file_whose_own_rules_stay_as_they_are(run: Run, tmp_path: Path) -> None:
    own: dict[str, Any] = {
        "id": "quux-line", "name": "Own", "category": "secret", "severity": "low", "confidence": 1, "description": "Own.",
        "direction": ["inbound"], "literals": ["abcdef"], "match": ["abcdef"], "pass": ["abc"],
    }  # fmt: skip
    mine, new = tmp_path / "mine.json", tmp_path / "new.json"
    mine.write_text(json.dumps({"version": 1, "tables": {"t": ["x"]}, "rules": [own]}))
    code, out, err = run(GOOD, "--merge", str(mine), "--output", str(new))
    assert (code, out) == (1, "")
    document = json.loads(new.read_text())
    assert document["rules"][0] == own
    assert [rule["id"] for rule in document["rules"][1:]] == ["zorg-api-token", "blip-secret"]
    assert "left out: quux-line: another rule has this id" in err
    load_rules(new.read_bytes())


def test_rules_that_cannot_be_written_leave_the_file_that_is_there(run: Run, tmp_path: Path) -> None:
    mine, new = tmp_path / "mine.json", tmp_path / "new.json"
    mine.write_text('{"version": 1, "rules": [{"id": "half", "description": "\\ud800"}]}')
    new.write_text("as it was")
    with pytest.raises(SetupError, match="cannot be imported"):
        run(GOOD, "--merge", str(mine), "--output", str(new))
    assert new.read_text() == "as it was"


@pytest.mark.parametrize("toml", ["", "rules = 3", "[[rules]\n", "x = 1", "\udcff = 1", "a = " + "[" * 5000])
def test_file_that_is_no_such_configuration_is_refused_in_one_line(run: Run, toml: str) -> None:
    with pytest.raises(SetupError) as caught:
        run(toml)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("words", [("--merge", "/does/not/exist"), ("--output", "/does/not/exist/x.json")])
def test_file_that_is_not_there_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    path = tmp_path / "leaks.toml"
    path.write_text(GOOD)
    options = cli.read(["rules", "import", str(path), *words])
    assert cli.run(options, NativeReport("python", None, ())) == 2
    told = capsys.readouterr().err
    assert "/does/not/exist" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "text", "is_found"),
    [
        ("a(?i)b|c", "aB", True),
        ("a(?i)b|c", "AB", False),
        ("a(?i)b|c", "C", True),
        ("(x(?i)y)z", "xYz", True),
        ("(x(?i)y)z", "xYZ", False),
        ("[[:digit:]_]{3}", "1_2", True),
        ("[^]]x", "]x", False),
        ("[^]]x", "ax", True),
        ("k[]a]", "k]", True),
        (r"\x{41}b", "Ab", True),
        ("ab$", "ab\n", False),
        ("a{2,}", "aaaa", True),
    ],
)
def test_regex_of_go_means_the_same_here(source: str, text: str, is_found: bool) -> None:
    assert bool(re.search(translate(source).pattern, text, re.ASCII)) is is_found


@pytest.mark.parametrize("source", [r"\pL", r"\Qa.b\E", "[[:^digit:]]", "(", "(a)(?P=1)"])
def test_regex_that_has_no_counterpart_is_refused(source: str) -> None:
    with pytest.raises(PatternError):
        translate(source)
