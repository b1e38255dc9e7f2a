"""The first credentials: once, and never too few to manage the gateway."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.principals import Caller, RequestContext, Role, local
from gateway.domain.users import NewUser
from gateway.errors import AuditUnavailable, SetupError
from gateway.log import Log
from gateway.services.first_start import FILE, RESERVED, discard, publish
from gateway.settings import Settings
from gateway.store.audit import AuditRepository
from gateway.store.database import StoreUnavailable

CONTEXT = RequestContext(request_id="req_1")
PASSWORD = "correct horse battery staple"


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with open_gateway(Settings(data_dir=":memory:"), log=Log(io.StringIO(), Clock())) as one:
        yield one


async def test_an_admin_and_a_key_are_made_once(gateway: Gateway) -> None:
    first = await gateway.first_start.make()
    assert first is not None
    assert (await gateway.authentication.authenticate(first.api_key, CONTEXT)).name == "first key"
    assert [(user.username, user.role) for user in await gateway.users.list()] == [("admin", Role.ADMIN)]
    assert await gateway.first_start.make() is None


async def test_a_user_without_the_role_does_not_keep_an_admin_from_being_made(gateway: Gateway) -> None:
    who = local("cli")
    await gateway.users.create(Caller(who, CONTEXT), NewUser(username="Admin", password=PASSWORD, role=Role.VIEWER))
    first = await gateway.first_start.make()
    assert first is not None and first.username == "admin-2"
    assert {user.username: user.role for user in await gateway.users.list()} == {
        "Admin": Role.VIEWER, "admin-2": Role.ADMIN,
    }  # fmt: skip


async def test_an_admin_made_on_the_command_line_is_enough(gateway: Gateway) -> None:
    await gateway.users.create(
        Caller(local("cli"), CONTEXT), NewUser(username="ann", password=PASSWORD, role=Role.ADMIN)
    )
    assert await gateway.first_start.make() is None
    assert await gateway.keys.list() == ()


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Gateway]:
    async with open_gateway(Settings(data_dir=str(folder)), log=Log(io.StringIO(), Clock())) as one:
        yield one


async def is_empty(gateway: Gateway) -> bool:
    return not await gateway.keys.list() and not await gateway.users.list()


async def fits(gateway: Gateway, folder: Path) -> bool:
    """Tell whether the file holds credentials that this database takes."""
    told = dict(line.split(": ") for line in (folder / FILE).read_text().splitlines())
    await gateway.authentication.authenticate(told["api_key"], CONTEXT)
    begun: Any = await gateway.signin.begin(told["username"], told["password"], CONTEXT)
    return (folder / FILE).stat().st_mode & 0o777 == 0o600 and begun.signed_in.user.role is Role.ADMIN


async def test_a_file_of_another_database_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("username: old")
    async with opened(tmp_path) as gateway:
        with pytest.raises(SetupError, match="move it away"):
            await gateway.first_start.make(str(tmp_path))
        assert await is_empty(gateway)
        (tmp_path / FILE).unlink()
        assert await gateway.first_start.make(str(tmp_path))
        publish(str(tmp_path))
        assert await fits(gateway, tmp_path)


async def test_credentials_that_cannot_be_written_are_not_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        (tmp_path / RESERVED).mkdir()
        with pytest.raises(SetupError, match="Nothing was changed"):
            await gateway.first_start.make(str(tmp_path))
        assert await is_empty(gateway)


async def test_credentials_that_were_not_committed_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: AuditRepository, tx: Any, event: Any) -> Any:
        raise StoreUnavailable("The disk is full.")

    async with opened(tmp_path) as gateway:
        with monkeypatch.context() as patched:
            patched.setattr(AuditRepository, "append", full)
            with pytest.raises(AuditUnavailable):
                await gateway.first_start.make(str(tmp_path))
        assert await is_empty(gateway) and not (tmp_path / FILE).exists()
        assert await gateway.first_start.make(str(tmp_path))
        publish(str(tmp_path))
        assert await fits(gateway, tmp_path) and not (tmp_path / RESERVED).exists()


async def test_credentials_that_were_committed_and_not_named_are_named_by_the_next_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        first = await gateway.first_start.make(str(tmp_path))
    assert first is not None and not (tmp_path / FILE).exists()
    async with opened(tmp_path) as gateway:
        again = await gateway.first_start.make(str(tmp_path))
        assert again == first
        publish(str(tmp_path))
        assert await fits(gateway, tmp_path)
        assert await gateway.first_start.make(str(tmp_path)) is None
        assert (tmp_path / FILE).exists()


async def test_a_start_that_was_killed_between_the_two_names_is_finished_by_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        assert await gateway.first_start.make(str(tmp_path))
        os.link(tmp_path / RESERVED, tmp_path / FILE)
        publish(str(tmp_path))
        assert not (tmp_path / RESERVED).exists()
        assert await fits(gateway, tmp_path)


async def test_what_was_shown_on_a_terminal_is_nowhere(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        assert await gateway.first_start.make(str(tmp_path))
        discard(str(tmp_path))
        assert await gateway.first_start.make(str(tmp_path)) is None
        assert not [name for name in os.listdir(tmp_path) if name.startswith(FILE)]


@pytest.mark.sqlite
async def test_a_start_that_is_killed_at_any_time_leaves_the_next_one_with_credentials_that_fit(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--data-dir", str(tmp_path)]
    for number in range(6):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)  # noqa: ASYNC220
        before = set(os.listdir(tmp_path))
        end_seconds = time.monotonic() + 20
        # Later each time: as soon as there is one file more, then two, and so on.
        while len(set(os.listdir(tmp_path)) - before) <= number and time.monotonic() < end_seconds:
            if (tmp_path / FILE).exists():
                break
            time.sleep(0.001)  # noqa: ASYNC251
        process.send_signal(signal.SIGKILL)
        process.wait()
    async with opened(tmp_path) as gateway:
        if await gateway.first_start.make(str(tmp_path)):
            publish(str(tmp_path))
        assert await fits(gateway, tmp_path)
        assert len(await gateway.users.list()) == len(await gateway.keys.list()) == 1
