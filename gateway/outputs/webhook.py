"""Signed webhooks (Standard Webhooks specification). Follows no redirect; connects only to allowed addresses."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from gateway.clock import Clock
from gateway.domain.event_formats import CONTENT_TYPES, webhook_body
from gateway.domain.event_outputs import OutEvent, OutputFormat, webhook_headers
from gateway.http.messages import ClientError, Reply, Terms
from gateway.outputs.delivery import Delivery, DeliveryFailed

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 15.0
REPLY_BYTES = 65_536
_GONE = 410
_RETRYABLE = (408, 409, 425, 429)


Post = Callable[[str, str, Sequence[tuple[str, str]], bytes, Terms], Awaitable[Reply]]
"""Send a request (method, URL, headers, body, terms) and return the reply. Raises ClientError."""


@dataclass(eq=False, repr=False)
class Webhook(Delivery):
    """One URL. key: of the signature. allow_address: decides for every address of the host."""

    post: Post
    url: str
    _: KW_ONLY
    key: bytes
    form: OutputFormat
    clock: Clock
    allow_address: Callable[[str], bool]

    async def deliver(self, event: OutEvent) -> None:
        body = webhook_body(event, self.form)
        kind, now_at = CONTENT_TYPES[self.form], self.clock.now_at()
        signed = webhook_headers(event.id, body, self.key, now_at=now_at, content_type=kind)
        headers = (*signed, ("user-agent", "gateway-webhook/1"))
        terms = Terms(
            connect_seconds=CONNECT_SECONDS,
            total_seconds=TOTAL_SECONDS,
            max_reply_bytes=REPLY_BYTES,
            allow_address=self.allow_address,
        )
        try:
            reply = await self.post("POST", self.url, headers, body, terms)
        except ClientError as error:
            raise DeliveryFailed(f"The webhook got no answer: {error.reason}.") from error
        if 200 <= reply.status < 300:
            return
        is_final = 300 <= reply.status < 500 and reply.status not in _RETRYABLE
        raise DeliveryFailed(f"The webhook answered {reply.status}.", is_final=is_final, is_gone=reply.status == _GONE)
