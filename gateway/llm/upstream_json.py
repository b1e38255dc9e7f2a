"""Ask another gateway for one small JSON document over HTTP. Follows no redirect, and trusts nothing it is told."""

from collections.abc import Callable

from gateway.errors import InvalidJson, UpstreamUnavailable
from gateway.http.client import Client, ClientError, Terms
from gateway.llm.own_key import OwnKey
from gateway.strict_json import read_json

MAX_REPLY_BYTES = 1024 * 1024
MAX_VALUES = 10_000


class JsonReader:
    """Reads over the client of this process."""

    def __init__(self, client: Client, *, user_agent: str) -> None:
        self._client = client
        self._user_agent = user_agent

    async def get(self, url: str, *, key: str, seconds: float, allow_address: Callable[[str], bool]) -> object:
        """Return the JSON of a good answer. seconds: for all of it. allow_address: of the host's, all must be.

        Raises:
            UpstreamUnavailable: there is none; the message says why, and never repeats the key or the answer.
        """
        headers = (("accept", "application/json"), ("x-service-key", key), ("user-agent", self._user_agent))
        try:
            reply = await self._client.request(
                "GET",
                url,
                headers,
                b"",
                Terms(
                    connect_seconds=seconds,
                    first_byte_seconds=seconds,
                    total_seconds=seconds,
                    max_reply_bytes=MAX_REPLY_BYTES,
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
            clean, _ = OwnKey(key).mask(reply.body, max_values=MAX_VALUES)
            return read_json(clean, max_values=MAX_VALUES)
        except InvalidJson as error:
            raise UpstreamUnavailable("its answer is no JSON") from error
