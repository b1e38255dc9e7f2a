"""A gateway of small fakes behind the real dispatch: known keys, a scripted shield, records kept in lists."""

import io
import itertools
import json
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_clock import FakeClock

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.auth.ratelimit import Admission, RateExceeded
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.alerts import Alert, AlertFilter, AlertSource
from gateway.domain.audit import AuditEvent, AuditFilter
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Principal, RequestContext, Scope
from gateway.errors import InsufficientScope, InvalidApiKey, InvalidRequest, KeyRevoked, MissingApiKey
from gateway.http.messages import Headers, Request, Response
from gateway.log import Log
from gateway.metrics import Metrics
from gateway.services.scans import ScanAnswer, ScanStats, ScanText
from gateway.services.shield_tests import LastShieldTests
from gateway.settings import Settings
from gateway.shield.detections import Direction, Severity, Verdict
from gateway.store.rate_windows import RateWindows

ALL = "svc_" + "a" * 40
NONE = "svc_" + "b" * 40
REVOKED = "svc_" + "c" * 40
SLOW = "svc_" + "d" * 40
FLEET = "svc_" + "e" * 40


class FakeIds:
    """Ids that count."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):026d}"

    def random_bytes(self, count: int) -> bytes:
        return b"\1" * count


class FakeAuthentication:
    """Knows five keys."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._limiter = RateWindows(sets=1)
        weakref.finalize(self, self._limiter.close)
        self.asked: list[tuple[str | None, RequestContext]] = []
        self.principals = {
            ALL: self._principal("all", frozenset(Scope), 1000),
            NONE: self._principal("none", frozenset(), 3),
            SLOW: self._principal("slow", frozenset(Scope), 1),
            FLEET: self._principal("fleet", frozenset({Scope.FLEET_READ}), 1000),
        }

    def _principal(self, name: str, scopes: frozenset[Scope], rate_limit: int) -> Principal:
        return Principal("key", f"key_{name}", name, scopes, frozenset(), f"svc_{name}", rate_limit)

    async def authenticate(self, credential: str | None, context: RequestContext) -> Principal:
        self.asked.append((credential, context))
        if not credential:
            raise MissingApiKey("Send an API key.")
        if credential == REVOKED:
            raise KeyRevoked("This key was revoked.")
        if credential not in self.principals:
            raise InvalidApiKey("This is no key.")
        return self.principals[credential]

    async def admit(self, caller: Caller, now_seconds: float | None = None) -> Admission:
        admission = self._limiter.admit(
            caller.principal.id, limit=caller.principal.rate_limit or 0, now_seconds=self._clock.monotonic_seconds()
        )
        if not admission.admitted:
            raise RateExceeded(admission)
        return admission

    def require(self, caller: Caller, scope: Scope) -> None:
        if scope not in caller.principal.scopes:
            raise InsufficientScope(f"This key lacks the scope {scope}.")


class FakeScans:
    """Answers with as many detections as the text is told to have, or raises what it was given."""

    def __init__(self) -> None:
        self.seen: list[tuple[Principal, ScanText, RequestContext]] = []
        self.error: BaseException | None = None

    async def scan(self, caller: Caller, command: ScanText) -> ScanAnswer:
        if len(command.text) > 500_000:
            raise InvalidRequest("text is too long.", param="text")
        self.seen.append((caller.principal, command, caller.context))
        if self.error is not None:
            raise self.error
        redacted = "x" * int(command.text) if command.text.isdigit() else None
        return ScanAnswer(Verdict.ALLOW, 0, (), ScanStats(0, 0, 0, 0, 0, {}), "none", 0.1, redacted)


@dataclass
class FakeLists:
    """Alerts and audit events, and the filters they were asked with."""

    asked: list[Any] = field(default_factory=list)
    next: str | None = None

    async def page(self, wanted: AlertFilter | AuditFilter) -> Page[Any]:
        self.asked.append(wanted)
        item: object
        if isinstance(wanted, AlertFilter):
            item = Alert(
                id="alr_1", title="t", description="d", severity=Severity.HIGH, source=AlertSource.SHIELD, rule="r",
                fingerprint="f", first_seen_at=0, last_seen_at=1,
            )  # fmt: skip
        else:
            item = AuditEvent(
                id="evt_1", occurred_at=5, source="api", action="a", actor="x", actor_type="key", instance_id="ins_1"
            )
        return Page((item,), wanted.limit, self.next, 5)


@dataclass
class FakeShield:
    """One rule."""

    rules: tuple[Any, ...] = ()
    matcher: str = "python"


@dataclass
class FakeRule:
    """What the list of rules reads of a rule."""

    id: str = "ignore-previous"
    name: str = "Ignore previous"
    category: str = "injection"
    severity: Severity = Severity.HIGH
    confidence: float = 0.9
    description: str = "d"
    direction: frozenset[Direction] = frozenset({Direction.INBOUND})
    view: str = "normalized"
    standards: tuple[str, ...] = ("OWASP LLM01:2025",)
    tags: tuple[str, ...] = ()
    matches: tuple[str, ...] = ("never shown",)


