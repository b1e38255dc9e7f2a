"""Content codings of replies, undone within a bound. Pure."""

import zlib

from gateway.http.messages import BadReply, ReplyTooLarge

_GZIP_MEMBERS = 16


def decode_content(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Undo a content coding: gzip, deflate (with or without the zlib header) or none. Never holds over `max_bytes`.

    Raises:
        BadReply: another coding, or the body is not coded so, is cut, or goes on after its end.
        ReplyTooLarge: it decodes to more than `max_bytes`.
    """
    coding = coding.lower()
    if coding in ("", "identity") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        window = 31
    elif coding == "deflate":
        has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
        window = 15 if has_header else -15
    else:
        raise bad_reply("the reply has a content coding that was not asked for")
    pieces: list[bytes] = []
    left_bytes = max_bytes
    for _ in range(_GZIP_MEMBERS):  # RFC 1952 section 2.2: a gzip file is one member or more
        decoder = zlib.decompressobj(window)
        try:
            piece = decoder.decompress(body, left_bytes + 1)
        except zlib.error as error:
            raise BadReply("the reply's content coding is malformed", was_sent=True) from error
        left_bytes -= len(piece)
        if left_bytes < 0:
            raise reply_too_large()
        if not decoder.eof:
            raise bad_reply("the reply's content coding ended early")
        pieces.append(piece)
        body = decoder.unused_data
        if not body:
            return b"".join(pieces)
        if window != 31:
            break
    raise bad_reply("bytes follow the end of the reply's content coding")


def bad_reply(reason: str) -> BadReply:
    """Return the error for a reply that is none."""
    return BadReply(reason, was_sent=True)


def reply_too_large() -> ReplyTooLarge:
    """Return the error for a reply over its limit."""
    return ReplyTooLarge("the reply is over the limit", was_sent=True)
