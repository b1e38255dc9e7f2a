"""Words of attacks with a slip in them, read as they were meant. Knows some dozens of words; corrects nothing else.

Theory of operation. Letters swapped in one of KEYS make a word that ordinary texts do not have, and so does a letter
left out of a long one: those are signal words, for the automaton to find on its way. Only where one stands are the
text's words looked at one by one. A word one slip away from a key (a letter swapped, left out, added or another) is
read as that key. That is told by what is left of both when a letter is taken away, so that nothing is compared with
every key. Of all other words that rules know, only swapped letters are mended.
"""

import re
from collections.abc import Collection
from functools import cache, lru_cache

from gateway.shield.views import Builder, Decoded

KEYS = (
    "ignore ignored ignoring disregard forget forgets neglect discard override overrule bypass dismiss "
    "abandon cancel erase delete remove replace stop follow following obey previous prior preceding above "
    "earlier initial original existing former developer developers system hidden secret internal confidential "
    "safety security content instruction instructions prompt prompts rules guideline guidelines directions "
    "directive directives command commands orders constraints restriction restrictions programming training "
    "policy policies guardrails limitation limitations message messages request statement statements input "
    "context conversation history sentence sentences everything anything reveal print repeat display disclose "
    "output recite translate encode summarize summarise describe explain show write answer respond reply "
    "pretend imagine simulate unrestricted unfiltered uncensored jailbreak password credentials assistant "
    "without approve transfer forward execute vowels asterisks french spanish words begin beginning starting "
    "given received verbatim exactly role persona character filters ethical morals hacked pwned those these "
    "foregoing aforementioned paste first grant review positive instead email access admin administrator "
    "anymore longer answering pretending restricted opposite nothing before replaced continue question "
    "questions objective applies always yourself another because should recommend summary document private "
    "translated person anybody somebody reading processing contents confirm confirmation payment account "
    "address contact contacts attached download install topics relevant function functions schemas "
    "description descriptions configuration available allowed grandfather grandmother recipe explosive weapon "
    "malware chemical illegal warnings warning disclaimer disclaimers refuse refusal ethics complete employee "
    "engineer emergency manager supervisor refund identity verification invoice calendar database environment "
    "variable token server upload collect number characters language model models chatbot website article "
    "special unlimited permission authorized sensitive customer"
).split()
_LEAST_SWAPPED_CHARS = 5
_LEAST_SHORTENED_CHARS = 8
_LEAST_CHARS = 5
_MOST_WORDS = 20_000
# What a word means is remembered for one text.
_REMEMBERED_WORDS = 1_024
_WORD = re.compile(r"[a-z]{4,16}")
# Words of their own that are one slip away from a key.
_OTHER_WORDS = frozenset(
    (
        "contest contests contents contend rulers ruler roles prior priory forge forgot reveals revealed "
        "remover removed replaced replay relay answers answered swords world worlds sward replies storing "
        "staring string strings printer printed prints sprint reprint eraser erased shown shows showy shop "
        "stow snow written writer writes white quoted policed filter filler fillers order border borders "
        "older messaged requests requested requester repeats repeated inputs outputs outputting training "
        "straining draining systems developed hiding ridden midden secrete secrets secretly morals mortals "
        "moral approved approves proves forwards forwarded executed executes pretends pretended describes "
        "described explains explained encoded encoder encodes translated translates translator deleted "
        "deletes removes follows followed follower obeys prompted prompter commanded commander commando "
        "comment commend begins being beginner assistants stating status starring stop stops step shot past "
        "pasted pastes grants granted great grand reviews reviewed reviewer emails emailed accessed customers "
        "privates privater thee theses thesis thirst fist frost"
    ).split()
)


def signals() -> frozenset[str]:
    """Return the misspelt words that tell that a text may be full of them."""
    found: set[str] = set()
    for key in KEYS:
        if len(key) >= _LEAST_SWAPPED_CHARS:
            found |= _swapped(key)
        if len(key) >= _LEAST_SHORTENED_CHARS:
            found |= {key[:at] + key[at + 1 :] for at in range(1, len(key) - 1)}
    known = " ".join((*KEYS, *_OTHER_WORDS))  # one search through all of them; this runs at each start
    return frozenset(word for word in found if word not in known)


def corrected(text: str, known: Collection[str] = ()) -> list[Decoded]:
    """Return a text with its slips mended, or nothing if it has none. Lower case where something was mended.

    known: words that are right, and of which swapped letters make slips.
    """
    lower = text.lower()
    if len(lower) != len(text):
        return []
    builder = Builder("typos")
    told = lru_cache(_REMEMBERED_WORDS)(lambda word: _meant(word, known))
    done = count = 0
    for number, word in enumerate(_WORD.finditer(lower)):
        if number == _MOST_WORDS:
            break
        meant = told(word[0])
        if meant:
            start, end = word.span()
            builder.add(text[done:start], done, start)
            builder.add(meant, start, end)
            done = end
            count += 1
    if not count:
        return []
    builder.add(text[done:], done, len(text))
    return builder.done()


def _swapped(word: str) -> set[str]:
    """Return what a word becomes when two letters beside each other change places."""
    return {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)} - {word}


def _left(word: str) -> set[str]:
    return {word[:at] + word[at + 1 :] for at in range(len(word))}


@cache
def _keys_left() -> dict[str, tuple[str, ...]]:
    """Return which keys leave a word when a letter is taken away."""
    left: dict[str, tuple[str, ...]] = {}
    for key in KEYS:
        if len(key) >= _LEAST_CHARS:
            for rest in _left(key):
                left[rest] = (*left.get(rest, ()), key)
    return left


@cache
def _all_keys() -> frozenset[str]:
    return frozenset(KEYS)


@cache
def _keys() -> frozenset[str]:
    return _all_keys() | _OTHER_WORDS


@cache
def _swaps() -> dict[str, str]:
    return {word: key for key in KEYS if len(key) >= 4 for word in _swapped(key)}


def _meant(word: str, known: Collection[str]) -> str:
    """Return the word that a word is one slip away from, or an empty text."""
    if word in known or word in _keys():
        return ""
    swapped = _swaps().get(word)
    if swapped or len(word) < _LEAST_CHARS:
        return swapped or ""
    unswapped = next((other for other in sorted(_swapped(word)) if other in known), "")
    if unswapped:
        return unswapped
    keys_left = _keys_left()
    if word in keys_left:
        return keys_left[word][0]
    rests = _left(word)
    longer = next((rest for rest in sorted(rests) if len(rest) >= _LEAST_CHARS and rest in _all_keys()), "")
    if longer:
        # A plural and a past tense are words of their own, no slips.
        return "" if word in (longer + "s", longer + "d") else longer
    for rest in sorted(rests):
        for key in keys_left.get(rest, ()):
            if len(key) == len(word) and len(word) > _LEAST_CHARS and sum(map(str.__ne__, key, word)) == 1:
                return key
    return ""
