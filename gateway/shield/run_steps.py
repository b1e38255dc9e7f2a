"""How much of a text is held for the run or word that it ends with, remembered letter by letter. Asks no rule.

Theory of operation. One of the two machines of `steps`. A state keeps no more of a text than it needs: letters of a
word with which no key can begin are all the same letter.
"""

import re
from string import ascii_lowercase, ascii_uppercase

from gateway.shield.literals import squash_digits
from gateway.shield.runs import CODE_LETTERS, HEAD_CHARS, LONG_RUN_CHARS, RUN, Runs, is_long
from gateway.shield.steps import KEPT_RUN_CHARS, ODD, PLAIN, Machine, State
from gateway.shield.watched import SPACELESS

# Stands for any letter of a script without blanks between words.
_SPACELESS_LETTER = "\u4e00"
_groups = re.compile("[A-Za-z]+")
# A run ended behind more than one letter; a word behind a single letter.
_ended = re.compile(r"[A-Za-z0-9]{2}([\"'()\[\]{},]{1,3})\Z").search
_after_letter = re.compile(r"[A-Za-z][ \n][A-Za-z]{2,}").fullmatch
# What may stand before a word with which a run is looked at: signs, or another word that it goes on.
_before_word = re.compile("[^A-Za-z0-9]*(?:[A-Za-z]+-)?").fullmatch
_may_begin_code = re.compile("[0-9+(]").search


class Shapes(Machine):
    """Remembers the run that a text ends with: what is held for its shape."""

    __slots__ = ("_alike", "_runs")

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._runs = runs
        self._alike = _same_letters(runs)

    def after(self, state: State, char: str) -> State:
        """Return the state that a character leads to."""
        return self.told(state.kept + char)

    def told(self, run: str) -> State:
        """Return the state of a text that ends with a run, in so far as it remembers that."""
        runs, size = self._runs, len(run)
        plain = runs.plain(run, 0) if size <= KEPT_RUN_CHARS else None
        if plain is not None:
            begin, live, mark = plain.begin, plain.live, PLAIN
        elif size > KEPT_RUN_CHARS or (size >= LONG_RUN_CHARS and is_long(run, 0)):
            return self.lost
        else:
            live = runs.live(run)
            begin = min(live, max(run.rfind(" "), run.rfind("\n")) + 1)
            mark = PLAIN if run.isspace() else ODD
        kept = self._kept(run[begin:], is_held=live < size)
        return self._same(State(self, kept, size - live, mark))

    def _kept(self, run: str, *, is_held: bool) -> str:
        """Return a run in which all is the same that makes no difference."""
        same = self._alike
        if not same or not run:
            return run
        if not run.isascii():
            if run.isalpha() and max(run) < SPACELESS:
                return same[ord("a")] * len(run)
            return _SPACELESS_LETTER if len(run) > 1 and min(run[-2:]) >= SPACELESS and run[-2:].isalnum() else run
        if not is_held:
            ended = _ended(run)
            if ended:
                return same[ord("a")] * 2 + ended[1]
            if _after_letter(run):
                run = run[2:]
        return squash_digits(_groups.sub(self._same_group, run))

    def _same_group(self, group: "re.Match[str]") -> str:
        letters = group[0]
        if self._runs.is_head(letters) and _may_begin_run(group.string, *group.span()):
            return letters[:HEAD_CHARS] + letters[HEAD_CHARS:].translate(self._alike)
        # Letters that may stand in a code of characters go on with one.
        is_code = not letters.strip(CODE_LETTERS) and _may_begin_code(group.string, 0, group.start())
        return letters if is_code else letters.translate(self._alike)


def _may_begin_run(text: str, start: int, end: int) -> bool:
    """Say whether a word stands where the run begins that the text ends with."""
    begin = len(text[:start].rstrip(RUN))
    return not text[end:].strip(RUN) and _before_word(text, begin, start) is not None


def _same_letters(runs: Runs) -> dict[int, str]:
    """Map letters to one with which no key begins, and which is in no code; capitals to a capital."""
    known: dict[int, str] = {}
    for letters in (ascii_lowercase, ascii_uppercase):
        free = [char for char in letters if char not in CODE_LETTERS and not runs.is_head(char)]
        if not free:
            return {}
        known |= dict.fromkeys(map(ord, letters), free[0])
    return known
