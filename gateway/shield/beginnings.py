"""What the matches of a regex begin with, as few pieces of text as rare as can be. Knows no rule and no place.

Theory of operation. A regex is followed as a machine whose states are places in its parse tree. From a set of states
the pieces that may come next are told letter by letter, which makes a tree: a node is a beginning and the states it
leads to. The likeliest beginning is followed first, until none is likely any more or there are too many. Then every
branch of the tree that is hardly rarer than what it branches from is taken back to it.
"""

import heapq
import math
from collections.abc import Callable, Iterable
from typing import Any

from gateway.shield.frequency import likelihood
from gateway.shield.regex_tree import ops

LONGEST_CHARS = 12
ZERO_WIDTH = frozenset((ops.AT, ops.ASSERT, ops.ASSERT_NOT))
REPEATS = frozenset((ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT))
# What one more beginning costs wherever it stands: room in the automaton, and time at the start.
PRICE_EACH = 5e-7
# What is rarer need not be followed.
_RARE = 2e-7
_MOST_LETTERS = 10
_MOST_EMPTY_COPIES = 4
END = 0
_FARTHEST = 600
_TOO_MANY = 1_500

# What may come from a state: the letter, and the states after it. The second value is whether anything may.
_Steps = tuple[dict[str, frozenset[int]], bool]


class _Node:
    """A beginning. states: where it leads to. is_last: what follows it cannot be told."""

    __slots__ = ("branches", "is_last", "share", "states", "text")

    def __init__(self, text: str, states: frozenset[int], share: float) -> None:
        self.text = text
        self.states = states
        self.share = share
        self.branches: list[_Node] = []
        self.is_last = False


