"""Regexes in the syntax of Go (RE2) written as the bounded regexes of `re` that a rule may have. Runs none."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gateway.shield.patterns import LONGEST_MATCH_CHARS, PatternError
from gateway.shield.regex_tree import REPEATS, ops, parse, unparse

# What stands for "without end", the first with which no match is too long.
_BOUNDS = (256, 128, 64, 32, 16)
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
    "space": r"\t\n\v\f\r ", "word": r"0-9A-Za-z_", "punct": r"!-/:-@\[-`{-~", "blank": r"\t ",
}  # fmt: skip
_PART = re.compile(
    r"(?P<posix>\[:(?P<negated>\^?)(?P<class>[a-z]{1,6}):\])|(?P<flags>\(\?(?P<on>[ims]{1,3})\))|\(\?P?<(?P<name>\w{1,64})>"
    r"|(?P<wide>\\x\{(?P<code>[0-9A-Fa-f]{1,6})\})|(?P<escape>\\.)|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Translated:
    """A regex for a rule. bound: what ``*``, ``+`` and ``{n,}`` were bounded to, or None when there was none."""

    pattern: str
    bound: int | None


def translate(source: str, *, secret: int | None = None, not_at_secret: Iterable[str] = ()) -> Translated:
    """Write a regex of Go's for `re`, with bounds.

    secret: number of the group that is the secret; None for the first if there is just one, 0 for the whole match.
    not_at_secret: regexes of Go's that must not match where the secret begins.

    Raises:
        PatternError: it cannot be written so; the message says why.
    """
    try:
        tree = parse(_spelled(source))
        groups = tree.state.groups - 1
        wanted = (1 if groups == 1 else 0) if secret is None else secret
        if wanted > groups:
            raise PatternError(f"has no group {wanted}")
        unwanted = "".join(f"(?!{_Writer(64, 0, '').flagged(parse(_spelled(one)))})" for one in not_at_secret)
        for bound in _BOUNDS:
            said = _Writer(bound, wanted, unwanted)
            pattern = said.flagged(tree)
            if parse(pattern).getwidth()[1] <= LONGEST_MATCH_CHARS:
                return Translated(pattern, bound if said.is_bounded else None)
    except PatternError:
        raise
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise PatternError(f"not a regex that Python can express: {error}") from error
    raise PatternError(f"may match more than {LONGEST_MATCH_CHARS} characters")


class _Writer:
    """Writes a parse tree with bounds, and one group as the secret."""

    def __init__(self, bound: int, secret: int, unwanted: str) -> None:
        self._bound = bound
        self._secret = secret
        self._unwanted = unwanted
        self.is_bounded = False

    def flagged(self, tree: Any) -> str:
        """Return the whole regex with the flags it was parsed with."""
        letters, said = _letters(tree.state.flags), self.items(tree)
        if not self._secret and self._unwanted:
            said = self._unwanted + f"(?:{said})"
        return f"(?{letters}:{said})" if letters else said

    def items(self, items: Iterable[Any]) -> str:
        """Return a sequence."""
        return "".join(self._item(op, arg) for op, arg in items)

    def _item(self, op: Any, arg: Any) -> str:
        if op in REPEATS:
            least, most, body = arg
            if most is ops.MAXREPEAT:
                self.is_bounded = True
                most = max(self._bound, least)
            return f"(?:{self.items(body)}){{{least},{most}}}{'?' if op is ops.MIN_REPEAT else ''}"
        if op is ops.BRANCH:
            return "(?:" + "|".join(map(self.items, arg[1])) + ")"
        if op is ops.SUBPATTERN:
            number, on, off, body = arg
            letters, said = _letters(on), self.items(body)
            said = f"(?{letters}:{said})" if letters else said
            if number is not None and number == self._secret:
                return f"(?P<secret>{self._unwanted}{said})"
            return said if letters else f"(?:{said})"
        if op is ops.AT and arg is ops.AT_END:
            # Of Go's, $ is the very end of the text.
            return r"\Z"
        return unparse([(op, arg)])


def _letters(flags: int) -> str:
    return "".join(letter for flag, letter in ((re.I, "i"), (re.M, "m"), (re.S, "s")) if flags & flag)


def _spelled(source: str) -> str:
    """Write what Go spells in another way as `re` does: flags in mid-regex, classes by name, names of groups."""
    parts: list[str] = []
    # For each open group: the flags set in it so far, which hold to its end.
    flags: list[str] = [""]
    in_class = False
    for part in _PART.finditer(source):
        if part["posix"]:
            if part["negated"] or part["class"] not in _POSIX or not in_class:
                raise PatternError(f"contains the class {part['posix']}")
            parts.append(_POSIX[part["class"]])
        elif part["wide"]:
            parts.append(re.escape(chr(int(part["code"], 16))))
        elif part["escape"]:
            parts.append(_escaped(part["escape"]))
        elif in_class and part[0] == "^" and source[part.start() - 1] == "[" and parts[-1] == "[":
            parts[-1] = "[^"
        elif in_class:
            in_class = part[0] != "]" or parts[-1] in ("[", "[^")
            parts.append(r"\[" if part[0] == "[" else part[0])
        elif part["flags"]:
            parts.append(f"(?{part['on']}:")
            flags[-1] += "\0" + part["on"]
        elif part["name"] or part[0] == "(":
            flags.append("")
            parts.append("(" if part["name"] else part[0])
        elif part[0] == ")":
            parts.append(")" * (flags.pop().count("\0") + 1) if len(flags) > 1 else ")")
        elif part[0] == "|":
            opened = flags[-1].split("\0")[1:]
            parts.append(")" * len(opened) + "|" + "".join(f"(?{one}:" for one in opened))
        elif part[0] == "[":
            in_class = True
            parts.append("[")
        else:
            parts.append(part[0])
    return "".join(parts) + ")" * flags[0].count("\0")


def _escaped(escape: str) -> str:
    if escape == r"\z":
        return r"\Z"
    if escape[1] in "pPQECK":
        raise PatternError(f"holds {escape}")
    return escape
