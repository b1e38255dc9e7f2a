"""Texts cut by what is not shown: codes of a terminal and what it overwrites, tags and comments. Scans nothing.

Theory of operation. A code of a terminal is told by a character that plain text has none of. Tags are everywhere, and
nearly always stand between words: only near one in a word, or a comment between two, a text is read without any. What a
comment says stands in the text as sent.
"""

import re
from collections.abc import Iterator
from itertools import islice

from gateway.shield.shapes import Shapes
from gateway.shield.views import Builder, Decoded, regions

# More cuts than this are not told apart: all behind them is read without markup.
_MANY_CUTS = 256
_AROUND_CHARS = 128

_ERASERS = "\b\x7f"
# A title, a link or such ends with a mark of its own.
_CODE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,256}+[ -/]{0,4}+([@-~])"
    "|(?:\x1b[PX\\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,512}+(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{1,2}+[0-~]|\x1b[0-~]"
    f"|[{_ERASERS}]+"
    r"|(?:\^\[|\\[eE]|\u241b|<(?:ESC|esc)>)?\[[0-9;]{1,16}+m"
)
# A colour whose first character was lost, or written in another way.
_LOST = re.compile(rb"\[[0-9;]{1,16}+m(?=[A-Za-z?])")
# Codes that move the cursor: they part what stands around them.
_MOVES = frozenset("ABCDEFGHadefj`")

# Tags that break a line part words, all others do not.
_BREAKS = frozenset(
    "address article aside blockquote body br button caption center col dd details div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hr html input legend li link main menu meta nav ol option p pre "
    "script section select style summary table tbody td textarea tfoot th thead title tr ul".split()
)
# Behind a letter a tag, a comment, or the end of an element and a letter or the next such element; behind a letter and
# a blank a comment. What is not ASCII is a question mark. The commonest tags that break a line are passed by at once.
_PASSED = r"(?!(?:[Bb][Rr]|[Hh][1-6]|[UuOoDd][Ll]|[Pp]|[Dd](?:iv|IV|[TtDd])|[Tt][DdRrHh]|[Ll][Ii])[\s/>])"
_CUT = re.compile(
    rf"<(?:(?<=[A-Za-z?]<)(?:(?=[A-Za-z!?>]){_PASSED}"
    rf"|/([A-Za-z0-9:-]{{0,20}}+)>(?:[A-Za-z?]|<{_PASSED}[A-Za-z0-9]{{1,20}}+>[A-Za-z?]|( <\1>)))"
    r"|!--(?<=[A-Za-z,?] <!--))".encode()
)
# What is written behind a name in another type.
_ENDING = re.compile(r"(?:e?s|e?d|ing|er)(?![^\W\d_])")
_TAG = re.compile(
    r"</?(?:([A-Za-z][A-Za-z0-9:-]{0,30}+)(?:[\s/](?![&|=!])(?:"
    r"(?:[^<>\"']{0,256}+(?:\"[^\"]{0,128}+\"|'[^']{0,128}+')){0,4}+[^<>\"']{0,256}+>|[^<>]{0,256}+>)|>)|>)"
    r"|<[!?][^<>]{0,256}+>"
)
_COMMENT, _COMMENT_END = "<!--", "-->"


def readings(shapes: Shapes) -> list[Decoded]:
    """Return a text as it is shown, near where something in it is not."""
    text = shapes.text
    found: list[Decoded] = []
    has_codes = "\x1b" in text or "\b" in text or "\x7f" in text or "\x9b" in text
    if has_codes or ("[" in text and _LOST.search(shapes.raw)):
        found += _on_terminal(text)
    cut = _CUT.search(shapes.raw) if b"<" in shapes.raw else None
    if cut:
        found += _without_markup(text, shapes.raw, cut.start())
    return found


def _on_terminal(text: str) -> list[Decoded]:
    spots, moves = [], set()
    for code in _CODE.finditer(text):
        spots.append(code.span())
        if code[1] in _MOVES:
            moves.add(code.start())
    builder = Builder("terminal")
    for low, high, near in regions(spots, around=_AROUND_CHARS, length=len(text)):
        builder.end_piece(low)
        shown: list[tuple[str, int, int]] = []
        done = low
        for start, end in near:
            is_eraser = text[start] in _ERASERS
            # Most erase only of what stands right before them.
            last = start - (end - start) if is_eraser and end - start <= start - done else start
            if done < last:
                shown.append((text[done:last], done, last))
            if is_eraser:
                if last == start:
                    _erase(shown, end - start)
            elif start in moves:
                shown.append((" ", start, end))
            done = end
        shown.append((text[done:high], done, high))
        for piece in shown:
            builder.add(*piece)
    return builder.done()


