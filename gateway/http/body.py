"""Read the body of one message, chunked (RFC 9112 section 7.1) or of a declared length, strictly and in bounds. Pure.

h11 takes chunk extensions of any length, blanks after a size, and merges trailers; here every line is bounded, and
trailers are checked and thrown away. Tests hold that whatever is accepted here, h11 reads as the same body.
"""

import re
import sys

UNTIL_END = sys.maxsize
"""The length of a body that ends with its connection: more than any has."""
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t -~]*)?")
_TRAILER = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")


class ChunkError(ValueError):
    """The body is not chunked as announced, or a line of it is too long."""


class BodyReader:
    """Reads one body that arrives in pieces.

    body_bytes: its declared length; None when it is chunked. line_bytes, trailer_bytes: the most that a line of the
    chunked coding and all trailers may have. is_finished: all of it was read, trailers included. rest: what came after.
    """

    def __init__(self, body_bytes: int | None, *, line_bytes: int, trailer_bytes: int) -> None:
        self.is_finished = body_bytes == 0
        self.rest = b""
        self._is_chunked = body_bytes is None
        self._line_bytes = line_bytes
        self._trailer_bytes = trailer_bytes
        self._most_bytes = line_bytes  # of the next line; 0 for the line break behind a chunk
        self._missing_bytes = body_bytes or 0  # of the body, or of the chunk that is read
        self._is_in_trailers = False

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the connection and return the bytes of the body among them.

        Raises:
            ChunkError: malformed; the connection cannot be read any further.
        """
        data, at, pieces = self.rest + data, 0, []
        while not self.is_finished and at < len(data):
            if self._missing_bytes:
                piece = data[at : at + self._missing_bytes]
                pieces.append(piece)
                at += len(piece)
                self._missing_bytes -= len(piece)
                self.is_finished = not (self._is_chunked or self._missing_bytes)
                continue
            end = data.find(b"\r\n", at)
            line = data[at:end] if end >= 0 else data[at:].removesuffix(b"\r")
            if len(line) > self._most_bytes or b"\n" in line:
                raise ChunkError("a line of the chunked coding is malformed or too long")
            if end < 0:
                break
            self._take_line(line)
            at = end + 2
        self.rest = data[at:]
        return b"".join(pieces)

    def _take_line(self, line: bytes) -> None:
        if self._is_in_trailers:
            self.is_finished = not line
            self._most_bytes -= len(line) + 2
            if line and (self._most_bytes < 0 or _TRAILER.fullmatch(line) is None):
                raise ChunkError("a trailer is malformed or too long")
        elif self._most_bytes == 0:
            self._most_bytes = self._line_bytes
        else:
            found = _SIZE_LINE.fullmatch(line)
            if found is None:
                raise ChunkError("a chunk size is malformed")
            self._missing_bytes = int(found[1], 16)
            self._is_in_trailers = self._missing_bytes == 0
            self._most_bytes = self._trailer_bytes if self._is_in_trailers else 0
