"""Regexes of rules match where and how those of `re.compile` do, although their alternations are factored."""

import random
import re

import pytest

from gateway.shield.regexes import compile_regex


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
