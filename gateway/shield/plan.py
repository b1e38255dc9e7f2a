"""From a rule to what the matcher runs: one regex, and how its matches are found.

A plan holds nothing but text and numbers, so that plans can be stored beside the rules and made ready in no time.
"""

import re
from dataclasses import dataclass
from typing import Literal

from gateway.shield.automaton import trie_regex
from gateway.shield.literals import Lead, Literals, Way, price_of, squash_digits
from gateway.shield.normalize import Normalizer, is_itself
from gateway.shield.patterns import Pattern, PatternError

GATE_CHARS = 64
LONG_TOKEN_CHARS = 16
_LEAST_RUN_CHARS = 9
# What tells a token by its inside is so long: pairs of letters stand in every key.
_LEAST_INNER_CHARS = 4
# A block is looked at with a little of what follows it: a longer literal might not stand there whole.
_LONGEST_LEAD_CHARS = 24
# A way that costs less is taken before a search through runs of digits.
_CHEAP = 2e-5
# Letters of words in scripts with spaces: a word's edge is where none of them stands beside it.
_WORD = "0-9A-Za-z_\u00c0-\u058f"
_IS_WORD = re.compile(f"[{_WORD}]")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
_ANY_CASE = re.compile(r"\(\?[aLmsux]{0,5}i")
# Tables of names of numbers, which are names of fields, too.
_NAMES = "name_"
_SHORT_NAME_CHARS = 4
_TABLE_NAME = re.compile(r"<<([A-Za-z0-9_-]{1,64})>>")

