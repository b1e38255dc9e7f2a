"""How often a piece of text stands in ordinary text, estimated from the pieces of five letters it is made of.

Measured on seventeen million characters of harmless texts: English prose, manuals, dialogues and much code, normalized,
every digit written as 0. Of other scripts nothing was counted: their letters are taken for equally frequent, and texts
in them for rare. The counts are data (`grams.json`, written by `bench/scan/grams.py`): for each length and
class, the pieces of that length one behind the other; a piece of class n stands once in 2 ** (n / 2) characters.
"""

import json
import math
from functools import lru_cache

from gateway.shield import data_files

GRAMS_FILE = "gateway/shield/grams.json"
LONGEST_GRAM_CHARS = 5
# How often what is not listed may stand at most, by its length: what `grams.json` was cut off at.
CUT_OFF = {1: 1e-6, 2: 1e-6, 3: 2e-6, 4: 5e-6, 5: 1e-5}
_UNLISTED = 0.4
_LEAST = 1e-13
# How many texts are in another script, and how often one of its letters or signs stands in those; an ideograph behind
# another one makes a word with it more often.
_OTHER_SCRIPTS = 0.05
_LETTER, _BLANK, _IDEOGRAPH, _NEXT_IDEOGRAPH = 0.05, 0.15, 0.004, 0.03
_FIRST_IDEOGRAPH = "\u2e80"


@lru_cache(maxsize=262_144)
def likelihood(text: str) -> float:
    """Estimate how often `text` stands at a given character of ordinary text, 0 to 1."""
    if not text.isascii():
        return max(_LEAST, math.prod(map(_letter, text, " " + text), start=_OTHER_SCRIPTS))
    if len(text) <= LONGEST_GRAM_CHARS:
        return _share(text)
    last = text[-LONGEST_GRAM_CHARS:]
    return max(_LEAST, likelihood(text[:-1]) * min(1.0, _share(last) / _share(last[:-1])))


def _letter(char: str, before: str) -> float:
    if char >= _FIRST_IDEOGRAPH:
        return _NEXT_IDEOGRAPH if before >= _FIRST_IDEOGRAPH else _IDEOGRAPH
    return _BLANK if char == " " else _LETTER


@lru_cache(maxsize=131_072)
def _share(piece: str) -> float:
    if not piece:
        return 1.0
    told = _grams().get(piece)
    if told is not None:
        return told
    most = CUT_OFF[len(piece)] * _UNLISTED
    if len(piece) == 1:
        return most
    # Both ends are known to follow and to precede the middle: so often do they do both if that is chance.
    return max(_LEAST, min(most, _share(piece[:-1]) * _share(piece[1:]) / _share(piece[1:-1])))


@lru_cache(maxsize=1)
def _grams() -> dict[str, float]:
    shares: dict[str, float] = {}
    for length, classes in json.loads(data_files.read(GRAMS_FILE))["pieces"].items():
        step = int(length)
        for kind, pieces in classes.items():
            share = 2.0 ** (-int(kind) / 2)
            shares.update(dict.fromkeys((pieces[at : at + step] for at in range(0, len(pieces), step)), share))
    return shares
