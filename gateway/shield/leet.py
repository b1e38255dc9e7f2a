"""Words in leet: digits and signs inside them are written as the letters they look like. Looks where `Shapes` tells.

Theory of operation. A word with both letters and what may stand for letters is asked for, and what it says in plain
letters; near those that say a word, all is read so. Where hundreds of them stand together, some are asked whether they
are known words: of leet most are, of noise (codes, identifiers) hardly any, and of that only what is near a known word
is read. So the work on each word of noise is a few looks into a set.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase

from gateway.shield.shapes import BLOCK_CHARS, LEET, LETTERS, Ranges, Shapes
from gateway.shield.views import Builder, Decoded, regions
from gateway.shield.vocabulary import Vocabulary

_LEET = "01345678@$!|+"
_PLAIN = "oleasgtbasilt"
_ONES = frozenset("1!|")
_NO_LEET = dict.fromkeys(map(ord, _LEET))
# Tables that write a word in plain letters: a 1 as it is seen most, as an i, as an l.
_USUAL, _WITH_I, _WITH_L = (
    bytes.maketrans((_LEET + ascii_uppercase).encode(), (plain + ascii_lowercase).encode())
    for plain in (_PLAIN, _PLAIN.replace("l", "i"), _PLAIN.replace("i", "l"))
)
_WORD = re.compile(r"([A-Za-z0-9@$!|+]{1,20})")
_LONGEST_NUMBER = 3
_AROUND_CHARS = 96
# How a word is read is remembered for one text. So much of it is read at once.
_REMEMBERED_WORDS = 4_096
_PIECE_CHARS = 16_384
_LEAST_CHARS, _MOST_CHARS = 3, 20
_BLOCK_CHARS = 65_536
# Of more than so many that stand together about so many are asked; fewer than one in so many are known words: noise.
_MANY, _KNOWN_OF = 200, 2
# Of noise so much is read around a known word, and a word of three letters only where another one is beside it.
_NEAR_CHARS, _BESIDE_CHARS = 24, 8
_KINDS = bytes(ord("a" if byte in LETTERS else "0" if byte in LEET else ".") for byte in range(256))
# One that begins with a character is searched for far sooner than one that may begin with either. Where more than one
# character in so many is such a one, the words are found sooner from their first letter on.
_BESIDE_LETTER = re.compile(b"0(?:(?<=a0)|(?=a))")
_MIXED = re.compile(rb"(?:a++0|0++a)[a0]*+")
_MANY_OF = 16
_CODE_CHARS = 24
_CODES = LETTERS + b"0123456789+/"
_CODE_KINDS = bytes(ord("c" if byte in _CODES else ".") for byte in range(256))
_LONG_CODE = b"c" * _CODE_CHARS


class Leet:
    """Reads words in leet."""

    __slots__ = ("_vocabulary",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        """vocabulary: what a hidden text would use."""
        self._vocabulary = vocabulary

    def read(self, shapes: Shapes, coded: bytes | bytearray) -> list[Decoded]:
        """Write the digits and signs inside words as the letters they look like. coded: as in `Disguises.readings`."""
        text = shapes.text
        builder = Builder("leet")
        words = _mixed_words(shapes)
        if coded:
            words = [(start, end) for start, end in words if not coded[start]]
        plain = _Plain(self._vocabulary)
        for low, high, spans in self._regions(words, text):
            start, end = spans[0]
            # One word alone with one sign in it is a name or a number.
            if len(spans) == 1 and len(text[start:end].translate(_NO_LEET)) == end - start - 1:
                continue
            if not self._says_something((text[first:last] for first, last in spans), plain):
                continue
            if len(spans) > 1:
                # Beside words in leet, short ones and short numbers are words too.
                said = plain.read(text, low, high)
            else:
                said = text[low:start] + plain[text[start:end]] + text[end:high]
            # Every letter stands where it stood.
            builder.end_piece(low)
            builder.add(said, low, high)
        return builder.done()

    def _regions(self, words: Ranges, text: str) -> Iterator[tuple[int, int, Ranges]]:
        """Yield regions of words in leet; of noise, what is near its known words."""
        for low, high, spans in regions(words, around=_AROUND_CHARS, length=len(text)):
            if len(spans) > _MANY and self._is_noise(spans[:: len(spans) // _MANY], text):
                yield from regions(_meant(self._known(spans, text)), around=_NEAR_CHARS, length=len(text))
            else:
                yield low, high, spans

    def _is_noise(self, spans: Ranges, text: str) -> bool:
        """Tell whether hardly any words of some spans are known."""
        return len(self._known(spans, text)) * _KNOWN_OF < len(spans)

    def _known(self, spans: Ranges, text: str) -> Ranges:
        """Return the spans of words that are read as known ones, or as beginning with one of at least five letters."""
        words = self._vocabulary.words
        sent = "\n".join([text[start:end] for start, end in spans])
        with_i, with_l = (_written(sent, ones).split("\n") for ones in (_WITH_I, _WITH_L))
        return [
            span
            for span, written, one, other in zip(spans, sent.lower().split("\n"), with_i, with_l, strict=True)
            if one in words
            or (one != other and other in words)
            or (len(one) > 5 and (one[:5] in words or one[:6] in words or one[:7] in words) and one[:7] != written[:7])
        ]

    def _says_something(self, words: Iterable[str], plain: "_Plain") -> bool:
        """Tell whether some word says something, or two of three letters do."""
        short = ""
        for word in words:
            if word != short and self._vocabulary.tells(plain[word].lower(), word.lower()):
                if short or len(word) > _LEAST_CHARS:
                    return True
                short = word
        return False


class _Plain(dict[str, str]):
    """Words of one text in plain letters. A 1 is an i or an l, whichever makes a known word; what ends a word stays."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> str:
        self._ask((word,))
        return self[word]

    def read(self, text: str, low: int, high: int) -> str:
        """Return a span of the text with each of its words in plain letters."""
        said: list[str] = []
        while low < high:
            end = min(low + _PIECE_CHARS, high)
            # Words stand between what is none.
            parts = _WORD.split(text[low:end])
            if end < high and not parts[-1]:
                # The last one may go on.
                end -= len(parts[-2])
                del parts[-2:]
            words = parts[1::2]
            self._ask(words)
            parts[1::2] = map(self.__getitem__, words)
            said += parts
            low = end
        return "".join(said)

    def _ask(self, words: Iterable[str]) -> None:
        """Read some words, all at once."""
        if len(self) > _REMEMBERED_WORDS:
            self.clear()
        asked = set(words).difference(self)
        if not asked:
            return
        known = self._vocabulary.words
        bares = [word.rstrip("!|+") for word in asked]
        sent = "\n".join(bares)
        written = [_written(sent, table).split("\n") for table in (_USUAL, _WITH_I, _WITH_L)]
        for word, bare, usual, with_i, with_l in zip(asked, bares, *written, strict=True):
            if bare.isalpha() or (bare.isdigit() and len(bare) > _LONGEST_NUMBER):
                self[word] = word
                continue
            plain = usual
            if with_i != with_l:
                plain = unleet(bare)
                if plain not in known:
                    plain = with_i if with_i in known else with_l if with_l in known else plain
            self[word] = plain + word[len(bare) :]


