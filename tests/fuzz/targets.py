"""Everything that reads bytes of a stranger, each as one function of bytes: it returns, or a promise is broken.

Run shortly by `test_targets.py` on what hypothesis makes up, and for as long as one likes by `run.py` under atheris.
"""

import json
from collections.abc import Callable, Iterator, Mapping

import anyio
import h11
from fuzz.heads import LIMITS, assert_same

from gateway.errors import GatewayError
from gateway.http.body import BodyReader, ChunkError
from gateway.http.head import parse_head
from gateway.http.messages import ClientError, HttpError
from gateway.http.reply import IncomingReply
from gateway.llm.openai import OpenAiDialect
from gateway.llm.openai_request import WORDS
from gateway.mcp import jsonrpc
from gateway.shield.rules import RuleError, load_rules
from gateway.strict_json import InvalidJson, read_json, write_json

_CHUNK_HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
_DIALECT = OpenAiDialect()


def request_head(raw: bytes) -> None:
    """A head is refused with an error of the contract, or h11 reads it as the same."""
    try:
        head = parse_head(raw, LIMITS)
    except HttpError as error:
        assert 400 <= error.status < 600, error
        return
    if head is not None and raw.partition(b" ")[2].startswith(b"/") and not raw.startswith(b"\r\n"):
        assert_same(head, raw)


def chunked_body(raw: bytes) -> None:
    """A chunked body that is read is the same however it is cut, and the same as h11 reads."""
    whole = _unchunk([raw])
    for cut in range(1, min(len(raw), 40)):
        assert _unchunk([raw[:cut], raw[cut:]]) == whole, cut
    if whole is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(_CHUNK_HEAD + raw)
    connection.next_event()
    body = b""
    while type(event := connection.next_event()) is h11.Data:
        body += bytes(event.data)
    assert type(event) is h11.EndOfMessage
    assert body == whole


def _unchunk(pieces: list[bytes]) -> bytes | None:
    """Return the body of what comes in `pieces`; None when it is refused or not at its end."""
    reader = BodyReader(None, line_bytes=256, trailer_bytes=8192)
    body = b""
    try:
        for piece in pieces:
            body += reader.feed(piece)
    except ChunkError:
        return None
    return body if reader.is_finished else None


def upstream_reply(raw: bytes) -> None:
    """What an upstream sends is a reply within the limit or an error of the client's own."""
    anyio.run(_read_reply, raw)


async def _read_reply(raw: bytes) -> None:
    async def more() -> bytes:
        return b""

    try:
        reply = await IncomingReply("POST", 4096, raw, more=more, release=bool).whole()
        assert len(reply.body) <= 4096
    except ClientError as error:
        assert error.reason


def json_reader(raw: bytes) -> None:
    """What is accepted is what the standard reader reads, and is written again without loss."""
    try:
        value = read_json(raw)
    except InvalidJson:
        return
    assert value == json.loads(raw.decode("utf-8"))
    assert read_json(write_json(value)) == value


def chat_walker(raw: bytes) -> None:
    """Every string of a message that is taken is scanned: what is forwarded is what is scanned."""
    try:
        body = read_json(raw)
        request = _DIALECT.read(body)
    except (InvalidJson, GatewayError):
        return
    prompt, leaves = request.prompt, request.leaves
    seen = "\n".join(leaf.text for leaf in leaves.texts)
    is_partly_opaque = bool(leaves.unscanned)
    for text in _strings(prompt.body.get("messages")):
        assert is_partly_opaque or text in WORDS or text in seen, text


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inside in value.items():
            if name not in ("role", "type"):
                yield from _strings(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _strings(inside)


def rule_loader(raw: bytes) -> None:
    """A rule file is loaded or refused with rule, field and reason."""
    try:
        load_rules(raw)
    except RuleError as error:
        assert str(error)


def mcp_reader(raw: bytes) -> None:
    """Any line is a record, and what answers it can be written."""
    message = jsonrpc.parse(raw)
    for one in message.messages if isinstance(message, jsonrpc.Batch) else (message,):
        if isinstance(one, jsonrpc.Invalid):
            written = jsonrpc.render(jsonrpc.Reply(one.id, jsonrpc.Fault(one.code, one.reason)))
            assert b"\n" not in written
            assert read_json(written)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "request_head": request_head,
    "chunked_body": chunked_body,
    "upstream_reply": upstream_reply,
    "json_reader": json_reader,
    "chat_walker": chat_walker,
    "rule_loader": rule_loader,
    "mcp_reader": mcp_reader,
}
