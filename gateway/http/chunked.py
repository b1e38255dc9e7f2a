"""Undo the chunked transfer coding (RFC 9112 section 7.1), strictly and within bounds. Pure.

h11 takes chunk extensions of any length, blanks after a size, and merges trailers; here every line is bounded, and
trailers are checked and thrown away. Tests hold that whatever is accepted here, h11 reads as the same body.
"""

import re
from enum import Enum, auto

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t -~]*)?")
_TRAILER = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")


class ChunkError(ValueError):
    """The body is not chunked as announced, or a line of it is too long."""


class _Expects(Enum):
    SIZE = auto()
    DATA = auto()
    DATA_END = auto()
    TRAILER = auto()
    NOTHING = auto()


class ChunkReader:
    """Reads one chunked body that arrives in pieces.

    is_finished: the last chunk and the trailers were read. rest: what came after them.
    """

    def __init__(self, *, line_bytes: int, trailer_bytes: int) -> None:
        self.is_finished = False
        self.rest = b""
        self._line_bytes = line_bytes
        self._trailer_bytes = trailer_bytes
        self._expects = _Expects.SIZE
        self._missing_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the connection and return the bytes of the body among them.

        Raises:
            ChunkError: malformed; the connection cannot be read any further.
        """
        data = self.rest + data if self.rest else data
        pieces: list[bytes] = []
        at = 0
        while self._expects is not _Expects.NOTHING:
            if self._expects is _Expects.DATA:
                piece = data[at : at + self._missing_bytes]
                if not piece:
                    break
                pieces.append(piece)
                at += len(piece)
                self._missing_bytes -= len(piece)
                if self._missing_bytes == 0:
                    self._expects = _Expects.DATA_END
                continue
            end = data.find(b"\r\n", at)
            line = data[at : end if end >= 0 else len(data)]
            self._check_length(line)
            if end < 0:
                break
            self._take_line(line)
            at = end + 2
        self.rest = data[at:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_length(self, line: bytes) -> None:
        if self._expects is _Expects.DATA_END:
            most_bytes = 1 if line == b"\r" else 0
        elif self._expects is _Expects.TRAILER:
            most_bytes = self._trailer_bytes
        else:
            most_bytes = self._line_bytes
        if len(line) > most_bytes or b"\n" in line:
            raise ChunkError("a line of the chunked coding is malformed or too long")

    def _take_line(self, line: bytes) -> None:
        if self._expects is _Expects.DATA_END:
            if line:
                raise ChunkError("a chunk is longer than its size")
            self._expects = _Expects.SIZE
        elif self._expects is _Expects.SIZE:
            found = _SIZE_LINE.fullmatch(line)
            if found is None:
                raise ChunkError("a chunk size is malformed")
            self._missing_bytes = int(found[1], 16)
            self._expects = _Expects.DATA if self._missing_bytes else _Expects.TRAILER
        elif not line:
            self._expects = _Expects.NOTHING
            self.is_finished = True
        else:
            self._trailer_bytes -= len(line) + 2
            if self._trailer_bytes < 0 or _TRAILER.fullmatch(line) is None:
                raise ChunkError("a trailer is malformed or too long")
