"""The state of each service, from what was seen last."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.errors import GatewayError, UpstreamUnavailable
from gateway.llm.base import Prompt, Reply, UpstreamRefused
from gateway.services.health import Health, WatchedUpstream
from gateway.shield import Shield
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store

PROMPT = Prompt("m", {})
REFUSED = UpstreamRefused(400, "no")


@dataclass
class ScriptedUpstream:
    """Fails with what it is told to."""

    fault: GatewayError | None = None

    async def complete(self, prompt: Prompt, *, traceparent: str | None = None) -> Reply:
        if self.fault:
            raise self.fault
        return Reply({"traceparent": traceparent})

    async def models(self) -> tuple[Mapping[str, object], ...]:
        if self.fault:
            raise self.fault
        return ({"id": "m"},)


def health(
    *, rules: tuple[str, ...] = ("a",), fault: Exception | None = None, upstream: Any = None, is_writable: bool = True
) -> Health:
    def read_now(work: Any) -> None:
        if fault:
            raise fault

    store = SimpleNamespace(db=SimpleNamespace(read_now=read_now, is_writable=is_writable, write_behind=lambda _: None))
    shield = SimpleNamespace(rules=rules)
    return Health(shield=cast(Shield, shield), store=cast(Store, store), upstream=upstream)


def test_all_is_well_without_an_upstream() -> None:
    assert health().checks() == {"shield": "healthy", "database": "healthy", "upstream": "not_configured"}


def test_a_shield_without_rules_is_unavailable() -> None:
    assert health(rules=()).checks()["shield"] == "unavailable"


def test_a_database_that_cannot_be_read_is_unavailable() -> None:
    assert health(fault=StoreUnavailable("gone")).checks()["database"] == "unavailable"


def test_a_database_that_cannot_be_written_is_unavailable() -> None:
    assert health(is_writable=False).checks()["database"] == "unavailable"


def test_an_upstream_that_was_never_asked_is_unknown() -> None:
    assert health(upstream=WatchedUpstream(ScriptedUpstream())).checks()["upstream"] == "unknown"


@pytest.mark.parametrize(
    ("fault", "state"), [(None, "healthy"), (UpstreamUnavailable("gone"), "unreachable"), (REFUSED, "healthy")]
)
async def test_the_last_completion_tells_how_the_upstream_is(fault: GatewayError | None, state: str) -> None:
    upstream = WatchedUpstream(ScriptedUpstream(fault))
    if fault is None:
        assert (await upstream.complete(PROMPT, traceparent="t")).body == {"traceparent": "t"}
    else:
        with pytest.raises(type(fault)):
            await upstream.complete(PROMPT)
    assert health(upstream=upstream).checks()["upstream"] == state


async def test_an_upstream_that_comes_back_is_healthy_again() -> None:
    scripted = ScriptedUpstream(UpstreamUnavailable("gone"))
    upstream = WatchedUpstream(scripted)
    with pytest.raises(UpstreamUnavailable):
        await upstream.models()
    assert upstream.state == "unreachable"
    scripted.fault = None
    assert await upstream.models() == ({"id": "m"},)
    assert upstream.state == "healthy"
