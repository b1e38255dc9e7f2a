"""What every test may use: the one anyio backend, and rules that are planned ahead as in the archive."""

import pytest

import build_zipapp


@pytest.fixture(scope="session", autouse=True)
def _planned_rules() -> None:
    build_zipapp.plan_rules()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