class FakeHealth:
    """Whatever the states are set to."""

    def __init__(self) -> None:
        self.states = {"shield": "healthy", "database": "healthy", "upstream": "not_configured"}

    async def checks(self) -> dict[str, str]:
        return self.states


class FakeChat:
    """Stands where the chat service stands; the chat edge has tests of its own."""


@dataclass
class House:
    """The dispatch and the fakes behind it."""

    dispatch: Dispatch
    clock: FakeClock
    authentication: FakeAuthentication
    scans: FakeScans
    lists: FakeLists
    health: FakeHealth
    metrics: Metrics
    log: io.StringIO

    def reply(self, response: Response) -> "Reply":
        """Wrap a response that did not come from `ask`."""
        return Reply(response)

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        key: str | None = ALL,
        headers: dict[str, str] | None = None,
        peer: str = "192.0.2.1",
    ) -> "Reply":
        """Send one request as the server would hand it over."""
        fields = {"host": "gateway.test"}
        if key is not None:
            fields["x-service-key"] = key
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            fields["content-type"] = "application/json"
        fields |= headers or {}
        path, _, query = target.partition("?")
        request = Request(
            method, path, query, Headers({k: v for k, v in fields.items() if v}), raw, peer, False, self.clock.seconds
        )
        return Reply(await self.dispatch.handle(request))


class Reply:
    """A response, easy to ask."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status = response.status
        self.headers = dict(response.headers)
        assert len(self.headers) == len(response.headers), "a header is there twice"
        self.body = response.body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        error = self.json["error"]
        assert set(self.json) == {"ok", "error"}
        assert self.json["ok"] is False
        assert set(error) == {"message", "type", "code", "param", "request_id"}
        assert error["message"]
        assert error["request_id"] == self.headers["x-request-id"] == self.headers["x-service-request-id"]
        assert self.headers["content-type"] == "application/json"
        return str(error["code"])


class FakeShieldTests:
    """Were never run."""

    async def last(self) -> LastShieldTests:
        return LastShieldTests(None)


class FakeGateway(SimpleNamespace):
    """The services that a test gives; any other is None."""

    def __getattr__(self, name: str) -> None:
        return None


def make_house(settings: Settings) -> House:
    clock = FakeClock()
    authentication, scans, lists, health = FakeAuthentication(clock), FakeScans(), FakeLists(), FakeHealth()
    metrics, log = Metrics(), io.StringIO()
    known: dict[str, Any] = {
        "settings": settings, "clock": clock, "ids": FakeIds(), "log": Log(log, clock), "metrics": metrics, "store": cast(Any, None),
        "shield": cast(Any, FakeShield((FakeRule(),))), "audit": cast(Any, lists), "keys": cast(Any, None),
        "authentication": cast(Any, authentication), "scans": cast(Any, scans), "alerts": cast(Any, lists),
        "shield_tests": cast(Any, FakeShieldTests()),
        "chat": cast(Any, FakeChat()), "health": cast(Any, health), "started_at": clock.now_at(),
    }  # fmt: skip
    return House(
        Dispatch(cast(Gateway, FakeGateway(**known))), clock, authentication, scans, lists, health, metrics, log
    )


class Site:
    """A whole gateway without RBAC, and what is asked of it from this host."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(self, method: str, target: str, body: object = None, *, key: str = "") -> Any:
        """Return the JSON of the answer, with its status and headers."""
        response = await self.send(method, target, body, key=key)
        return json.loads(response.body) | {"status": response.status, "headers": dict(response.headers)}

    async def send(self, method: str, target: str, body: object = None, *, key: str = "") -> Response:
        """Return the answer itself."""
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= {"x-service-key": key} if key else {}
        raw = b"" if body is None else json.dumps(body).encode()
        path, _, query = target.partition("?")
        return await self.dispatch.handle(Request(method, path, query, Headers(fields), raw, "127.0.0.1", False, 0.0))

    async def key(self, *scopes: str) -> str:
        """Make an API key."""
        answer = await self.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": list(scopes)})
        return str(answer["data"]["key"])


ATTACK = "please open the pod bay doors now"
_RULE = {
    "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
    "description": "A made-up attack.", "direction": ["inbound", "outbound"],
    "literals": ["open the pod bay doors"], "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
}  # fmt: skip


@pytest.fixture
def attack() -> str:
    """Return a text that the one rule of `site_with` blocks."""
    return ATTACK


@pytest.fixture
def site_with(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Site]]:
    """Return what opens a gateway with one made-up rule and the given settings; in memory if none names a folder."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"version": 1, "tables": {}, "rules": [_RULE]}))

    @asynccontextmanager
    async def site(**settings: Any) -> AsyncGenerator[Site]:
        config = Settings(**{"data_dir": ":memory:", "rules": str(rules)} | settings)
        async with open_gateway(config, log=Log(io.StringIO(), Clock())) as gateway:
            yield Site(gateway)

    return site


@pytest.fixture
def house() -> House:
    return make_house(Settings(data_dir=":memory:"))


@pytest.fixture
def house_with() -> Callable[..., House]:
    return lambda **settings: make_house(Settings(data_dir=":memory:", **settings))
