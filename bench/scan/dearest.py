"""What each rule costs on ordinary texts: the tries of its regexes, in processor time. Compares no scanner.

A rule's cost is that of following its leads where their literals stand, and of searching its windows; what all rules
share is left out.
"""

import gzip
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from gateway.shield import RuleSet
from gateway.shield.attempt import Attempt, merge_windows
from gateway.shield.matcher import BUDGET, Matcher
from gateway.shield.normalize import Normalizer

_TEXTS_OF_A_SOURCE = 60
_LONGEST_CHARS = 8_000
_TIMES = 3
_SHOWN = 30
_NOTHING_SECONDS = 2e-7


class Cost:
    """What rules cost on texts of one kind, by rule number: microseconds and leads a 1,000 characters, and literals."""

    def __init__(self, matcher: Matcher, texts: Sequence[str]) -> None:
        self.leads: dict[int, float] = defaultdict(float)
        self.spent: dict[int, float] = defaultdict(float)
        self.words: dict[int, Counter[str]] = defaultdict(Counter)
        work: dict[int, list[Callable[[], object]]] = defaultdict(list)
        thousands = sum(map(len, texts)) / 1000
        for text in texts:
            view = Normalizer().normalize(text)
            attempt = Attempt(view, with_text_rules=True)
            attempt.left = BUDGET * len(text)
            for lead, place in matcher.leads(view):
                number = lead.runner.number
                work[number].append(lambda follow=attempt.follow, lead=lead, place=place: follow(lead, place))  # type: ignore[misc]
                self.leads[number] += 1 / thousands
                self.words[number][view.text[place : place + 12]] += 1
                attempt.follow(lead, place)
            for runner, windows in attempt.windows.items():
                subject = view.source if runner.on_text else view.text
                for window in merge_windows(windows):
                    call = lambda search=runner.search, subject=subject, window=window: search(subject, *window)  # noqa: E731
                    work[runner.number].append(call)
            attempt.windows = {}
        for number, calls in work.items():
            spent = min(_seconds_of(calls) for _ in range(_TIMES)) - len(calls) * _NOTHING_SECONDS
            self.spent[number] = max(0.0, spent) * 1e6 / thousands


def _seconds_of(calls: Sequence[Callable[[], object]]) -> float:
    began = time.process_time()
    for call in calls:
        call()
    return time.process_time() - began


def sources(folder: Path) -> dict[str, list[str]]:
    """Return some harmless texts of each source of a data folder, which holds a `benign.jsonl.gz`."""
    found: dict[str, list[str]] = defaultdict(list)
    with gzip.open(folder / "benign.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            found[row["source"]].append(row["text"][:_LONGEST_CHARS])
    return {
        name: random.Random(name).sample(texts, min(len(texts), _TEXTS_OF_A_SOURCE)) for name, texts in found.items()
    }


def measure(ruleset: RuleSet, kinds: dict[str, list[str]]) -> None:
    """Print what following leads costs on each kind of text, and which rules cost most on all of them."""
    matcher = Matcher(ruleset.layout)
    ids = [rule.id for rule in ruleset.rules]
    costs = {kind: Cost(matcher, texts) for kind, texts in kinds.items()}
    mean: dict[int, float] = defaultdict(float)
    for kind, cost in costs.items():
        leads, spent = sum(cost.leads.values()), sum(cost.spent.values())
        dearest = ", ".join(f"{ids[number]} {most:.1f}" for number, most in _most(cost.spent, 4))
        print(f"{kind:20} {leads:6.1f} leads {spent:7.1f} us a 1,000 characters: {dearest}")
        for number, spent in cost.spent.items():
            mean[number] += spent / len(costs)
    print(f"all kinds alike {sum(mean.values()):.1f} us a 1,000 characters")
    for number, spent in _most(mean, _SHOWN):
        worst = max(costs, key=lambda kind: costs[kind].spent[number])
        leads = sum(cost.leads[number] for cost in costs.values()) / len(costs)
        words: Counter[str] = sum((cost.words[number] for cost in costs.values()), Counter())
        told = ", ".join(repr(word) for word, _ in words.most_common(4))
        most = f"{costs[worst].spent[number]:6.1f} us in {worst}"
        print(f"{ids[number]:32} {spent:6.2f} us {leads:6.2f} leads; {most}: {told}")


def _most(spent: dict[int, float], count: int) -> list[tuple[int, float]]:
    return nlargest(count, spent.items(), key=itemgetter(1))
