"""Fixtures of every test: the one anyio backend, and rules that are planned ahead as in the archive."""

import functools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import build_zipapp
from gateway import shield
from gateway.shield import matcher

# The same texts in each run, and none is a fault because the host was busy with something else meanwhile.
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _planned_rules() -> None:
    build_zipapp.plan_rules()


@pytest.fixture(scope="session", autouse=True)
def _shared_regexes() -> Iterator[None]:
    """Compile a rule's regex once for all shields of the tests: most of their time would go there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher, "compile_regex", functools.cache(matcher.compile_regex))
        yield


@pytest.fixture(scope="session", autouse=True)
def _shared_shield() -> Iterator[None]:
    """Load the built-in rules once: a shield keeps no state, and loading takes longer than most tests."""
    load = shield.load
    built_in = functools.cache(load)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shield, "load", lambda path=None: built_in() if path is None else load(path))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
