"""What the matches of a regex begin with: sets of prefixes, put together piece by piece and kept few and short."""

from functools import lru_cache

from gateway.shield.frequency import likelihood

# A prefix and whether what follows it may be told.
Prefixes = frozenset[tuple[str, bool]]
NOTHING: Prefixes = frozenset((("", True),))
UNKNOWN: Prefixes = frozenset((("", False),))
LONGEST_PREFIX_CHARS = 12
LONG_ENOUGH_CHARS = 6
# A literal this rare need not be longer.
_RARE_ENOUGH = 2e-7
# When alternatives are too many to be told apart, they are told apart by their first characters.
_CUTS = (4, 2, 1)


@lru_cache(maxsize=65_536)
def shortened(prefix: str) -> str:
    """Return the beginning of a literal that is rare enough by itself: so many literals become one."""
    for cut in range(LONG_ENOUGH_CHARS, len(prefix)):
        if likelihood(prefix[:cut]) < _RARE_ENOUGH and prefix[cut - 1] != " ":
            return prefix[:cut]
    return prefix


def squeeze(text: str) -> str:
    """Make one blank of each run of blanks."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def close(prefixes: Prefixes) -> Prefixes:
    """Return prefixes none of which is followed further."""
    return frozenset((prefix, False) for prefix, _ in prefixes)


def join(heads: Prefixes, tails: Prefixes, most: int) -> Prefixes | None:
    """Append every tail to every head that is still open.

    When that would be too many, only the beginnings of the tails are. When even those are too many, only the heads
    that are likeliest to stand anywhere are followed, the rest are closed. None when not even one can be.
    """
    open_heads = [head for head, is_open in heads if is_open]
    if len(open_heads) == len(tails) == len(heads) == 1:
        ((tail, goes_on),) = tails
        text = open_heads[0] + tail
        return frozenset(((text[:LONGEST_PREFIX_CHARS], goes_on and len(text) < LONGEST_PREFIX_CHARS),))
    joined = {(head, False) for head, is_open in heads if not is_open}
    if len(joined) + len(open_heads) * len(tails) > most:
        for cut in _CUTS:
            short = _cut(tails, cut)
            if len(joined) + len(open_heads) * len(short) <= most:
                tails = short
                break
        else:
            followed = max(0, most - len(heads)) // max(1, len(short) - 1)
            if not followed:
                return None
            open_heads.sort(key=lambda head: (-likelihood(head), head))
            joined.update((head, False) for head in open_heads[followed:])
            open_heads, tails = open_heads[:followed], short
    for head in open_heads:
        for tail, goes_on in tails:
            text = head + tail
            joined.add((text[:LONGEST_PREFIX_CHARS], goes_on and len(text) < LONGEST_PREFIX_CHARS))
    return frozenset(joined)


@lru_cache(maxsize=1024)
def _cut(prefixes: Prefixes, most: int) -> Prefixes:
    """Return the first `most` characters of prefixes; what is cut off cannot be followed further."""
    return frozenset((prefix[:most], is_open and len(prefix) <= most) for prefix, is_open in prefixes)
