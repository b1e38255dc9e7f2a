"""What clients of the OpenAI API meet: one model, keys under their names, paths that are not served."""

from collections.abc import AsyncIterator

import pytest
from gateway_site import Site, open_site

MODELS = ("gpt-4o", "meta/llama-3", "models/x/y")
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site(upstream_url=NOWHERE, upstream_models=MODELS) as one:
        yield one


async def test_a_model_is_shown_by_its_id_whatever_slashes_it_has(site: Site) -> None:
    key = await site.key("chat:completions")
    listed = (await site.ask("GET", "/api/v1/models", key=key))["data"]
    for model in listed:
        for name in (model["id"], model["id"].replace("/", "%2F")):
            answer = await site.ask("GET", f"/api/v1/models/{name}", key=key)
            assert answer["status_code"] == 200
            assert {field: answer[field] for field in model} == model
            assert answer["object"] == "model"
    assert {model["id"] for model in listed} == set(MODELS)


async def test_a_model_that_the_key_may_not_use_is_not_found(site: Site) -> None:
    key = await site.key("chat:completions", models=["gpt-*"])
    assert (await site.ask("GET", "/api/v1/models/gpt-4o", key=key))["status_code"] == 200
    for name in ("meta/llama-3", "meta%2Fllama-3", "nothing", "gpt-4o%2F", "GPT-4O", "%2F..%2F..", "a//b"):
        answer = await site.ask("GET", f"/api/v1/models/{name}", key=key)
        assert (answer["status_code"], answer["error"]["code"], answer["error"]["param"]) == (404, "not_found", "model")
    near = await site.ask("GET", "/api/v1/models/gpt-40", key=key)
    assert near["error"]["message"] == "There is no such model for this key. Did you mean gpt-4o?"
    lacking = await site.key("shield:scan")
    assert (await site.ask("GET", "/api/v1/models/gpt-4o", key=lacking))["error"]["code"] == "insufficient_scope"
    assert (await site.ask("GET", "/api/v1/models/gpt-4o"))["error"]["code"] == "missing_api_key"


async def test_an_encoded_slash_is_refused_in_every_other_path(site: Site) -> None:
    for path in ("/api%2Fconfig/api-keys", "/api/v1%2Fhealth", "/api/v1/..%2Fconfig/api-keys", "/api/users/a%2Fb"):
        assert (await site.ask("GET", path))["status_code"] == 400, path


@pytest.mark.parametrize("name", ["x_service_key", "x_api_key", "api_key", "authorization"])
async def test_a_key_is_read_under_the_names_that_clients_use(site: Site, name: str) -> None:
    key = await site.key("chat:completions")
    sent = f"Bearer {key}" if name == "authorization" else key
    assert (await site.ask("GET", "/api/v1/models", **{name: sent}))["status_code"] == 200
    assert (await site.ask("GET", "/api/v1/models", **{name: sent[:-1]}))["status_code"] == 401


async def test_two_different_keys_in_one_request_are_refused(site: Site) -> None:
    one, two = await site.key("chat:completions"), await site.key("chat:completions")
    names = {"x_service_key": "{}", "x_api_key": "{}", "api_key": "{}", "authorization": "Bearer {}"}
    for first in names:
        for second in names:
            same = {first: names[first].format(one), second: names[second].format(one)}
            assert (await site.ask("GET", "/api/v1/models", **same))["status_code"] == 200
            if first == second or {first, second} == {"x_service_key", "authorization"}:
                continue
            sent = {first: names[first].format(one), second: names[second].format(two)}
            for path in ("/api/v1/models", "/api/v1/health", "/metrics?"):
                answer = await site.ask("GET", path, **sent, host="gateway.example")
                assert (answer["status_code"], answer["error"]["code"]) == (400, "invalid_request"), (sent, path)
                assert one not in str(answer)
    # Clients send an empty header for a setting that nobody filled in.
    for empty in ("x_api_key", "api_key"):
        sent = {empty: "", "authorization": f"Bearer {one}"}
        assert (await site.ask("GET", "/api/v1/models", **sent))["status_code"] == 200
        assert (await site.ask("GET", "/api/v1/models", **{empty: ""}))["status_code"] == 401
    # The specification: X-Service-Key takes precedence over Authorization.
    both = {"x_service_key": one, "authorization": "Bearer nothing"}
    assert (await site.ask("GET", "/api/v1/models", **both))["status_code"] == 200


@pytest.mark.parametrize("base", ["/api/v1", "/v1", "", "/api", "/openai/v1", "/api/v1/v1"])
@pytest.mark.parametrize(
    "path",
    [
        "/completions", "/embeddings", "/responses", "/responses/resp_1", "/images/generations", "/audio/transcriptions",
        "/audio/speech", "/files", "/assistants", "/batches", "/chat/completions/chatcmpl-1",
        "/vector_stores/x/files",
    ],
)  # fmt: skip
async def test_a_path_of_the_openai_api_that_is_not_served_says_what_is(site: Site, base: str, path: str) -> None:
    for method in ("GET", "POST"):
        answer = await site.ask(method, base + path, None if method == "GET" else {})
        assert (answer["status_code"], answer["error"]["code"]) == (404, "not_found")
        message = answer["error"]["message"]
        assert "does not serve" in message
        assert "chat/completions, models and moderations" in message
        assert "/api/v1" in message


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions", "/chat/completions", "/api/chat/completions", "/api/v1/v1/chat/completions", "/v1/models",
        "/openai/deployments/gpt-4o/chat/completions", "/v1/shield/scan", "/v1/models/gpt-4o", "/v1/chat/completions/",
    ],
)  # fmt: skip
async def test_a_wrong_base_url_is_told_the_right_one(site: Site, path: str) -> None:
    answer = await site.ask("POST", path, {})
    assert (answer["status_code"], answer["error"]["code"]) == (404, "not_found")
    assert "base URL of the API is /api/v1." in answer["error"]["message"]


@pytest.mark.parametrize(
    "path", ["/api/v1/chat/completions/", "/api/v1/models/", "/api/v1/models/gpt-4o/", "/api/users/", "/metrics/"]
)
async def test_a_slash_at_the_end_is_told(site: Site, path: str) -> None:
    for method in ("GET", "POST"):
        answer = await site.ask(method, path, None if method == "GET" else {})
        assert (answer["status_code"], answer["error"]["code"]) == (404, "not_found")
        assert "slash at its end" in answer["error"]["message"]


async def test_a_path_of_nobody_is_plainly_not_found(site: Site) -> None:
    for path in ("/api/v1/nothing", "/api/v1/nothing/", "/v2", "/api/", "/favicon.ico", "/api/v1"):
        answer = await site.ask("GET", path)
        assert (answer["status_code"], answer["error"]["message"]) == (404, "There is no such path."), path
