"""What the OpenAPI document promises is kept: no body that fits its schema is refused for its form."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from open_site import Site, open_site
from schema_values import Schema, drawn

from gateway.api.openapi import document
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS
from gateway.operations.operation import Operation
from gateway.settings import Settings

pytestmark = pytest.mark.slow

DOCUMENT: Any = json.loads(json.dumps(document(PUBLIC_OPERATIONS + INTERNAL_OPERATIONS, Settings(data_dir=":memory:"))))
# What a body would have to know: a password, and a model that is asked for whatever the body says.
ASIDE = {"auth.login", "auth.password", "chat.completions"}
ROWS = [row for row in PUBLIC_OPERATIONS + INTERNAL_OPERATIONS if row.name not in ASIDE]
# The form is right, and something stands against it: another field, what is stored, a setting.
MAY_BE = {200, 201, 202, 404, 409, 503}
# Their bodies name a rule or incidents, which no schema knows.
NEVER_THERE = {
    "incidents.change",
    "shield.rules.create",
    "shield.rules.edit",
    "shield.rules.try",
    "shield.rules.replay",
    "shield.rules.change",
    "risk_acceptances.create",
}
# What no schema can tell: that a key belongs to the origin it was given for, and which rules there are.
NOT_OF_FORM = (("providers.change", 400, "api_key"), ("risk_acceptances.create", 400, "rule"))
# A password is hashed with all the work it is to take, and a run of the tests tries all rules.
COUNTS = {"users.create": 8, "users.change": 8, "shield.tests.run": 8}


def _is_of_rule_file(name: str, status: int, param: str | None) -> bool:
    """Tell whether a rule was refused: its form is that of rule files, which have a reader of their own."""
    return name.startswith("shield.rules.") and status == 400 and (param or "").startswith("rule.")


def described(row: Operation) -> Any:
    return DOCUMENT["paths"][row.route[1]][row.route[0].lower()]


def body_of(row: Operation) -> Schema | None:
    asked = described(row).get("requestBody")
    return asked and asked["content"]["application/json"]["schema"]


WITH_BODY = [row for row in ROWS if body_of(row)]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, provider_key_env=("*",), provider_key_dirs=("/",)) as one:
        yield one


async def made(site: Site, row: Operation) -> str:
    """Return the path of a row about one record, of one that is there if such a one can be made."""
    path = row.route[1]
    if "{" not in path:
        return path
    collection = path.partition("/{")[0]
    seen = {"/api/harmless": "/api/alerts"}.get(collection, collection)
    if seen in ("/api/alerts", "/api/incidents", "/api/traffic"):
        await site.scan((await site.key())["key"])
        return path.replace("{id}", (await site.ask("GET", seen))["data"][0]["id"])
    if collection == "/api/shield/rules":
        rule = {
            "id": "local:promise", "name": "Promise", "category": "injection", "severity": "high", "confidence": 0.9,
            "description": "A made-up one.", "direction": ["inbound"], "literals": ["open the garage"],
            "match": ["open the garage"], "pass": ["close the garage"],
        }  # fmt: skip
        made = await site.ask("POST", collection, {"rule": rule, "reason": "a trial"})
        assert made["status"] == 201, made
        return path.replace("{id}", rule["id"])
    if collection == "/api/risk-acceptances":
        wanted = {"scope": "rule", "rule": "say-please", "reason": "a trial", "until": "7d"}
        answer = await site.ask("POST", collection, wanted)
        return path.replace("{id}", answer["data"]["id"])
    maker = next((one for one in WITH_BODY if one.route == ("POST", collection)), None)
    for body in drawn(body_of(maker) or {}, 20) if maker else ():
        answer = await site.ask("POST", collection, body)
        if answer["status"] == 201:
            return path.replace("{id}", answer["data"]["id"])
    raise AssertionError(f"nothing of {collection} could be made")


@pytest.mark.parametrize("row", WITH_BODY, ids=lambda row: row.name)
async def test_no_body_that_fits_its_schema_is_refused_for_its_form(site: Site, row: Operation) -> None:
    path, schema = await made(site, row), body_of(row)
    key = (await site.key(scopes=["shield:scan", "shield:read"]))["key"]
    found = set()
    for body in drawn(schema or {}, COUNTS.get(row.name, 30)):
        answer = await site.ask(row.route[0], path, body, key="" if row.door.is_internal else key)
        told = (row.name, answer["status"], (answer.get("error") or {}).get("param"))
        assert answer["status"] in MAY_BE or told in NOT_OF_FORM or _is_of_rule_file(*told), (body, answer)
        found.add(answer["status"])
    assert found & {200, 201, 202} or row.name in NEVER_THERE, f"of {row.route} nothing was taken: {found}"
