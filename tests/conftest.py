"""Fixtures of every test: the one anyio backend, and rules that are planned ahead as in the archive."""

import functools
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, settings
from postgres_server import PostgresServer, find_programs, served
from running import one_at_a_time

import build_zipapp
from gateway import shield
from gateway.auth import passwords
from gateway.clock import Clock
from gateway.log import Log
from gateway.shield import runner
from gateway.store import store as stores
from gateway.store.postgres import PostgresDatabase
from gateway.store.postgres_address import Address
from gateway.store.sqlite import MEMORY

PASSWORD_N = passwords._N
TESTS = Path(__file__).parent
# Folders whose tests never load the real rules: they need not wait for the plans after a change of the shield.
WITHOUT_RULES = {"auth", "domain", "house", "http"}

# A shell starts background jobs with SIGINT ignored, and children inherit that. A handled signal has its default action
# again in a child, so every program that a test starts can be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same texts in each run, and none is a fault because the host was busy with something else meanwhile.
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Plan the rules, as an archive has them, when a test of this run may load them."""
    folders = {item.path.relative_to(TESTS).parts[0] for item in session.items}
    if not session.config.option.collectonly and folders - WITHOUT_RULES:
        with one_at_a_time(build_zipapp.HERE / "build" / "plans.lock"):
            build_zipapp.plan_rules()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `-n`, run a file in one process, so that its tests share what they start. Files keep their order."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _shared_regexes() -> Iterator[None]:
    """Compile a rule's regex once for all shields of the tests: most of their time would go there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "compile_regex", functools.cache(runner.compile_regex))
        yield


@pytest.fixture(scope="session", autouse=True)
def _shared_shields() -> Iterator[None]:
    """Load each text of rules once: a shield keeps no state, and loading takes longer than most tests."""
    load, loaded = shield.load, {}

    def load_once(path: str | os.PathLike[str] | None = None, extra: Sequence[str] = ()) -> shield.Shield:
        if extra:
            return load(path, extra)
        text = Path(path).read_bytes() if path is not None and os.path.isfile(path) else None
        if path is not None and text is None:
            return load(path)
        if text not in loaded:
            loaded[text] = load(path)
        return loaded[text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shield, "load", load_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> Iterator[None]:
    """Hash passwords in a fortieth of the time. In a process of its own the gateway takes all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_N", PASSWORD_N // 32)
        yield


@pytest.fixture
def slow_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords as the gateway does."""
    monkeypatch.setattr(passwords, "_N", PASSWORD_N)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres", action="store_true", help="open every store on PostgreSQL; leaves out tests of files"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that look into a SQLite file, where there is none."""
    if config.option.postgres:
        out = [item for item in items if item.get_closest_marker("sqlite")]
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


@pytest.fixture(scope="session", autouse=True)
def _on_postgres(request: pytest.FixtureRequest) -> Iterator[None]:
    """With `--postgres`, every path of a database stands for a database of the server, and memory for a new one."""
    if not request.config.option.postgres:
        yield
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made: dict[str, str] = {}
    clock = Clock()
    like = server.new_database()  # with its tables, since to make them takes longer than most tests

    async def make_tables() -> None:
        db = await stores.open_database("", clock=clock, log=Log(sys.stderr, clock), address=Address.parse(like))
        await db.aclose()

    anyio.run(make_tables)

    class OfOneHost(PostgresDatabase):
        """It keeps the time of the test, whose data folder is the only one."""

        is_shared = False

    def open_on_server(path: str, *, clock: Clock, log: Log, identity: object = None) -> PostgresDatabase:
        if path == MEMORY or path not in made:
            url = server.new_database(like.rpartition("/")[2])
            if path != MEMORY:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                made[path] = url
        else:
            url = made[path]
        db = OfOneHost(Address.parse(url), log=log)
        db._now_at = lambda run: clock.now_at()  # type: ignore[method-assign]
        return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "SqliteDatabase", open_on_server)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that answers, one for all tests of a process."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: neither PATH nor /usr/lib/postgresql has initdb, postgres and psql")
    with served(programs) as server:
        yield server
