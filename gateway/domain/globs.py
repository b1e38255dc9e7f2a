"""Globs over names: models, tools, agents and providers. Pure."""

import re
from fnmatch import translate
from functools import lru_cache


@lru_cache(20_000)  # twice the longest access list: a change of the list must not compile all its globs again
def glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob (``*``, ``?``, ``[…]``). It matches case-folded names."""
    return re.compile(translate(pattern.casefold()))
