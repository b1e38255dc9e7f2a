"""Every operation of the internal API, whichever there are, against every role, no session, a wrong token, another site."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from open_site import Site, open_site, sign_in

from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS
from gateway.operations.operation import Door, Operation
from gateway.schema import json_schema

# What a signed-in user may ask whatever the role: about oneself. The feed leaves out what the role may not read.
OF_ONESELF = {"auth.login", "auth.session", "auth.logout", "auth.password", "feed"}
# Asked by POST since they take a text, and change nothing.
READING_POSTS = {"shield.try", "shield.rehearse", "shield.rules.try"}
WITH_SESSION = [row for row in INTERNAL_OPERATIONS if row.door is Door.SESSION]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, rbac_enabled=True) as one:
        yield one


def asked(row: Operation) -> tuple[str, str, object]:
    """Return method, path and body of a request that would do no harm."""
    return row.route[0], re.sub(r"\{\w+\}", "nothing", row.route[1]), None if row.route[0] == "GET" else {}


def test_every_row_of_the_internal_api_names_a_permission_or_is_about_oneself() -> None:
    assert {row.name for row in INTERNAL_OPERATIONS if row.needs is None} <= OF_ONESELF
    for row in INTERNAL_OPERATIONS:
        assert row.door.is_internal or row.door is Door.OPEN, row.name
        assert re.match("/api/(?!v[0-9])", row.route[1]), row.name
        if row.needs is not None:
            assert isinstance(row.needs, Permission)
            changes = row.route[0] != "GET" and row.name not in READING_POSTS
            assert row.needs.endswith(":manage" if changes else ":read"), row.name


def test_names_and_routes_are_unique_over_both_apis() -> None:
    rows = PUBLIC_OPERATIONS + INTERNAL_OPERATIONS
    assert len({row.name for row in rows}) == len({row.route for row in rows}) == len(rows)


@pytest.mark.parametrize("role", Role)
async def test_each_role_may_do_what_the_table_says_and_nothing_else(site: Site, role: Role) -> None:
    for row in WITH_SESSION:
        person = await sign_in(site, role)
        answer = await person.ask(*asked(row))
        if row.needs is None or row.needs in ROLE_PERMISSIONS[role]:
            assert answer["status"] not in (401, 403), (row.name, answer)
            assert answer["status"] < 500, (row.name, answer)
        else:
            assert (answer["status"], answer["error"]["code"]) == (403, "permission_denied"), row.name


async def test_nobody_comes_in_without_a_session(site: Site) -> None:
    person = await sign_in(site, Role.ADMIN)
    stolen = {"cookie": "service_session=" + "A" * 43, "x-csrf-token": person.csrf}
    key = (await person.ask("POST", "/api/config/api-keys", {"name": "x", "scopes": ["shield:scan"]}))["data"]["key"]
    for row in WITH_SESSION:
        for headers in ({}, stolen, {"x-service-key": key}, {"authorization": f"Bearer {key}"}):
            answer = await site.ask(*asked(row), headers=headers)
            assert (answer["status"], answer["error"]["code"]) == (401, "not_signed_in"), (row.name, headers)


async def test_nobody_comes_in_from_another_site_or_without_the_token(site: Site) -> None:
    person, other = await sign_in(site, Role.ADMIN), await sign_in(site, Role.VIEWER)
    from_elsewhere = (
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.test"},
        {"origin": "null"},
    )  # fmt: skip
    tokens = ("x" * 64, "", person.csrf[:-1], person.csrf.upper(), other.csrf)
    for row in WITH_SESSION:
        wrong: list[dict[str, str]] = [*from_elsewhere]
        if row.route[0] != "GET":
            wrong += [{"x-csrf-token": token} for token in tokens]
        for headers in wrong:
            answer = await person.ask(*asked(row), **headers)
            assert (answer["status"], answer["error"]["code"]) == (403, "csrf_failed"), (row.name, headers)
        if row.route[0] != "GET":
            answer = await site.ask(*asked(row), headers={"cookie": person.cookie})
            assert (answer["status"], answer["error"]["code"]) == (403, "csrf_failed"), row.name
    assert (await person.ask("GET", "/api/auth/session"))["status"] == 200, "nothing of it was done"


async def test_without_rbac_nobody_but_this_host_comes_in(tmp_path: Path) -> None:
    refused = (
        ("192.0.2.1", {}, 403, "access_denied"),
        ("", {}, 403, "access_denied"),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.1"}, 403, "access_denied"),
        ("127.0.0.1", {"forwarded": "for=192.0.2.1"}, 403, "access_denied"),
        ("127.0.0.1", {"host": "evil.test"}, 403, "access_denied"),
        ("127.0.0.1", {"host": "127.0.0.1.evil.test:5001"}, 403, "access_denied"),
        ("127.0.0.1", {"host": ""}, 403, "access_denied"),
        ("127.0.0.1", {"origin": "http://evil.test"}, 403, "access_denied"),
        ("127.0.0.1", {"origin": "null"}, 403, "access_denied"),
        ("127.0.0.1", {"origin": "http://localhost:3000"}, 403, "csrf_failed"),
        ("127.0.0.1", {"sec-fetch-site": "cross-site"}, 403, "csrf_failed"),
    )
    async with open_site(tmp_path) as site:
        for row in INTERNAL_OPERATIONS:
            for peer, headers, status, code in refused:
                answer = await site.ask(*asked(row), peer=peer, headers=headers)
                assert (answer["status"], answer["error"]["code"]) == (status, code), (row.name, peer, headers)


async def test_null_is_taken_for_whatever_may_be_left_out(tmp_path: Path) -> None:
    """A record that was read can be sent again: null says the same as leaving it out, or that there is none."""
    async with open_site(tmp_path) as site:
        for row in [*WITH_SESSION, *PUBLIC_OPERATIONS]:
            if row.takes is None or row.route[0] in ("GET", "DELETE"):
                continue
            schema = json_schema(row.takes)
            properties, required = schema["properties"], schema["required"]
            assert isinstance(properties, dict) and isinstance(required, list)
            for name in properties.keys() - set(required) - {"id"}:
                method, path, _ = asked(row)
                answer, without = await site.ask(method, path, {name: None}), await site.ask(method, path, {})
                if answer["status"] == 400 and answer["error"]["param"] == name:
                    assert without["error"]["param"] == name, (row.name, answer["error"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/config/api-keys", {"name": "n", "scopes": ["shield:scan"]}),
        ("/api/access", {"list": "deny", "type": "DOMAIN", "value": "evil.example"}),
        ("/api/providers", {"name": "n", "type": "echo"}),
        ("/api/budgets", {"limit": 5}),
        ("/api/policies", {"name": "n"}),
        ("/api/agents", {"name": "n"}),
        ("/api/event-outputs", {"name": "n", "kind": "syslog", "target": "udp://127.0.0.1:9", "allow_private": True}),
        ("/api/report-schedules", {"type": "access_review", "every": "week"}),
    ],
)
async def test_null_makes_the_same_record_as_leaving_it_out(path: str, body: dict[str, object], tmp_path: Path) -> None:
    row = next(row for row in INTERNAL_OPERATIONS if row.route == ("POST", path))
    assert row.takes is not None
    properties = json_schema(row.takes)["properties"]
    assert isinstance(properties, dict)
    nulls = dict.fromkeys(properties.keys() - body.keys(), None)
    made = []
    for number, sent in enumerate((body, nulls | body)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with open_site(folder) as site:
            answer = await site.ask("POST", path, sent)
            assert answer["status"] == 201, answer
            made.append(answer["data"])
    assert [name for name in made[0] if name not in made[1]] == []
    for name in {"rate_limit", "scope", "unit", "window", "status", "type", "priority", "soft_pct", "mode"} & made[
        0
    ].keys():
        assert made[0][name] == made[1][name], name
