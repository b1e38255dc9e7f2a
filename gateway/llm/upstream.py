"""The upstream behind an OpenAI base URL, over the pooled client. The one file to know `http/client`."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import anyio

from gateway.clock import Clock, Ids
from gateway.errors import InvalidJson, UpstreamUnavailable
from gateway.http.client import Client, IncomingReply, resolve
from gateway.http.messages import ClientError, ConnectFailed, NoReply, ReplyTimeout, ReplyTooLarge
from gateway.http.messages import Reply as HttpReply
from gateway.http.messages import Terms as Terms
from gateway.http.sse import EventReader, EventTooLong
from gateway.llm.base import Prompt, Reply, UpstreamFault, UpstreamRefused
from gateway.llm.masking import OwnKey
from gateway.llm.openai import OpenAiDialect
from gateway.llm.openai_stream import stream_body
from gateway.offload import ThreadOffload
from gateway.strict_json import read_json, write_json

MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_CHARS = 500
MAX_MODELS = 10_000
MODELS_SECONDS = 60.0
MODELS_REPLY_BYTES = 4 * 1024 * 1024
LARGE_REPLY_BYTES = 65_536
MAX_REPLY_VALUES = 2_000_000
"""A long reply has this many log probabilities."""
MAX_EVENT_BYTES = 8 * 1024 * 1024
MAX_STREAM_SECONDS = 3_600.0
EVENTS = "text/event-stream"
_DONE = b"[DONE]"
PAYMENT_REQUIRED = 402
UNPAID = "it wants to be paid before it answers (status 402)"
DEFAULT_RETRY_SECONDS = 5
MAX_RETRY_SECONDS = 86_400
RESOLVE_SECONDS = 3.0
JSON_REPLY_BYTES = 1024 * 1024
JSON_VALUES = 10_000

# These are about the gateway's own account with the provider, which the caller cannot mend.
_OUR_ACCOUNT = (401, 403, 407)
_PASSED_ON = "openai-processing-ms"  # the one header that a client may see, if it is a number
_CODE = re.compile("[a-z][a-z0-9_]{0,63}")
_PARAM = re.compile(r"[A-Za-z0-9_.\[\]-]{1,128}")
_NAMES = re.compile(r"\b(?:org|proj|sk|pk|acct)[-_][\w*.-]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\bhttps?://\S+")
_DIGITS = re.compile("[0-9]{1,6}")
# https://www.w3.org/TR/trace-context/#traceparent-header
_TRACEPARENT = re.compile("00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


class HttpUpstream:
    """One provider that speaks the dialect at `base_url` (``/v1`` included).

    models: what to list; empty asks the provider, at most once a minute.
    """

    def __init__(
        self,
        client: Client,
        dialect: OpenAiDialect,
        terms: Terms,
        *,
        base_url: str,
        clock: Clock,
        ids: Ids,
        api_key: str | None = None,
        models: tuple[str, ...] = (),
        user_agent: str = "gateway",
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._base_url = base_url.rstrip("/")
        self._clock = clock
        self._ids = ids
        self._terms = terms
        self._list_terms = replace(terms, max_reply_bytes=MODELS_REPLY_BYTES)
        self._names = models
        self._listed: tuple[Mapping[str, object], ...] = ()
        self._listed_until_seconds = float("-inf")
        self._offload = ThreadOffload()
        self._key = OwnKey(api_key)
        headers = [("accept", "application/json"), ("accept-encoding", "gzip"), ("user-agent", user_agent)]
        if api_key:
            headers.append(("authorization", f"Bearer {api_key}"))
        self._headers = tuple(headers)
        self._headers_by_name = dict(headers)

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        """Complete a chat, as `Upstream` says."""
        headers = (*self._headers, ("content-type", "application/json"), *self._trace(traceparent))
        sent = prompt.raw or write_json(prompt.body)
        answer, has_key = await self._ask("POST", "/chat/completions", headers, sent, self._terms)
        if not 200 <= answer.status < 300:
            raise _refusal(answer, has_key=has_key)
        passed = _passed_on(answer)
        is_large = len(answer.body) > LARGE_REPLY_BYTES
        body = _json(answer) if not is_large else await self._offload.run(_json, answer)
        return replace(
            self._dialect.read_reply(body),
            headers=passed,
            is_large=is_large,
            raw=answer.body,
            has_key=has_key,
        )

    async def stream(self, prompt: Prompt, traceparent: str | None = None) -> "HttpReplyStream":
        """Stream a chat, as `Upstream` says. The time that the record gives a reply is then the longest silence."""
        sent = {**self._headers_by_name, "accept": EVENTS, "accept-encoding": "identity"}
        headers = (*sent.items(), ("content-type", "application/json"), *self._trace(traceparent))
        terms = replace(self._terms, total_seconds=MAX_STREAM_SECONDS, idle_seconds=self._terms.total_seconds)
        raw = write_json(stream_body(prompt.body))
        try:
            reply = await self._client.stream("POST", self._base_url + "/chat/completions", headers, raw, terms)
        except ClientError as error:
            raise _fault(error) from error
        stream = HttpReplyStream(reply, self._key)
        try:
            await stream.begin()
        except BaseException:
            stream.close()
            raise
        return stream

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """List the models, as `Upstream` says."""
        if self._names:
            return tuple(_model(name, 0, "upstream") for name in self._names)
        if self._clock.monotonic_seconds() >= self._listed_until_seconds:
            self._listed = await self.ask_models()
            self._listed_until_seconds = self._clock.monotonic_seconds() + MODELS_SECONDS
        return self._listed

    async def ask_models(self) -> tuple[Mapping[str, object], ...]:
        """Ask the provider for its models, even if it has just listed them.

        Raises:
            UpstreamUnavailable: it did not list them.
        """
        answer, _ = await self._ask("GET", "/models", self._headers, b"", self._list_terms)
        if 200 <= answer.status < 300:
            return _read_models(_json(answer))
        refusal = _refusal(answer)
        if isinstance(refusal, UpstreamFault):
            raise refusal
        status = refusal.status
        if status == PAYMENT_REQUIRED:
            raise UpstreamFault(refusal.message, detail=UNPAID, status=status) from refusal
        message = "The model gateway does not list its models."
        detail = f"it does not list its models (status {status}); base_url must hold the version, such as /v1"
        raise UpstreamFault(message, detail=detail, status=status) from refusal

    async def _ask(
        self, method: str, path: str, headers: tuple[tuple[str, str], ...], body: bytes, terms: Terms
    ) -> tuple[HttpReply, bool]:
        """Send a request; return the answer without our own key, and whether it had repeated that."""
        try:
            answer = await self._client.request(method, self._base_url + path, headers, body, terms)
        except ClientError as error:
            raise _fault(error) from error
        if len(answer.body) <= LARGE_REPLY_BYTES:
            clean, has_key = self._masked(answer.body)
        else:
            clean, has_key = await self._offload.run(self._masked, answer.body)
        return (HttpReply(answer.status, answer.headers, clean), True) if has_key else (answer, False)

    def _masked(self, body: bytes) -> tuple[bytes, bool]:
        return self._key.mask(body, max_values=MAX_REPLY_VALUES)

    def _trace(self, traceparent: str | None) -> tuple[tuple[str, str], ...]:
        found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
        if found is None:
            return ()
        # The low bit makes the span id other than zero, which the standard forbids.
        span = int.from_bytes(self._ids.random_bytes(8), "big") | 1
        return (("traceparent", f"00-{found[1]}-{span:016x}-{found[2]}"),)


class HttpReplyStream:
    """The chunks of one completion, as server-sent events or, from an upstream that does not stream, as one JSON."""

    def __init__(self, reply: IncomingReply, key: OwnKey) -> None:
        self._reply = reply
        self._key = key
        self._events = EventReader(MAX_EVENT_BYTES)
        self._chunks: deque[Mapping[str, object]] = deque()
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
                clean, self.has_key = self._key.mask(answer.body, max_values=MAX_REPLY_VALUES)
                answer = HttpReply(answer.status, answer.headers, clean)
                if not 200 <= answer.status < 300:
                    raise _refusal(answer, has_key=self.has_key)
                self._take(clean)
                self._is_done = True
            elif any(name == "content-encoding" and value != "identity" for name, value in head.headers):
                raise _broken("its event stream is compressed, which was not asked for")
            self.headers = _passed_on(head)
        except ClientError as error:
            raise _fault(error) from error
        first = await self.next()
        if first is None:
            raise _broken("its event stream is empty")
        self._chunks.appendleft(first)

    async def next(self) -> Mapping[str, object] | None:
        """Return the next chunk, as `ReplyStream` says."""
        while not self._chunks and not self._is_done:
            try:
                data = await self._reply.read()
                if not data:
                    raise _broken("its event stream broke off")
                for event in self._events.feed(data):
                    if event.strip() == _DONE:
                        self._is_done = True
                        break
                    self._take(event)
            except ClientError as error:
                raise _fault(error) from error
            except EventTooLong as error:
                raise _broken("an event of its stream is too long") from error
        return self._chunks.popleft() if self._chunks else None

    def _take(self, event: bytes) -> None:
        clean, has_key = self._key.mask(event, max_values=MAX_REPLY_VALUES)
        self.has_key |= has_key
        try:
            chunk = read_json(clean, max_values=MAX_REPLY_VALUES)
        except InvalidJson as error:
            raise _broken("an event of its stream is no JSON") from error
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise _broken("it reported an error within its event stream")
        self._chunks.append(chunk)

    def without_key(self, text: str) -> str:
        """Return a text without our own key, which may come in pieces."""
        clean = self._key.without(text)
        self.has_key |= clean != text
        return clean

    def close(self) -> None:
        """Close the connection, unless the reply was read to its end."""
        self._reply.close()


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads over the client of this process."""

    client: Client
    user_agent: str

    async def get(self, url: str, *, key: str, seconds: float, allow_address: Callable[[str], bool]) -> object:
        """Return the JSON of a good answer. seconds: for all of it. allow_address: every address of the host must pass.

        Raises:
            UpstreamUnavailable: no good answer; the message says why, and never repeats the key or the answer.
        """
        headers = (("accept", "application/json"), ("x-service-key", key), ("user-agent", self.user_agent))
        try:
            reply = await self.client.request(
                "GET",
                url,
                headers,
                b"",
                Terms(
                    connect_seconds=seconds,
                    first_byte_seconds=seconds,
                    total_seconds=seconds,
                    max_reply_bytes=JSON_REPLY_BYTES,
                    allow_address=allow_address,
                ),
            )
        except ClientError as error:
            raise UpstreamUnavailable(error.reason) from error
        except ValueError as error:
            raise UpstreamUnavailable("its URL cannot be asked") from error
        if reply.status != 200:
            raise UpstreamUnavailable(f"it answered with status {reply.status}")
        try:
            clean, _ = OwnKey(key).mask(reply.body, max_values=JSON_VALUES)
            return read_json(clean, max_values=JSON_VALUES)
        except InvalidJson as error:
            raise UpstreamUnavailable("its answer is no JSON") from error


