"""The OpenAPI document says what is served: every row, its parameters, its errors, and nothing that is not so."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.api.openapi import document
from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.errors import STATUS_BY_CODE
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS
from gateway.operations.operation import Door
from gateway.settings import Settings

OPERATIONS = PUBLIC_OPERATIONS + INTERNAL_OPERATIONS
OPEN = Settings(data_dir=":memory:")
SIGNED_IN = Settings(data_dir=":memory:", rbac_enabled=True)
DOCUMENT: Any = json.loads(json.dumps(document(OPERATIONS, OPEN)))
DESCRIBED = {
    (method.upper(), path): described
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
}


def test_every_row_is_described_once_under_its_name() -> None:
    assert {(row.route, row.name) for row in OPERATIONS} == {
        (route, described["operationId"]) for route, described in DESCRIBED.items()
    }
    assert DOCUMENT["openapi"] == "3.1.0"


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_security_of_a_row_is_its_door(row: Any) -> None:
    keys = [{"serviceKey": []}, {"bearer": []}]
    expected = {"key": keys, "optional": [*keys, {}], "loopback": [*keys, {}]}.get(row.door.value, [])
    assert DESCRIBED[row.route]["security"] == expected
    assert set(DOCUMENT["components"]["securitySchemes"]) == {"serviceKey", "bearer", "session", "csrf"}


@pytest.mark.parametrize("row", INTERNAL_OPERATIONS, ids=lambda row: row.name)
def test_where_users_sign_in_the_internal_api_asks_for_cookie_and_token(row: Any) -> None:
    method, path = row.route
    described: Any = document([row], SIGNED_IN)["paths"]
    asked = {"session": []} if method == "GET" else {"session": [], "csrf": []}
    assert described[path][method.lower()]["security"] == ([asked] if row.door is Door.SESSION else [])


def test_if_match_is_told_where_a_body_may_name_a_version_and_nowhere_else() -> None:
    for route, described in DESCRIBED.items():
        body = described.get("requestBody", {}).get("content", {}).get("application/json", {})
        is_told = "If-Match" in [one["name"] for one in described.get("parameters", ())]
        assert is_told is ("version" in body.get("schema", {}).get("properties", {})), route


def test_what_stands_in_the_path_is_a_parameter_and_no_field_of_the_body() -> None:
    described = DESCRIBED[("PATCH", "/api/providers/{id}")]
    assert [one["name"] for one in described["parameters"]] == ["id", "If-Match"]
    body = described["requestBody"]
    schema = body["content"]["application/json"]["schema"]
    assert "id" not in schema["properties"] and schema["required"] == [] and not body["required"]
    assert "requestBody" not in DESCRIBED[("POST", "/api/providers/{id}/test")]
    assert DESCRIBED[("POST", "/api/providers")]["requestBody"]["required"]
    assert set(DESCRIBED[("POST", "/api/auth/login")]["requestBody"]["content"]) == {"application/json"}


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_errors_of_a_row_stand_under_their_status(row: Any) -> None:
    responses = DESCRIBED[row.route]["responses"]
    codes = set(row.fails) | (
        {"missing_api_key", "insufficient_scope", "rate_limited"} if row.door.value == "key" else set()
    )
    for code in codes:
        assert f"`{code}`" in responses[str(STATUS_BY_CODE[code])]["description"]
    assert {str(row.status), "400", "500", "default"} <= set(responses)


def test_parameters_have_their_exact_bounds() -> None:
    parameters = {one["name"]: one for one in DESCRIBED[("GET", "/api/v1/alerts")]["parameters"]}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
    assert parameters["severity"]["schema"]["enum"] == ["critical", "high", "medium", "low"]
    audit = {one["name"]: one for one in DESCRIBED[("GET", "/api/v1/audit")]["parameters"]}
    assert audit["limit"]["schema"]["maximum"] == 1000
    assert "cursor" not in audit
    assert "`cursor`" in DESCRIBED[("GET", "/api/v1/audit")]["description"]


def test_body_of_a_scan_is_closed_and_says_how_long_it_may_be() -> None:
    schema = DESCRIBED[("POST", "/api/v1/shield/scan")]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["text"]
    assert schema["additionalProperties"] is False
    assert "500000" in schema["properties"]["text"]["description"]


def test_what_the_services_bound_is_bounded_in_the_document() -> None:
    paths: Any = document(INTERNAL_OPERATIONS, OPEN)["paths"]

    def fields(path: str) -> Any:
        return paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]

    key, user, policy = fields("/api/config/api-keys"), fields("/api/users"), fields("/api/policies")
    rate_limit = key["rate_limit"]["anyOf"][0]
    assert (rate_limit["minimum"], rate_limit["maximum"]) == (1, 10_000_000)
    assert (key["scopes"]["minItems"], key["name"]["maxLength"]) == (1, 100)
    assert (user["password"]["minLength"], user["username"]["pattern"][:2]) == (8, "^[")
    actions = policy["category_actions"]["anyOf"][0]
    assert "jailbreak" in actions["propertyNames"]["enum"]
    assert [one["maximum"] for one in policy["block_score"]["anyOf"] if "maximum" in one] == [100]


def test_good_answers_are_described_in_their_envelope() -> None:
    scan = DESCRIBED[("POST", "/api/v1/shield/scan")]["responses"]["200"]["content"]["application/json"]["schema"]
    assert scan["required"] == ["ok", "data", "meta"]
    assert "verdict" in scan["properties"]["data"]["properties"]
    alerts = DESCRIBED[("GET", "/api/v1/alerts")]["responses"]["200"]["content"]["application/json"]["schema"]
    assert alerts["required"] == ["ok", "data", "meta", "page"]
    assert alerts["properties"]["data"]["items"]["properties"]["first_seen"]["format"] == "date-time"


def test_every_reference_leads_somewhere() -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                target = DOCUMENT
                for step in value["$ref"].removeprefix("#/").split("/"):
                    target = target[step]
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(DOCUMENT)


def test_the_command_prints_what_is_served(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATA_DIR", ":memory:")
    assert cli.run(cli.read(["openapi"]), NativeReport("python", None, ())) == 0
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    assert {"/metrics", "/api/v1/shield/scan", "/api/config/api-keys", "/api/auth/login"} <= set(DOCUMENT["paths"])


def test_it_is_valid_openapi() -> None:
    assert list(DOCUMENT) == ["openapi", "info", "servers", "paths", "components"]
    names = [described["operationId"] for described in DESCRIBED.values()]
    assert len(names) == len(set(names))
    for (_, path), described in DESCRIBED.items():
        in_path = {one["name"] for one in described["parameters"] if one["in"] == "path"}
        assert in_path == set(re.findall(r"{([^}]*)}", path))
        assert all(one["required"] for one in described["parameters"] if one["in"] == "path")
        assert len({(one["in"], one["name"]) for one in described["parameters"]}) == len(described["parameters"])
        assert all(answer["description"] for answer in described["responses"].values())
        asked = {name for one in described["security"] for name in one}
        assert asked <= set(DOCUMENT["components"]["securitySchemes"])
        contents = [described.get("requestBody", {}), *described["responses"].values()]
        schemas = [kind["schema"] for one in contents for kind in one.get("content", {}).values() if "schema" in kind]
        for schema in [*schemas, *(one["schema"] for one in described["parameters"])]:
            Draft202012Validator.check_schema(schema)
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


async def test_document_is_served_without_a_key(house: Any) -> None:
    reply = await house.ask("GET", "/api/v1/openapi.json", key=None)
    assert reply.status == 200
    assert reply.json == DOCUMENT
