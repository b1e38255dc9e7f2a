"""What leads a stream to the matches of a rule: how they begin, or what stands further on. Reads plans, and no text.

Theory of operation. Of a rule whose matches begin with known letters, those are looked out for; else the literals of
its plan. What a match reports, if that is not all of it, begins behind a beginning, which then need not be held.
"""

from collections.abc import Iterable

from gateway.shield.literals import squash_digits
from gateway.shield.normalize import Normalizer
from gateway.shield.partial import BEGINNING_CHARS, Beginning, beginnings
from gateway.shield.plan import Plan
from gateway.shield.watched import GAP_CHARS, Entry, Lead


class Lister:
    """Lists what leads to rules."""

    __slots__ = ("_fold",)

    def __init__(self, fold: Normalizer) -> None:
        """fold: how the normalized view writes letters."""
        self._fold = fold

    def leads_of(self, plan: Plan, entry: Entry, *, is_masked: bool) -> Iterable[tuple[str, Lead]]:
        """Return what leads to a plan's matches: a beginning if one is known, else a literal that stands further on.

        is_masked: whether no letter of a match may go out, be it inside a word.
        """
        begins = False
        for word, is_edge, is_told in self._beginnings_of(plan, entry, is_masked=is_masked):
            # White space at the edge of a match is no part of it that matters.
            folded = self._folded(word)
            bare = folded.lstrip(" ")
            edge = len(folded) - len(bare)
            if bare:
                is_inner = is_masked and is_edge is False
                yield bare[:BEGINNING_CHARS], Lead(entry, edge, edge, "", "", is_edge, is_told, is_inner)
                begins = True
        for lead in () if begins else plan.leads:
            if folded := self._folded(lead.literal):
                # What stands before it is not held for it: of secrets the shape tells.
                yield folded, Lead(entry, lead.low, lead.high, lead.rest, lead.back, False, not is_masked, False)

    def _beginnings_of(self, plan: Plan, entry: Entry, *, is_masked: bool) -> Iterable[Beginning]:
        """Return what a plan's matches begin with, if that is known and tells more than what stands further on."""
        begins: Iterable[Beginning] = ()
        if entry.is_patient and any(lead.high - lead.low > GAP_CHARS for lead in plan.leads):
            return begins
        if is_masked and plan.how != "tokens" and (not plan.alone or "(?P<secret>" in plan.source):
            begins = beginnings(plan.source, self._letter)
        # Where it makes no difference before a literal is met, the regex is not read for it.
        is_edge = plan.alone in ("word", "alnum") or (entry.is_edge if is_masked and not begins else None)
        if not begins and plan.leads and not any(lead.low or lead.high for lead in plan.leads):
            begins = [Beginning(lead.literal, is_edge) for lead in plan.leads]
        elif not begins and plan.starts:
            # Before the group stands what may come before a match.
            starts = beginnings(plan.starts[max(0, plan.starts.find("(?P<begin>")) :], self._letter)
            begins = [begin._replace(is_edge=is_edge) for begin in starts]
        if not begins and plan.leads:
            begins = beginnings(plan.source, self._letter)
        return begins

    def _folded(self, literal: str) -> str:
        folded = literal.lower() if literal.isascii() and literal.isprintable() else self._in_letters(literal)
        return squash_digits(" ".join(folded.split(" ")) if "  " in folded else folded)

    def _in_letters(self, literal: str) -> str:
        return "".join(map(self._fold.fold_char, literal))

    def _letter(self, char: str) -> str:
        return squash_digits(self._fold.fold_char(char))
