"""Ordinary texts lead to few rules: what a rule costs is how often its literals stand in texts that mean no harm."""

import json
import pydoc_data.topics
import random
import subprocess
import textwrap
from collections import Counter
from inspect import getsource
from pathlib import Path

import pytest

from gateway import bundle
from gateway.shield import load_rules
from gateway.shield.attempt import Attempt
from gateway.shield.matcher import BUDGET, Matcher
from gateway.shield.normalize import Normalizer

ROOT = Path(__file__).resolve().parents[2]
# A 1,000 characters, of the mean rule and of any rule.
MOST_LEADS_OF_A_RULE_AT_MEAN = 0.08
MOST_LEADS_OF_A_RULE = 4
MOST_CHARS_SEARCHED_OF_A_RULE = 40


def _texts() -> dict[str, str]:
    """Prose about a language, this project's own manual, and code."""
    guides = [path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "shield.md"]
    return {
        "prose": "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics)[:24])[:60_000],
        "manual": "\n\n".join(guides)[:60_000],
        "code": "".join(map(getsource, (subprocess, json, random, textwrap)))[:60_000],
    }


@pytest.mark.parametrize("kind", _texts())
def test_ordinary_text_leads_to_few_tries_and_to_no_rule_often(kind: str) -> None:
    ruleset = load_rules(bundle.read("rules.json"), plans=bundle.read("rules.plans"))
    matcher = Matcher(ruleset.layout)
    leads: Counter[str] = Counter()
    searched: Counter[str] = Counter()
    text = _texts()[kind]
    thousands = len(text) / 1000
    attempt = Attempt(Normalizer().normalize(text), with_text_rules=True)
    attempt.left = BUDGET * len(text)
    for lead, place in matcher.leads(attempt.view):
        leads[ruleset.rules[lead.runner.number].id] += 1
        attempt.follow(lead, place)
    for runner, windows in attempt.windows.items():
        searched[ruleset.rules[runner.number].id] += sum(high - low + 1 for low, high in windows)
    dear = f"such a rule costs every text: `python bench/scan/run.py rules` tells more; {leads.most_common(5)}"
    assert leads.total() / thousands / len(ruleset.rules) < MOST_LEADS_OF_A_RULE_AT_MEAN, dear
    assert {name: count for name, count in leads.items() if count / thousands > MOST_LEADS_OF_A_RULE} == {}, dear
    assert {name: chars for name, chars in searched.items() if chars / thousands > MOST_CHARS_SEARCHED_OF_A_RULE} == {}
