"""Counts and tables of verdicts: found, blocked and wrongly flagged, by any key. Scans nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.detection.rows import Row
from gateway.shield import Verdict

# What belongs to a file: a leak counts as found when a detection of its own categories is there.
OWN_CATEGORIES = {"secrets": frozenset({"secret"}), "pii": frozenset({"pii", "financial"})}
# A disguised attack is short; plain ones of the same kinds and about its length are what it is held against.
_PLAIN_CHARS = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the shield said of one row. rules: ids of the rules that count, strongest first."""

    row: Row
    verdict: Verdict
    score: int
    rules: tuple[str, ...]
    categories: frozenset[str]

    @property
    def is_flagged(self) -> bool:
        """Tell whether the verdict is REVIEW or BLOCK."""
        return self.verdict is not Verdict.ALLOW

    @property
    def is_blocked(self) -> bool:
        """Tell whether the verdict is BLOCK."""
        return self.verdict is Verdict.BLOCK

    @property
    def is_found(self) -> bool:
        """Tell whether what the row's own file is about was seen; for attacks, whether it was flagged."""
        own = OWN_CATEGORIES.get(self.row.file)
        return self.is_flagged if own is None else bool(self.categories & own)


def print_by(title: str, outcomes: Iterable[Outcome], key: Callable[[Row], str]) -> None:
    """Print one line a key and one for all: texts, share found (of leaks) or flagged, share blocked, in percent."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome.row), []).append(outcome)
    if not groups:
        return
    print(f"\n{title:<46} {'texts':>6} {'REVIEW+':>8} {'BLOCK':>7} {'found':>7}")
    every = [outcome for group in groups.values() for outcome in group]
    for name in sorted(groups):
        _line(name, groups[name])
    if len(groups) > 1:
        _line("all", every)


def print_disguises(outcomes: Iterable[Outcome]) -> None:
    """Print for each disguise the share found, and that share relative to plain attacks of the same kinds."""
    attacks = [outcome for outcome in outcomes if outcome.row.file == "injection" and outcome.row.is_attack]
    disguised = [outcome for outcome in attacks if outcome.row.is_disguised]
    if not disguised:
        return
    kinds = {outcome.row.kind for outcome in disguised}
    plain = [
        outcome
        for outcome in attacks
        if not outcome.row.is_disguised
        and outcome.row.kind in kinds
        and outcome.row.lang == "en"
        and len(outcome.row.text) <= _PLAIN_CHARS
    ]
    base = share(outcome.is_flagged for outcome in plain)
    print(f"\n{'disguise':<30} {'texts':>6} {'REVIEW+':>8} {'of plain':>9}   plain: {base:.1f} % of {len(plain)}")
    names = sorted({outcome.row.source for outcome in disguised})
    for name in names:
        group = [outcome for outcome in disguised if outcome.row.source == name]
        found = share(outcome.is_flagged for outcome in group)
        ratio = f"{100 * found / base:8.1f}%" if base else "        -"
        print(f"{name:<30} {len(group):6} {found:7.1f}% {ratio}")


def share(claims: Iterable[bool]) -> float:
    """Return how many of `claims` are true, in percent; 0 for none."""
    values = list(claims)
    return 100 * sum(values) / len(values) if values else 0.0


def _line(name: str, group: list[Outcome]) -> None:
    flagged = share(outcome.is_flagged for outcome in group)
    blocked = share(outcome.is_blocked for outcome in group)
    found = share(outcome.is_found for outcome in group)
    print(f"{name:<46} {len(group):6} {flagged:7.2f}% {blocked:6.2f}% {found:6.2f}%")