How = Literal["words", "tokens", "digits", "unseen"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How one pattern of a rule is run.

    source: the regex, tables expanded, in the letters of the rule's view.
    how: what leads to a match. ``words``: leads in the automaton's letters, in the normalized view. ``tokens``: leads
    as they are written, in a run of at least LONG_TOKEN_CHARS token characters of the text as sent, with which every
    match begins. ``digits``: a run of `run_chars` digits and separators, `run_digits` of them digits. ``unseen``: one
    of the characters `first`.
    reach_chars: how far from its beginning the regex reads.
    gate: literals one of which must stand in the match or at most GATE_CHARS before it; empty when that is sure.
    alone: ASCII letters and digits of which none stands before a match that begins with one of them.
    holds_value: whether every match of a rule for the text as sent holds a long value (`shapes.is_value_char`).
    """

    source: str
    how: How
    reach_chars: int
    leads: tuple[Lead, ...] = ()
    run_chars: int = 0
    run_digits: int = 0
    first: str = ""
    gate: tuple[str, ...] = ()
    alone: str = ""
    holds_value: bool = False


def plan_rule(
    pattern: str | None,
    literals: tuple[str, ...],
    *,
    is_normalized: bool,
    tables: dict[str, list[str]],
    fold: Normalizer,
) -> Plan:
    """Choose how a pattern is found, or the literals alone.

    Raises:
        PatternError: the pattern is no regex the shield may run, or nothing leads to its matches.
    """
    if is_normalized:
        literals = tuple(fold.normalize(literal).text for literal in literals)
    source = _source_of(pattern, literals, tables, fold if is_normalized else None)
    parsed = Pattern(source, fold.fold_char if is_normalized else None)
    near = [squash_digits(fold.normalize(literal).text).lstrip(" ")[:_LONGEST_LEAD_CHARS] for literal in literals]
    reach, gate = parsed.reach_chars, literals if pattern is not None else ()
    if not is_normalized:
        first = parsed.first_chars()
        if first and not any(map(is_itself, first)):
            return Plan(source, "unseen", reach, first=first, gate=gate)
        tokens = _token_plan(parsed, source, gate)
        if tokens:
            return tokens
    best: Way | None
    if pattern is None:
        # Written out: a blank at a literal's edge may be one of a run, so it is found from its first other character.
        edges = 0 if is_normalized else max(len(literal) - len(literal.lstrip()) for literal in literals)
        leads = tuple(sorted({Lead(word, 0, edges) for word in near}))
        best = Way(leads, price_of(leads))
    else:
        folded = lambda char: squash_digits(fold.fold_char(char))  # noqa: E731
        best = Literals(parsed.tree, folded, digit="0", blank=" ", is_exact=is_normalized).cheapest()
        if near and all(near):
            leads = tuple(sorted({Lead(word, -GATE_CHARS - 1, parsed.widest_chars) for word in near}))
            if best is None or price_of(leads) < best.price:
                best = Way(leads, price_of(leads))
    if (
        (best is None or best.price > _CHEAP)
        and parsed.narrowest_chars >= _LEAST_RUN_CHARS
        and (digits := parsed.least_digits())
    ):
        return Plan(source, "digits", reach, run_chars=parsed.narrowest_chars, run_digits=digits, gate=gate)
    if best is None:
        raise PatternError("no literal leads to it: begin it with words, or give literals")
    holds_value = not is_normalized and parsed.holds_value()
    return Plan(source, "words", reach, best.leads, gate=gate, alone=parsed.alone(), holds_value=holds_value)


def _source_of(
    pattern: str | None, literals: tuple[str, ...], tables: dict[str, list[str]], fold: Normalizer | None
) -> str:
    """Write a rule as one regex; `fold` is how its view writes letters, if that is not as they are."""
    if pattern is None:
        return "|".join(_whole(literal) for literal in sorted(literals, key=lambda word: (-len(word), word)))
    source = expand(pattern, tables)
    return fold_pattern(source, fold) if fold else source


def _token_plan(parsed: Pattern, source: str, gate: tuple[str, ...]) -> Plan | None:
    """Plan a rule whose match begins with a long token: then only long tokens are looked at, as they are written."""
    chars = parsed.least_token_chars()
    if chars < LONG_TOKEN_CHARS or _ANY_CASE.search(source):
        return None
    way = Literals(parsed.tree, str, least_chars=1).beginning()
    way = way or Literals(parsed.tree, str, least_chars=_LEAST_INNER_CHARS).cheapest()
    # A literal further on must stand in the token, too, and at one place of it.
    if way is None or any(lead.low != lead.high or lead.high + len(lead.literal) > chars for lead in way.leads):
        return None
    return Plan(source, "tokens", parsed.reach_chars, way.leads, gate=gate, alone=parsed.alone())


def _whole(literal: str) -> str:
    """Write a literal as a regex; an edge that is a letter, a digit or _ must be the edge of a word."""
    before = f"(?<![{_WORD}])" if _IS_WORD.match(literal[0]) else ""
    after = f"(?![{_WORD}])" if _IS_WORD.match(literal[-1]) else ""
    return before + re.escape(literal) + after


def table_names(pattern: str) -> list[str]:
    """Return the names of the tables that a pattern asks for."""
    return _TABLE_NAME.findall(pattern)


def expand(pattern: str, tables: dict[str, list[str]]) -> str:
    """Write every ``<<table>>`` as a regex of its words that tells them apart by their letters, the longest first.

    In a table called ``name_…`` a blank may be another sign or none, and no letter stands behind a short name.

    Raises:
        PatternError: there is no such table.
    """

    def words(found: re.Match[str]) -> str:
        table = tables.get(found[1])
        if table is None:
            raise PatternError(f"there is no table {found[1]!r}")
        if not found[1].startswith(_NAMES):
            return f"(?:{trie_regex(table)})"
        return "(?:" + "|".join(_name(word) for word in sorted(table, key=lambda word: (-len(word), word))) + ")"

    return _TABLE_NAME.sub(words, pattern)


def _name(word: str) -> str:
    is_short = len(word.replace(" ", "")) <= _SHORT_NAME_CHARS
    return "[ _.-]{0,2}".join(map(re.escape, word.split(" "))) + "(?![a-z])" * is_short


def fold_pattern(source: str, fold: Normalizer) -> str:
    """Write every character beyond ASCII as the normalized view has it: rules may be written in any script.

    Raises:
        PatternError: a range ends in a character that folds to another, so that the range would change.
    """
    source = _UNICODE_ESCAPE.sub(lambda code: chr(int(code[1] or code[2], 16)), source)
    if source.isascii():
        return source
    parts = []
    for place, char in enumerate(source):
        folded = char if char.isascii() else fold.fold_char(char)
        if folded == char:
            parts.append(char)
            continue
        if char.isalpha() and "-" in (source[place - 1 : place], source[place + 1 : place + 2]) and "[" in source:
            raise PatternError(f"a range may not end in {char!r}, which folds to {folded!r}")
        escaped = re.escape(folded)
        # A backslash before the character already escapes what it folds to.
        parts.append(escaped[1:] if source[place - 1 : place] == "\\" and escaped.startswith("\\") else escaped)
    return "".join(parts)