class Beginnings:
    """Tells beginnings of parts of one parse tree.

    letter: what a character of the regex is in the text that is read; empty if it is not there. digit: the letter that
    stands for any digit, or empty. blank: the letter of any white space, of which no two stand together, or empty.
    """

    __slots__ = ("_blank", "_branches", "_classes", "_digit", "_kept", "_letter", "_numbers", "_states", "_steps")

    def __init__(self, letter: Callable[[str], str], *, digit: str = "", blank: str = "") -> None:
        self._letter = letter
        self._digit = digit
        self._blank = blank
        # A state is items of a parse tree, a place in them, the state after them, and copies made of the item there.
        self._states: list[tuple[Any, int, int, int]] = [((), 0, END, 0)]
        self._numbers: dict[tuple[int, int, int, int], int] = {}
        self._steps: dict[int, _Steps] = {END: ({}, True)}
        # Letters that may follow some states, in order, by the states and whether a blank stands before; None if
        # they cannot be told. Beginnings at neighbouring places lead to the same states again and again.
        self._branches: dict[tuple[frozenset[int], bool], list[tuple[str, frozenset[int]]] | None] = {}
        # Letters of a class, by its identity.
        self._classes: dict[int, frozenset[str]] = {}
        # Items are told apart by their identity, so they must live as long.
        self._kept: list[Any] = []

    def state(self, items: Any, after: int = END, *, place: int = 0, copies: int = 0) -> int:
        """Return the number of the state at `place` of `items`, after which the state `after` comes."""
        key = (id(items), place, after, copies)
        number = self._numbers.get(key)
        if number is None:
            self._kept.append(items)
            number = self._numbers[key] = len(self._states)
            self._states.append((items, place, after, copies))
        return number

    def at(self, state: int) -> tuple[Any, int, int, int]:
        """Return the items of a state, a place in them, the state after them, and copies made of the item there."""
        return self._states[state]

    def after(self, state: int, text: str) -> frozenset[int] | None:
        """Return the states that a beginning told from a state leads to, or None if it was not told."""
        states = frozenset((state,))
        for place, letter in enumerate(text):
            is_after_blank = bool(self._blank) and text[:place].endswith(self._blank)
            told = self._following(states, is_after_blank) or ()
            found = next((after for one, after in told if one == letter), None)
            if found is None:
                return None
            states = found
        return states

    def tell(
        self, state: int, *, least_chars: int, most: int, price: float, limit: float = math.inf
    ) -> list[str] | None:
        """Return beginnings of all that may follow from a state, none of which begins with another.

        least_chars: of each. most: how many there may be, about. price: of following one where it stands. limit: what
        all together may cost. None when they would cost more, or some beginning cannot be told so far.
        """
        root = _Node("", frozenset((state,)), 1.0)
        # No two beginnings are the same text, so nodes are never compared.
        open_nodes = [(-1.0, "", root)]
        count, visited, spent = 1, 0, 0.0
        while open_nodes:
            node = heapq.heappop(open_nodes)[2]
            is_short = len(node.text) < least_chars and node.text != "@"
            if not is_short and (node.share < _RARE or count >= most or visited >= _FARTHEST):
                continue
            visited += 1
            self._branch(node)
            if node.is_last:
                spent += price * node.share
                if is_short or spent > limit:
                    return None
                continue
            count += len(node.branches) - 1
            if count > _TOO_MANY:
                return None
            is_full = count >= most or visited >= _FARTHEST
            for branch in node.branches:
                # What would not be followed when its turn comes needs no turn.
                if not (is_full or branch.share < _RARE) or len(branch.text) < least_chars:
                    heapq.heappush(open_nodes, (-branch.share, branch.text, branch))
        return self._pruned(root, least_chars, price)[0]

    def _branch(self, node: _Node) -> None:
        """Follow a beginning by one letter."""
        if len(node.text) >= LONGEST_CHARS:
            node.is_last = True
            return
        text = node.text
        told = self._following(node.states, bool(self._blank) and text.endswith(self._blank))
        if not told:
            node.is_last = True
            return
        for letter, states in told:
            longer = text + letter
            node.branches.append(_Node(longer, states, likelihood(longer)))

    def _following(self, states: frozenset[int], is_after_blank: bool) -> list[tuple[str, frozenset[int]]] | None:
        key = states, is_after_blank
        if key not in self._branches:
            self._branches[key] = self._letters(*key)
        return self._branches[key]

    def _letters(self, states: frozenset[int], is_after_blank: bool) -> list[tuple[str, frozenset[int]]] | None:
        """Tell what may follow some states, or None if that cannot be told."""
        found: dict[str, frozenset[int]] = {}
        pending, seen = list(states), set(states)
        while pending:
            letters, is_end = self._follow(pending.pop())
            if is_end:
                return None
            for letter, after in letters.items():
                if is_after_blank and letter == self._blank:
                    pending += after - seen
                    seen |= after
                else:
                    found[letter] = found[letter] | after if letter in found else after
        return sorted(found.items(), key=lambda item: item[0])

    def _pruned(self, node: _Node, least_chars: int, price: float) -> tuple[list[str], float]:
        """Return the beginnings under a node, and what they cost."""
        whole = PRICE_EACH + price * node.share
        if not node.branches:
            return [node.text], whole
        texts: list[str] = []
        total = 0.0
        for branch in node.branches:
            if branch.branches:
                under, cost = self._pruned(branch, least_chars, price)
                texts += under
                total += cost
            else:
                texts.append(branch.text)
                total += PRICE_EACH + price * branch.share
        if total >= whole and len(node.text) >= least_chars:
            return [node.text], whole
        return texts, total

    def _follow(self, state: int) -> _Steps:
        known = self._steps.get(state)
        if known is None:
            known = self._steps[state] = self._told(*self._states[state])
        return known

    def _told(self, items: Any, place: int, after: int, copies: int) -> _Steps:
        if place == len(items):
            return self._follow(after)
        op, arg = items[place]
        following = self.state(items, after, place=place + 1)
        if op in ZERO_WIDTH:
            return self._follow(following)
        if op is ops.LITERAL:
            return self._stepped((self._letter(chr(arg)),), following)
        if op is ops.IN:
            members = self._classes.get(id(arg))
            if members is None:
                members = self._classes[id(arg)] = self._members(arg)
            return self._stepped(members, following)
        if op is ops.BRANCH:
            return _either([self._follow(self.state(branch.data, following)) for branch in arg[1]])
        if op is ops.SUBPATTERN:
            return self._follow(self.state(arg[3].data, following))
        if op is ops.ATOMIC_GROUP:
            return self._follow(self.state(arg.data, following))
        if op in REPEATS:
            least, most, body = arg
            ways = [self._follow(following)] if copies >= least else []
            if copies < most:
                if body.getwidth()[0] == 0 and copies >= _MOST_EMPTY_COPIES:
                    return {}, True
                again = self.state(items, after, place=place, copies=copies + 1)
                ways.append(self._follow(self.state(body.data, again)))
            return _either(ways)
        return {}, True

    def _stepped(self, letters: Iterable[str], following: int) -> _Steps:
        if not letters or "" in letters:
            return {}, True
        return {letter: frozenset((following,)) for letter in letters}, False

    def _members(self, members: list[Any]) -> frozenset[str]:
        letters: set[str] = set()
        for op, arg in members:
            if op is ops.LITERAL:
                letters.add(self._letter(chr(arg)))
            elif op is ops.RANGE and arg[1] - arg[0] < 26:
                letters.update(self._letter(chr(code)) for code in range(arg[0], arg[1] + 1))
            elif op is ops.CATEGORY and arg is ops.CATEGORY_DIGIT:
                letters.add(self._digit)
            elif op is ops.CATEGORY and arg is ops.CATEGORY_SPACE:
                letters.add(self._blank)
            else:
                return frozenset()
        return frozenset() if len(letters) > _MOST_LETTERS else frozenset(letters)


def _either(ways: list[_Steps]) -> _Steps:
    if len(ways) == 1:
        return ways[0]
    found: dict[str, frozenset[int]] = {}
    for letters, is_end in ways:
        if is_end:
            return {}, True
        for letter, states in letters.items():
            found[letter] = found[letter] | states if letter in found else states
    return found, False
