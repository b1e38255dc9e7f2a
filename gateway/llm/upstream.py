"""The upstream behind an OpenAI base URL, over the pooled client. The one file to know `http/client`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import anyio

from gateway.clock import Ids
from gateway.errors import InvalidJson, UpstreamUnavailable
from gateway.http.client import Client, resolve
from gateway.http.messages import ClientError
from gateway.http.messages import Reply as HttpReply
from gateway.http.messages import Terms as Terms
from gateway.llm.base import Prompt, Reply, UpstreamFault
from gateway.llm.faults import fault_of, passed_on, refusal_of
from gateway.llm.masking import OwnKey
from gateway.llm.openai import OpenAiDialect
from gateway.llm.openai_stream import stream_body
from gateway.llm.reply_stream import EVENTS, LARGE_REPLY_BYTES, MAX_REPLY_VALUES, HttpReplyStream
from gateway.offload import ThreadOffload
from gateway.strict_json import read_json, write_json

MAX_MODELS = 10_000
MODELS_REPLY_BYTES = 4 * 1024 * 1024
MAX_STREAM_SECONDS = 3_600.0
PAYMENT_REQUIRED = 402
UNPAID = "it wants to be paid before it answers (status 402)"
RESOLVE_SECONDS = 3.0
JSON_REPLY_BYTES = 1024 * 1024
JSON_VALUES = 10_000


class HttpUpstream:
    """One provider that speaks the dialect at `base_url` (``/v1`` included).

    models: what to list; empty asks the provider.
    """

    def __init__(
        self,
        client: Client,
        dialect: OpenAiDialect,
        terms: Terms,
        *,
        base_url: str,
        ids: Ids,
        api_key: str | None = None,
        models: tuple[str, ...] = (),
        user_agent: str = "gateway",
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._base_url = base_url.rstrip("/")
        self._ids = ids
        self._terms = terms
        self._list_terms = replace(terms, max_reply_bytes=MODELS_REPLY_BYTES)
        self._names = models
        self._offload = ThreadOffload()
        self._key = OwnKey(api_key)
        self._headers = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": user_agent}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"

    async def complete(self, prompt: Prompt, traceparent: str | None = None) -> Reply:
        """Complete a chat, as `Upstream` says."""
        headers = (*self._headers.items(), ("content-type", "application/json"), *self._trace(traceparent))
        sent = prompt.raw or write_json(prompt.body)
        answer, has_key = await self._ask("POST", "/chat/completions", headers, sent, self._terms)
        if not 200 <= answer.status < 300:
            raise refusal_of(answer, has_key=has_key)
        is_large = len(answer.body) > LARGE_REPLY_BYTES
        body = _json(answer) if not is_large else await self._offload.run(_json, answer)
        reply = self._dialect.read_reply(body)
        return replace(reply, headers=passed_on(answer), is_large=is_large, raw=answer.body, has_key=has_key)

    async def stream(self, prompt: Prompt, traceparent: str | None = None) -> HttpReplyStream:
        """Stream a chat, as `Upstream` says. The time that the record gives a reply is then the longest silence."""
        sent = {**self._headers, "accept": EVENTS, "accept-encoding": "identity"}
        headers = (*sent.items(), ("content-type", "application/json"), *self._trace(traceparent))
        terms = replace(self._terms, total_seconds=MAX_STREAM_SECONDS, idle_seconds=self._terms.total_seconds)
        raw = write_json(stream_body(prompt.body))
        try:
            reply = await self._client.stream("POST", self._base_url + "/chat/completions", headers, raw, terms)
        except ClientError as error:
            raise fault_of(error) from error
        stream = HttpReplyStream(reply, self._key, self._offload)
        try:
            await stream.begin()
        except BaseException:
            stream.close()
            raise
        return stream

    async def models(self) -> tuple[Mapping[str, object], ...]:
        """List the models, as `Upstream` says."""
        return tuple(_model(name, 0, "upstream") for name in self._names) or await self.ask_models()

    async def ask_models(self) -> tuple[Mapping[str, object], ...]:
        """Ask the provider for its models, whatever is to be listed.

        Raises:
            UpstreamUnavailable: it did not list them.
        """
        answer, _ = await self._ask("GET", "/models", tuple(self._headers.items()), b"", self._list_terms)
        if 200 <= answer.status < 300:
            return _read_models(_json(answer))
        refusal = refusal_of(answer)
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
            raise fault_of(error) from error
        mask = partial(self._key.mask, max_values=MAX_REPLY_VALUES)
        is_large = len(answer.body) > LARGE_REPLY_BYTES
        clean, has_key = await self._offload.run(mask, answer.body) if is_large else mask(answer.body)
        return HttpReply(answer.status, answer.headers, clean), has_key

    def _trace(self, traceparent: str | None) -> tuple[tuple[str, str], ...]:
        if traceparent is None:
            return ()
        _, trace, _, flags = traceparent.split("-")
        # The low bit makes the span id other than zero, which the standard forbids.
        span = int.from_bytes(self._ids.random_bytes(8), "big") | 1
        return (("traceparent", f"00-{trace}-{span:016x}-{flags}"),)


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads over the client of this process."""

    client: Client
    user_agent: str

    async def ask(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        key: str | None,
        seconds: float,
        allow_address: Callable[[str], bool],
        body: object = None,
    ) -> object:
        """Return the JSON of a good answer.

        key: in one of `headers`. seconds: for all of it. allow_address: every address of the host must pass. body: JSON
        to send; None asks with GET.

        Raises:
            UpstreamUnavailable: no good answer; the message says why, and never repeats the key or the answer.
        """
        sent = {"accept": "application/json", "user-agent": self.user_agent, **headers}
        method, raw = ("GET", b"") if body is None else ("POST", write_json(body))
        if body is not None:
            sent["content-type"] = "application/json"
        terms = Terms(total_seconds=seconds, max_reply_bytes=JSON_REPLY_BYTES, allow_address=allow_address)
        try:
            reply = await self.client.request(method, url, tuple(sent.items()), raw, terms)
        except ClientError as error:
            raise UpstreamUnavailable(error.reason) from error
        except ValueError as error:
            raise UpstreamUnavailable("its URL cannot be asked") from error
        if reply.status != 200:
            said = f"it answered with status {reply.status}"
            raise UpstreamFault(said, detail=said, status=reply.status)
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


def _json(answer: HttpReply) -> object:
    try:
        return read_json(answer.body, max_values=MAX_REPLY_VALUES)
    except InvalidJson as error:
        message = "The model gateway answered something that is no JSON."
        raise UpstreamFault(message, detail="its answer is no JSON", status=answer.status) from error


def _read_models(value: object) -> tuple[Mapping[str, object], ...]:
    listed = value.get("data") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        message = "The model gateway answered something that is no list of models."
        raise UpstreamFault(message, detail="its answer is no list of models")
    models = [one for one in listed[:MAX_MODELS] if isinstance(one, dict)]
    found = [(one.get("id"), one.get("created"), one.get("owned_by")) for one in models]
    return tuple(
        _model(
            name,
            created if isinstance(created, int) else 0,
            owner if isinstance(owner, str) and len(owner) <= 256 else "upstream",
        )
        for name, created, owner in found
        if isinstance(name, str) and 0 < len(name) <= 256
    )


def _model(name: str, created: int, owner: str) -> Mapping[str, object]:
    return {"id": name, "object": "model", "created": created, "owned_by": owner}