async def addresses_of(base_url: str) -> tuple[str, ...]:
    """Return the current addresses of the host of `base_url`; none if it cannot be resolved in time."""
    with anyio.move_on_after(RESOLVE_SECONDS):
        try:
            return await resolve(base_url)
        except ClientError:
            return ()
    return ()


def _passed_on(answer: HttpReply) -> tuple[tuple[str, str], ...]:
    return tuple(one for one in answer.headers if one[0] == _PASSED_ON and _DIGITS.fullmatch(one[1]))


def _broken(detail: str) -> UpstreamFault:
    return UpstreamFault("The model gateway broke off its answer.", detail=detail)


def _json(answer: HttpReply) -> object:
    try:
        return read_json(answer.body, max_values=MAX_REPLY_VALUES)
    except InvalidJson as error:
        message = "The model gateway answered something that is no JSON."
        raise UpstreamFault(message, detail="its answer is no JSON", status=answer.status) from error


def _fault(error: ClientError) -> UpstreamFault:
    """Return the error for a request that got no good reply."""
    if isinstance(error, ReplyTimeout):
        return UpstreamFault("The model gateway did not answer in time.", detail=error.reason, is_late=error.was_sent)
    if isinstance(error, ReplyTooLarge):
        return UpstreamFault("The model gateway answered more than is allowed.", detail=error.reason)
    message = "The model gateway cannot be reached or broke off its answer."
    return UpstreamFault(message, detail=error.reason, may_repeat=isinstance(error, ConnectFailed | NoReply))


