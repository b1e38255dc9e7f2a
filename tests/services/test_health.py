"""The state of each service, from what was seen last."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.services.health import Health
from gateway.shield import Shield
from gateway.store.database import StoreUnavailable
from gateway.store.store import Store


class FakeClock:
    """Time that moves when it is told to."""

    seconds = 100.0

    def now_at(self) -> int:
        return int(self.seconds * 1000)

    def now_ns(self) -> int:
        return self.now_at() * 1_000_000

    def monotonic_seconds(self) -> float:
        return self.seconds


def health(
    *, rules: tuple[str, ...] = ("a",), fault: Exception | None = None, upstream: Any = None, is_writable: bool = True
) -> Health:
    async def read(work: Any, **how: bool) -> None:
        if fault:
            raise fault

    store = SimpleNamespace(db=SimpleNamespace(read=read, is_writable=is_writable, write_behind=lambda _: None))
    shield = SimpleNamespace(rules=rules)
    return Health(shield=cast(Shield, shield), store=cast(Store, store), upstream=upstream)


async def test_all_is_well_without_an_upstream() -> None:
    assert await health().checks() == {"shield": "healthy", "database": "healthy", "upstream": "not_configured"}


async def test_a_shield_without_rules_is_unavailable() -> None:
    assert (await health(rules=()).checks())["shield"] == "unavailable"


async def test_a_database_that_cannot_be_read_is_unavailable() -> None:
    assert (await health(fault=StoreUnavailable("gone")).checks())["database"] == "unavailable"


async def test_a_database_that_cannot_be_written_is_unavailable() -> None:
    assert (await health(is_writable=False).checks())["database"] == "unavailable"


@pytest.mark.parametrize("state", ["healthy", "unknown", "degraded", "unreachable"])
async def test_the_upstream_is_as_the_providers_say(state: str) -> None:
    assert (await health(upstream=lambda: state).checks())["upstream"] == state
