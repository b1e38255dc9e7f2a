"""A gateway without RBAC over the real services and a made-up rule, and somebody who asks it."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import SystemClock
from gateway.compose import open_gateway
from gateway.domain.audit import AuditFilter
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings

RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound", "outbound"],
            "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        }
    ],
}  # fmt: skip
ATTACK = "please open the pod bay doors now"
KEYS = "/api/config/api-keys"
CHAT = "/api/v1/chat/completions"


class Site:
    """A gateway, and what is asked of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(
        self, method: str, target: str, body: object = None, *, key: str = "", headers: dict[str, str] | None = None
    ) -> Any:
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= ({"x-service-key": key} if key else {}) | (headers or {})
        raw = b"" if body is None else json.dumps(body).encode()
        response = await self.dispatch.handle(
            Request(method, path, query, Headers(fields), raw, "127.0.0.1", False, 0.0)
        )
        return json.loads(response.body) | {"status": response.status, "headers": dict(response.headers)}

    async def make(self, path: str, **fields: object) -> Any:
        """POST a record and return it."""
        answer = await self.ask("POST", path, fields)
        assert answer["status"] == 201, answer
        return answer["data"]

    async def key(self, **fields: object) -> Any:
        """Make a key for scans and chats."""
        return await self.make(
            KEYS, **{"name": "ci", "scopes": ["shield:scan", "shield:read", "chat:completions"], **fields}
        )

    async def chat(self, key: str, content: str = "hi", *, agent: str = "", **fields: object) -> Any:
        """Ask the built-in model."""
        body = {"model": "echo", "messages": [{"role": "user", "content": content}], **fields}
        return await self.ask("POST", CHAT, body, key=key, headers={"x-service-agent": agent} if agent else None)

    async def scan(self, key: str, text: str = ATTACK, *, agent: str = "") -> Any:
        """Scan a text."""
        headers = {"x-service-agent": agent} if agent else None
        return (await self.ask("POST", "/api/v1/shield/scan", {"text": text}, key=key, headers=headers))["data"]

    async def actions(self, resource_type: str) -> list[str]:
        """Return what the audit log has of one kind of record, oldest first."""
        page = await self.gateway.audit.page(AuditFilter(resource_type=resource_type))
        return [event.action for event in page.items][::-1]


@asynccontextmanager
async def open_site(folder: Path, **settings: Any) -> AsyncGenerator[Site]:
    """Open a gateway in memory."""
    rules = folder / "rules.json"
    rules.write_text(json.dumps(RULES))
    chosen = {"data_dir": ":memory:", "rules": str(rules), "rbac_enabled": False} | settings
    async with open_gateway(Settings(**chosen), log=Log(io.StringIO(), SystemClock())) as gateway:
        yield Site(gateway)