def _erase(shown: list[tuple[str, int, int]], many: int) -> None:
    """Take so many characters from the end of what is shown."""
    while many > 0 and shown:
        said, start, end = shown.pop()
        if len(said) > many:
            shown.append((said[:-many], start, end - many))
        many -= len(said)


class _Markup:
    """Tells where tags and comments end. Asked in the order of the places, it takes time of the text's length."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._closed = -1

    def end(self, start: int) -> tuple[int, bool]:
        """Return where what begins at a place ends, or that place if it is no markup; and whether it breaks a line."""
        text = self._text
        if text.startswith(_COMMENT, start):
            if self._closed < start + 2:
                place = text.find(_COMMENT_END, start + 2)
                self._closed = place if place >= 0 else len(text)
            return (self._closed + len(_COMMENT_END) if self._closed < len(text) else start), False
        tag = _TAG.match(text, start)
        if tag is None:
            return start, False
        return tag.end(), bool(tag[1]) and tag[1].lower() in _BREAKS


def _cuts(text: str, raw: bytes, first: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of markup that stands in a word, and of comments between two; from a place on."""
    markup = _Markup(text)
    for cut in _CUT.finditer(raw, first):
        if cut[2]:
            yield cut.span()
            continue
        place = start = cut.start()
        parts, is_break = 0, False
        while text.startswith("<", place):
            end, breaks = markup.end(place)
            if end == place:
                break
            place, parts, is_break = end, parts + 1, is_break or breaks
        if parts and not is_break and _are_parted(text, start, place, is_single=parts == 1):
            yield start, place


def _are_parted(text: str, start: int, end: int, *, is_single: bool) -> bool:
    """Tell whether a span of markup parts the letters of a word, or words by nothing that is seen."""
    before, after = text[start - 1], text[end : end + 2]
    is_comment = text.startswith("<!", start)
    if before == " " or after[:1] == " ":
        # A type in code may stand behind a letter and before a blank.
        return (is_comment or not is_single) and after.lstrip(" ")[:1].isalpha()
    # What is invisible parts no word either.
    if not ((before.isalpha() or not before.isprintable()) and (after[:1].isalpha() or not after[:1].isprintable())):
        return False
    is_ended = is_single and text.startswith("</", start)
    # Where letters of two scripts meet no word is cut.
    return not (is_ended and (_ENDING.match(text, end) or before.isascii() != after[0].isascii()))


def _without_markup(text: str, raw: bytes, first: int) -> list[Decoded]:
    """first: where the first cut may be."""
    spots = list(islice(_cuts(text, raw, first), _MANY_CUTS))
    if not spots:
        return []
    if len(spots) == _MANY_CUTS:
        spots.append((spots[-1][1], len(text)))
    builder = Builder("markup")
    comments: list[tuple[int, int]] = []
    markup = _Markup(text)
    for low, high, _ in regions(spots, around=_AROUND_CHARS, length=len(text)):
        _add_shown(builder, text, (low, high), markup, comments)
    # Words may be cut in a comment, too. There is none inside another.
    markup = _Markup(text)
    for low, high in comments:
        _add_shown(builder, text, (low, high), markup, [])
    return builder.done()


def _add_shown(
    builder: Builder, text: str, span: tuple[int, int], markup: _Markup, comments: list[tuple[int, int]]
) -> None:
    """Add a span without its markup; list the comments that have some of their own."""
    done, high = span
    builder.end_piece(done)
    place = text.find("<", done, high)
    while place >= 0:
        end, is_break = markup.end(place)
        if end > place:
            builder.add(text[done:place], done, place)
            if is_break:
                builder.add("\n", place, end)
            elif text.startswith(_COMMENT, place) and text.find("<", place + 4, end) >= 0:
                comments.append((place + len(_COMMENT), end - len(_COMMENT_END)))
            done = end
        place = text.find("<", max(end, place + 1), high)
    builder.add(text[done:high], done, max(done, high))