def unleet(word: str) -> str:
    """Read a word of ASCII in leet. A 1 is an l after most vowels and l, and before a first vowel; else an i."""
    plain = _written(word, _USUAL)
    if _ONES.isdisjoint(word):
        return plain
    letters = list(plain)
    for place, char in enumerate(word):
        if char in "1!|":
            before = letters[place - 1] if place else ""
            after = plain[place + 1 : place + 2]
            is_l = before in ("a", "e", "u", "l") or (after in ("a", "e", "o") and before in ("", "c", "p", "f", "b"))
            letters[place] = "l" if is_l or (before == "i" and after in ("", "e", "l", "t")) else "i"
    return "".join(letters)


def _written(word: str, table: bytes) -> str:
    # Of bytes that is done in half the time.
    return word.encode("ascii").translate(table).decode("ascii")


def _meant(known: Ranges) -> Ranges:
    """Return the known words of noise that are no accident: of three letters are those beside others."""
    ends = [-BLOCK_CHARS, *(end for _, end in known)]
    starts = [start for start, _ in known[1:]]
    starts.append(ends[-1] + BLOCK_CHARS)
    return [
        (start, end)
        for before, (start, end), after in zip(ends, known, starts, strict=False)
        if end - start > _LEAST_CHARS or start - before <= _BESIDE_CHARS or after - end <= _BESIDE_CHARS
    ]


def _mixed_words(shapes: Shapes) -> Ranges:
    """Return the spans of words that hold both letters and what may stand for letters."""
    found: Ranges = []
    raw = shapes.raw
    for begin, after in shapes.mixed:
        for low in range(begin, after, _BLOCK_CHARS):
            start, high = max(0, low - _MOST_CHARS), min(low + _BLOCK_CHARS, after)
            spans = _both_kinds(raw[start : high + _MOST_CHARS].translate(_KINDS))
            words = [span for span in spans if _LEAST_CHARS <= span[1] - span[0] <= _MOST_CHARS]
            if start:
                words = [(start + first, start + last) for first, last in words]
            # What began before this block was found there.
            words = words[bisect_left(words, (low, 0)) : bisect_left(words, (high, 0))]
            found += _without_codes(words, raw, max(0, start - _CODE_CHARS), high + _MOST_CHARS + _CODE_CHARS)
    return found


def _without_codes(words: Ranges, raw: bytes, low: int, high: int) -> Ranges:
    """Leave out words that go on for long on one side, as in a code and never in a sentence, within a span."""
    kinds = raw[low:high].translate(_CODE_KINDS) + b"."
    begin = kinds.find(_LONG_CODE)
    inside: set[tuple[int, int]] = set()
    while begin >= 0:
        end = kinds.index(b".", begin)
        first, last = low + begin, low + end
        near = words[bisect_left(words, (first - _MOST_CHARS, 0)) : bisect_left(words, (last + 1, 0))]
        inside.update(span for span in near if span[0] - first >= _CODE_CHARS or first <= span[1] <= last - _CODE_CHARS)
        begin = kinds.find(_LONG_CODE, end)
    return [span for span in words if span not in inside] if inside else words


def _both_kinds(kinds: bytes) -> Iterable[tuple[int, int]]:
    """Return the spans of words that hold both of their kinds."""
    if kinds.count(b"0") * _MANY_OF > len(kinds):
        return map(re.Match.span, _MIXED.finditer(kinds))
    words: Ranges = []
    found = _BESIDE_LETTER.search(kinds)
    while found:
        place = found.start()
        first, last = kinds.rfind(b".", 0, place) + 1, kinds.find(b".", place)
        last = len(kinds) if last < 0 else last
        words.append((first, last))
        found = _BESIDE_LETTER.search(kinds, last)
    return words
