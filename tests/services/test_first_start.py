"""The first credentials: once, and never too few to manage the gateway."""

import io
from collections.abc import AsyncIterator

import pytest

from gateway.app import Gateway
from gateway.clock import SystemClock
from gateway.compose import open_gateway
from gateway.domain.principals import RequestContext, Role, local
from gateway.domain.users import NewUser
from gateway.log import Log
from gateway.settings import Settings

CONTEXT = RequestContext(request_id="req_1")
PASSWORD = "correct horse battery staple"


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with open_gateway(Settings(data_dir=":memory:"), log=Log(io.StringIO(), SystemClock())) as one:
        yield one


async def test_an_admin_and_a_key_are_made_once(gateway: Gateway) -> None:
    first = await gateway.first_start.make()
    assert first is not None
    assert (await gateway.authentication.authenticate(first.api_key, CONTEXT)).name == "first key"
    assert [(user.username, user.role) for user in await gateway.users.list()] == [("admin", Role.ADMIN)]
    assert await gateway.first_start.make() is None


async def test_a_user_without_the_role_does_not_keep_an_admin_from_being_made(gateway: Gateway) -> None:
    who = local("cli")
    await gateway.users.create(who, NewUser(username="Admin", password=PASSWORD, role=Role.VIEWER), CONTEXT)
    first = await gateway.first_start.make()
    assert first is not None and first.username == "admin-2"
    assert {user.username: user.role for user in await gateway.users.list()} == {
        "Admin": Role.VIEWER, "admin-2": Role.ADMIN,
    }  # fmt: skip


async def test_an_admin_made_on_the_command_line_is_enough(gateway: Gateway) -> None:
    await gateway.users.create(local("cli"), NewUser(username="ann", password=PASSWORD, role=Role.ADMIN), CONTEXT)
    assert await gateway.first_start.make() is None
    assert await gateway.keys.list() == ()
