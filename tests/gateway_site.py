"""A whole gateway in memory behind its dispatch, without RBAC, for tests of what the API answers."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.http.messages import Headers, Request, Response
from gateway.log import Log
from gateway.settings import Settings

KEYS = "/api/config/api-keys"


class Site:
    """A gateway, and what is asked of it."""

    def __init__(self, gateway: Gateway, log: io.StringIO) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)
        self.log = log

    async def ask(self, method: str, target: str, body: object = None, *, key: str = "", **more: str) -> Any:
        """Return the JSON of the answer with its `status` and `headers`. more: headers, with _ for -."""
        response = await self.answer(method, target, body, key=key, **more)
        return json.loads(response.body) | {"status_code": response.status, "headers": dict(response.headers)}

    async def answer(self, method: str, target: str, body: object = None, *, key: str = "", **more: str) -> Response:
        """Return the answer as the server would send it."""
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= ({"x-service-key": key} if key else {}) | {
            name.replace("_", "-"): text for name, text in more.items()
        }
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, Headers(fields), raw, "127.0.0.1", False, 0.0)
        return await self.dispatch.handle(request)

    async def get(self, target: str) -> Any:
        """Return the `data` of an answer that must be good."""
        answer = await self.ask("GET", target)
        assert answer["status_code"] == 200, answer
        return answer["data"]

    async def key(self, *scopes: str, **fields: object) -> str:
        """Make an API key."""
        answer = await self.ask("POST", KEYS, {"name": "ci", "scopes": list(scopes), **fields})
        assert answer["status_code"] == 201, answer
        return str(answer["data"]["key"])

    async def chat(self, key: str, text: str = "hello", *, agent: str = "", **fields: object) -> Any:
        """Complete a chat."""
        body = {"model": "echo", "messages": [{"role": "user", "content": text}], **fields}
        more = {"x_service_agent": agent} if agent else {}
        return await self.ask("POST", "/api/v1/chat/completions", body, key=key, **more)

    async def settled(self) -> None:
        """Wait until what was queued to be written is written."""
        await self.gateway.store.db.write(lambda tx: None)


@asynccontextmanager
async def open_site(**settings: Any) -> AsyncGenerator[Site, None]:
    """Yield a gateway that keeps nothing."""
    log = io.StringIO()
    config = Settings(**({"data_dir": ":memory:", "rbac_enabled": False} | settings))
    async with open_gateway(config, log=Log(log, Clock())) as gateway:
        yield Site(gateway, log)
