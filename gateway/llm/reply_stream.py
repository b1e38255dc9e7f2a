"""The chunks of a streamed completion as an upstream sends them: server-sent events, checked. Knows no dialect."""

from collections import deque
from collections.abc import Mapping

from gateway.errors import InvalidJson
from gateway.http.messages import ClientError
from gateway.http.messages import Reply as HttpReply
from gateway.http.reply import IncomingReply
from gateway.http.sse import EventReader, EventTooLong
from gateway.llm.base import UpstreamFault
from gateway.llm.faults import fault_of, passed_on, refusal_of
from gateway.llm.masking import OwnKey
from gateway.offload import ThreadOffload
from gateway.strict_json import read_json

EVENTS = "text/event-stream"
MAX_EVENT_BYTES = 8 * 1024 * 1024
LARGE_REPLY_BYTES = 65_536
MAX_REPLY_VALUES = 2_000_000
"""A long reply has this many log probabilities."""
_DONE = b"[DONE]"


class HttpReplyStream:
    """The chunks of one completion, as server-sent events or, from an upstream that does not stream, as one JSON."""

    def __init__(self, reply: IncomingReply, key: OwnKey, offload: ThreadOffload) -> None:
        self._reply = reply
        self._key = key
        self._events = EventReader(MAX_EVENT_BYTES)
        self._offload = offload
        self._waiting: deque[bytes] = deque()  # events that came together with an earlier one
        self._first: Mapping[str, object] | None = None
        self._is_done = False
        self.has_key = False
        self.headers: tuple[tuple[str, str], ...] = ()

    async def begin(self) -> None:
        """Read up to the first chunk.

        Raises:
            UpstreamFault, UpstreamRefused: as `HttpUpstream.complete`.
        """
        try:
            head = await self._reply.head()
            kind = next((value for name, value in head.headers if name == "content-type"), "")
            if not 200 <= head.status < 300 or not kind.lower().startswith(EVENTS):
                answer = await self._reply.whole()
                if not 200 <= answer.status < 300:
                    clean, self.has_key = self._key.mask(answer.body, max_values=MAX_REPLY_VALUES)
                    raise refusal_of(HttpReply(answer.status, answer.headers, clean), has_key=self.has_key)
                self._waiting.extend((answer.body, _DONE))
            elif any(name == "content-encoding" and value != "identity" for name, value in head.headers):
                raise _broken("its event stream is compressed, which was not asked for")
            self.headers = passed_on(head)
        except ClientError as error:
            raise fault_of(error) from error
        self._first = await self.next()
        if self._first is None:
            raise _broken("its event stream is empty")

    async def next(self) -> Mapping[str, object] | None:
        """Return the next chunk, as `ReplyStream` says."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        while not self._waiting and not self._is_done:
            try:
                data = await self._reply.read()
                if not data:
                    raise _broken("its event stream broke off")
                self._waiting.extend(filter(bytes.strip, self._events.feed(data)))
            except ClientError as error:
                raise fault_of(error) from error
            except EventTooLong as error:
                raise _broken("an event of its stream is too long") from error
        if self._is_done or (event := self._waiting.popleft()).strip() == _DONE:
            self._is_done = True
            return None
        return await self._offload.run(self._read, event) if len(event) > LARGE_REPLY_BYTES else self._read(event)

    def _read(self, event: bytes) -> Mapping[str, object]:
        clean, has_key = self._key.mask(event, max_values=MAX_REPLY_VALUES)
        self.has_key |= has_key
        try:
            chunk = read_json(clean, max_values=MAX_REPLY_VALUES)
        except InvalidJson as error:
            raise _broken("an event of its stream is no JSON") from error
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise _broken("it reported an error within its event stream")
        return chunk

    def without_key(self, text: str) -> str:
        """Return a text without our own key, which may come in pieces."""
        clean = self._key.without(text)
        self.has_key |= clean != text
        return clean

    def close(self) -> None:
        """Close the connection, unless the reply was read to its end."""
        self._reply.close()


def _broken(detail: str) -> UpstreamFault:
    return UpstreamFault("The model gateway broke off its answer.", detail=detail)
