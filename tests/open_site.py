"""A gateway over the real services and a made-up rule, and whoever asks it: anybody on this host, or people."""

import base64
import hashlib
import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeding import seed

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import Role
from gateway.domain.users import User
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
PASSWORD = "correct horse battery staple"
# As the real ones but for the work in it.
_DIGEST = hashlib.scrypt(PASSWORD.encode(), salt=bytes(16), n=1024, r=1, p=1, dklen=32)
_HASH = f"scrypt$1024$1$1${base64.b64encode(bytes(16)).decode()}${base64.b64encode(_DIGEST).decode()}"


class Site:
    """A gateway, and what is asked of it."""

    def __init__(self, gateway: Gateway, log: io.StringIO) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)
        self.log = log

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        key: str = "",
        headers: dict[str, str] | None = None,
        peer: str = "127.0.0.1",
    ) -> Any:
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= ({"x-service-key": key} if key else {}) | (headers or {})
        raw = b"" if body is None else json.dumps(body).encode()
        response = await self.dispatch.handle(Request(method, path, query, Headers(fields), raw, peer, False, 0.0))
        is_json = response.body and dict(response.headers).get("content-type") == "application/json"
        value = json.loads(response.body) if is_json else {"text": response.body.decode("utf-8", "replace")}
        return value | {"status": response.status, "headers": dict(response.headers)}

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


@dataclass
class Person:
    """Somebody with a session."""

    site: Site
    cookie: str
    csrf: str

    async def ask(self, method: str, target: str, body: object = None, **headers: str) -> Any:
        """Send a request as the dashboard would."""
        return await self.site.ask(
            method, target, body, headers={"cookie": self.cookie, "x-csrf-token": self.csrf} | headers
        )


async def sign_in(site: Site, role: Role) -> Person:
    """Sign in somebody of this role, made if need be."""
    store = site.gateway.store
    if await store.db.read(lambda tx: store.users.by_name(tx, role.value)) is None:
        user = User(site.gateway.ids.new("usr"), role.value, _HASH, role, 0, None)
        await seed(store, lambda tx: store.users.insert(tx, user))
    answer = await site.ask("POST", "/api/auth/login", {"username": role.value, "password": PASSWORD})
    assert answer["status"] == 200, answer
    return Person(site, answer["headers"]["set-cookie"].partition(";")[0], answer["data"]["csrf_token"])


@asynccontextmanager
async def open_site(folder: Path, **settings: Any) -> AsyncGenerator[Site]:
    """Open a gateway in memory."""
    rules = folder / "rules.json"
    rules.write_text(json.dumps(RULES))
    chosen = {"data_dir": ":memory:", "rules": str(rules), "rbac_enabled": False} | settings
    log = io.StringIO()
    async with open_gateway(Settings(**chosen), log=Log(log, Clock())) as gateway:
        yield Site(gateway, log)
