"""From a rule to what the matcher runs: one regex, the literals that lead to it, and where it may begin from there.

A plan holds nothing but text and numbers, so that plans can be stored beside the rules and made ready in no time.
"""

import re
from dataclasses import dataclass

from gateway.shield.normalize import Normalizer
from gateway.shield.patterns import Pattern, PatternError, Required, squash_digits

GATE_CHARS = 64
_LEAST_RUN_CHARS = 9
# How often characters stand in prose and code, per 1000; every digit is 0. What is not listed is rare.
_COMMON = (
    (" ", 150), ("e", 90), ("t", 65), ("s", 60), ("a", 55), ("in", 50), ("or", 45), ("l", 33), ("c", 28), ("d", 27),
    ("h", 26), ("u", 24), ("pm", 22), ("f", 19), ("_", 18), ("y", 16), ("0", 20), (".", 14), ("bg", 13), ("w", 12),
    ("(,)'", 10), (":", 9), ("-=v", 8), ('"', 7), ("k", 6), ("x/", 4), ("#`>jqz*", 2), ("{}[]<|@!?", 1),
)  # fmt: skip
FREQUENCY = {char: share for chars, share in _COMMON for char in chars}
RARE = 0.5
# Letters of words in scripts with spaces: a word's edge is where none of them stands beside it.
_WORD = "0-9A-Za-z_\u00c0-\u058f"
_IS_WORD = re.compile(f"[{_WORD}]")


@dataclass(frozen=True, slots=True)
class Plan:
    """How one rule is run.

    source: the regex, tables expanded, in the letters of the rule's view.
    literals: in the automaton's letters; empty when the rule is found by a run of digits.
    low, high: a match begins at least `low` and at most `high` characters before its literal; negative is after.
    run_chars: shortest run of digits and separators that can hold a match, or 0. run_digits: digits in it.
    reach_chars: how far from its beginning the regex reads. widest_chars: the longest match.
    gate: literals one of which must stand in the match or at most GATE_CHARS before it; empty when that is sure.
    """

    source: str
    literals: tuple[str, ...]
    low: int
    high: int
    run_chars: int
    run_digits: int
    reach_chars: int
    widest_chars: int
    gate: tuple[str, ...]


def likelihood(literal: str) -> float:
    """Estimate how often a literal stands at a given character of ordinary text."""
    chance, last = 1.0, ""
    for char in literal:
        chance *= 0.5 if char == last == "0" else FREQUENCY.get(char, RARE) / 1000
        last = char
    return chance


def plan_rule(
    pattern: str | None,
    literals: tuple[str, ...],
    *,
    is_normalized: bool,
    tables: dict[str, list[str]],
    fold: Normalizer,
) -> Plan:
    """Choose how a rule is found.

    Raises:
        PatternError: the pattern is no regex the shield may run, or nothing leads to its matches.
    """
    if is_normalized:
        literals = tuple(fold.normalize(literal).text for literal in literals)
    if pattern is None:
        source = "|".join(_whole(literal) for literal in sorted(literals, key=lambda word: (-len(word), word)))
    else:
        source = expand(pattern, tables)
        if is_normalized:
            source = fold_pattern(source, fold)
    parsed = Pattern(source, fold=fold.fold_char, is_normalized=is_normalized)
    width = parsed.widest_chars
    ways = parsed.required()
    gate: tuple[str, ...] = ()
    if pattern is None:
        # A blank at the edge of a text may be one of a run there, so in that view the literal is found without it.
        edges = 0 if is_normalized else max(len(literal) - len(literal.lstrip()) for literal in literals)
        words = (squash_digits(fold.normalize(literal).text) for literal in literals)
        ways = [Required(frozenset(word.lstrip(" ") if edges else word for word in words), 0, edges)]
    elif literals:
        near = frozenset(squash_digits(fold.normalize(literal).text).lstrip(" ") for literal in literals)
        sure = any(all(any(word in found for word in near) for found in way.literals) for way in ways)
        gate = () if sure and is_normalized and not any("0" in word for word in near) else literals
        if all(near):
            ways.append(Required(near, -GATE_CHARS - 1, width))
    run = parsed.least_digits()
    best = min(ways, key=_price, default=None)
    if run and parsed.narrowest_chars >= _LEAST_RUN_CHARS and (best is None or _price(best) > 1e-6):
        return Plan(source, (), 0, 0, parsed.narrowest_chars, run, parsed.reach_chars, width, gate)
    if best is None:
        raise PatternError("no literal leads to it: begin it with words, or give literals")
    found = tuple(sorted(best.literals))
    return Plan(source, found, best.low, best.high, 0, 0, parsed.reach_chars, width, gate)


def _price(way: Required) -> float:
    """Estimate the cost of a way to find matches: how often its literals are met, times what is then searched."""
    searched = 1 if way.high == way.low else 4 + (way.high - way.low) / 16
    return searched * sum(map(likelihood, way.literals))


def _whole(literal: str) -> str:
    """Write a literal as a regex; an edge that is a letter, a digit or _ must be the edge of a word."""
    before = f"(?<![{_WORD}])" if _IS_WORD.match(literal[0]) else ""
    after = f"(?![{_WORD}])" if _IS_WORD.match(literal[-1]) else ""
    return before + re.escape(literal) + after


def expand(pattern: str, tables: dict[str, list[str]]) -> str:
    """Write every ``<<table>>`` as its words, the longest first.

    Raises:
        PatternError: there is no such table.
    """

    def words(found: re.Match[str]) -> str:
        table = tables.get(found[1])
        if table is None:
            raise PatternError(f"there is no table {found[1]!r}")
        return "(?:" + "|".join(re.escape(word) for word in sorted(table, key=lambda word: (-len(word), word))) + ")"

    return re.sub(r"<<([A-Za-z0-9_-]{1,64})>>", words, pattern)


def fold_pattern(source: str, fold: Normalizer) -> str:
    """Write every character beyond ASCII as the normalized view has it: rules may be written in any script.

    Raises:
        PatternError: a range ends in a character that folds to another, so that the range would change.
    """
    if source.isascii():
        return source
    parts = []
    for place, char in enumerate(source):
        folded = char if char.isascii() else fold.fold_char(char)
        if folded == char:
            parts.append(char)
            continue
        if "-" in (source[place - 1 : place], source[place + 1 : place + 2]) and char.isalpha() and "[" in source:
            raise PatternError(f"a range may not end in {char!r}, which folds to {folded!r}")
        parts.append(re.escape(folded))
    return "".join(parts)
