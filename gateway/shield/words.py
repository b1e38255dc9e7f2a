"""Words that hidden texts use: cuts letters that are run together, and mends slips in words of attacks.

Theory of operation. What was hidden by moving letters about is only found if it says a word that some rule's regex has:
these words are the vocabulary. Slips are mended toward KEYS alone, some dozens of words of attacks. Letters swapped in
a key, or one left out of a long key, make a word that ordinary texts do not have. Those are signal words for the
automaton, and only where one stands is a text read word by word. A word one slip away from a key (letters swapped, one
left out, added or another) is read as that key. Of all other words of the vocabulary only swapped letters are mended.
"""

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache, cached_property, lru_cache

from gateway.shield.views import Builder, Decoded

# Function words that patterns leave optional, or do not name.
_COMMON_WORDS = frozenset(
    (
        "a all an and any are as at be by do for from have in is it me my no not now of on or our that the then these "
        "this to us was we what will with you your above before below following must never only tell show"
    ).split()
)
_LONGEST_RUN_TOGETHER = 400
# Of letters run together, so many of a hundred must be known words.
_KNOWN_PERCENT = 60
_REGEX_WORD = re.compile(r"[a-z]{3,20}")
_REGEX_ESCAPE = re.compile(r"\\[A-Za-z]")
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
_LEAST_SIGNAL_CHARS, _LEAST_SHORTENED_CHARS = 5, 8
_LEAST_SWAPPED_CHARS, _LEAST_CHARS = 4, 5
_MOST_WORDS = 20_000
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


def vocabulary_of(sources: Iterable[str]) -> set[str]:
    """Return the words of regexes, lower case."""
    return {word for source in sources for word in _REGEX_WORD.findall(_REGEX_ESCAPE.sub(" ", source))}


class Vocabulary:
    """The words that a hidden text would use, read at the first question."""

    def __init__(self, read: Callable[[], Iterable[str]]) -> None:
        """read: returns the words of the rules."""
        self._read = read

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the rules, and function words."""
        return _COMMON_WORDS.union(self._read())

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(word[:size] for word in self.words for size in range(1, len(word) + 1))

    def says_word(self, letters: str) -> bool:
        """Tell whether a word of four letters or more stands in some letters. Meant for a few of them."""
        ends = range(len(letters) + 1)
        return any(letters[start:end] in self.words for end in ends for start in range(end - 3))

    def cuts(self, letters: str) -> list[int]:
        """Return where to cut letters into known words; nothing if they are one word or mostly no words."""
        letters, words = letters[:_LONGEST_RUN_TOGETHER], self.words
        # For each end, the best score of the letters before it, and where their last part begins.
        best = [(0, 0)] * (len(letters) + 1)
        for start in range(len(letters)):
            score, end = best[start][0], start + 1
            best[end] = max(best[end], (score, start))
            while end <= len(letters) and (part := letters[start:end]) in self._beginnings:
                if part in words:
                    best[end] = max(best[end], (score + len(part) ** 2, start))
                end += 1
        cuts, known_chars, end = {0, len(letters)}, 0, len(letters)
        while end:
            start = best[end][1]
            if letters[start:end] in words:
                known_chars += end - start
                cuts |= {start, end}
            end = start
        return sorted(cuts)[1:-1] if known_chars * 100 >= len(letters) * _KNOWN_PERCENT else []


def signals() -> frozenset[str]:
    """Return the misspelt words that tell that a text may be full of them."""
    found: set[str] = set()
    for key in KEYS:
        if len(key) >= _LEAST_SIGNAL_CHARS:
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
    meant_by = lru_cache(_REMEMBERED_WORDS)(lambda word: _meant(word, known))
    builder, done = Builder("typos"), 0
    for _, word in zip(range(_MOST_WORDS), _WORD.finditer(lower), strict=False):
        meant = meant_by(word[0])
        if meant:
            builder.add(text[done : word.start()], done, word.start())
            builder.add(meant, *word.span())
            done = word.end()
    if not done:
        return []
    builder.add(text[done:], done, len(text))
    return builder.done()


def _swapped(word: str) -> set[str]:
    """Return what a word becomes when two letters beside each other change places."""
    return {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)} - {word}


def _shortened(word: str) -> list[str]:
    """Return what a word becomes when a letter is left out."""
    return sorted({word[:at] + word[at + 1 :] for at in range(len(word))})


@cache
def _slips() -> tuple[frozenset[str], dict[str, str], dict[str, list[str]]]:
    """Return all words that are right, the key of each swapped one, and the keys of each shortened one."""
    swapped = {word: key for key in KEYS if len(key) >= _LEAST_SWAPPED_CHARS for word in _swapped(key)}
    shortened: dict[str, list[str]] = {}
    for key in KEYS:
        for word in _shortened(key) if len(key) >= _LEAST_CHARS else ():
            shortened.setdefault(word, []).append(key)
    return _OTHER_WORDS.union(KEYS), swapped, shortened


def _meant(word: str, known: Collection[str]) -> str:
    """Return the word that a word is one slip away from, or an empty text."""
    right, swapped, shortened = _slips()
    if word in known or word in right:
        return ""
    if word in swapped or len(word) < _LEAST_CHARS:
        return swapped.get(word, "")
    meant = [other for other in sorted(_swapped(word)) if other in known] or shortened.get(word)
    if meant:
        return meant[0]
    rests = _shortened(word)
    for rest in rests:
        if len(rest) >= _LEAST_CHARS and rest in right and rest not in _OTHER_WORDS:
            # A plural and a past tense are words of their own, no slips.
            return "" if word in (rest + "s", rest + "d") else rest
    keys = [key for rest in rests for key in shortened.get(rest, ()) if len(key) == len(word) > _LEAST_CHARS]
    return next((key for key in keys if sum(map(str.__ne__, key, word)) == 1), "")