def _refusal(answer: HttpReply, *, has_key: bool = False) -> UpstreamFault | UpstreamRefused:
    status = answer.status
    if status < 400:
        message = "The model gateway answered with a redirect, which is not followed."
        return UpstreamFault(message, detail=f"it answered with a redirect (status {status})", status=status)
    if status in _OUR_ACCOUNT:
        message = "The model gateway refused the credentials of this gateway."
        return UpstreamFault(message, detail=f"it refused the API key (status {status})", status=status)
    if status >= 500:
        message = f"The model gateway failed with status {status}."
        return UpstreamFault(message, detail=f"it failed with status {status}", status=status, may_repeat=True)
    if status == 429:
        # Its text names the account, and its code means nothing to a caller without an account there.
        message = "The model gateway takes no more requests for now."
        return UpstreamRefused(status, message, retry_after_seconds=_retry_after(answer.headers), has_key=has_key)
    return _refused(status, answer.body, has_key)


def _refused(status: int, body: bytes, has_key: bool) -> UpstreamRefused:
    """Keep of an OpenAI error body what is well formed: message, code and param."""
    try:
        value = read_json(body) if len(body) <= MAX_ERROR_BYTES else None
    except InvalidJson:
        return UpstreamRefused(status, has_key=has_key)
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        error = {"message": error}
    message, code, param = error.get("message"), error.get("code"), error.get("param")
    return UpstreamRefused(
        status,
        _NAMES.sub("****", message[:MAX_ERROR_CHARS]).strip() if isinstance(message, str) else None,
        code=code if isinstance(code, str) and _CODE.fullmatch(code) else None,
        param=param if isinstance(param, str) and _PARAM.fullmatch(param) else None,
        has_key=has_key,
    )


def _retry_after(headers: tuple[tuple[str, str], ...]) -> int:
    """Return whole seconds; a date or anything else than digits counts as not given."""
    for name, value in headers:
        if name == "retry-after" and _DIGITS.fullmatch(value):
            return min(max(int(value), 1), MAX_RETRY_SECONDS)
    return DEFAULT_RETRY_SECONDS


def _read_models(value: object) -> tuple[Mapping[str, object], ...]:
    listed = value.get("data") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        message = "The model gateway answered something that is no list of models."
        raise UpstreamFault(message, detail="its answer is no list of models")
    found = []
    for item in listed[:MAX_MODELS]:
        name = item.get("id") if isinstance(item, dict) else None
        if isinstance(name, str) and 0 < len(name) <= 256:
            created, owner = item.get("created"), item.get("owned_by")
            found.append(
                _model(
                    name,
                    created if isinstance(created, int) else 0,
                    owner if isinstance(owner, str) and len(owner) <= 256 else "upstream",
                )
            )
    return tuple(found)


def _model(name: str, created: int, owner: str) -> Mapping[str, object]:
    return {"id": name, "object": "model", "created": created, "owned_by": owner}
