"""LiteLLM's generic guardrail API: https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api.

A reply without `action` lets the texts pass, so each has one. It can change `texts` alone, in their number and order:
where something else must be masked, the call is blocked. `additional_provider_specific_params` may come from LiteLLM's
own caller, so nothing in it is read.
"""

from collections.abc import Sequence

from gateway.errors import InvalidRequest
from gateway.guardrails import contract
from gateway.llm.masking import with_strings


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    body = call.body
    texts, images, calls = (
        contract.list_of(body, "texts", str),
        contract.list_of(body, "images", str),
        contract.list_of(body, "tool_calls"),
    )
    called: list[contract.Json] = [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
    if body.get("input_type") == "response":
        messages = [contract.said(text, "assistant") for text in texts] + called
        return (contract.answer([contract.choice(message, index) for index, message in enumerate(messages)]),)
    if body.get("input_type") != "request":
        raise InvalidRequest("input_type must be request or response.", param="input_type")
    shown = [contract.said([{"type": "image_url", "image_url": {"url": image}} for image in images])] if images else []
    # The same messages once more, with names and calls of tools: what stands in `texts` is not scanned twice.
    more = with_strings(contract.list_of(body, "structured_messages"), dict.fromkeys([*texts, *images], ""))
    messages = [contract.said(text) for text in texts] + shown + called
    return (contract.prompt(messages, tools=contract.list_of(body, "tools"), structured_messages=more),)


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one, count = judged[0], len(contract.list_of(call.body, "texts", str))
    if one.action == "redacted" and _others(one.body, count) == _others(one.asked.body, count):
        return {"action": "GUARDRAIL_INTERVENED", "texts": contract.contents(one.body)[:count]}
    if one.is_flagged:
        return {"action": "BLOCKED", "blocked_reason": contract.reason(call, one)}
    return {"action": "NONE"}


def _others(body: contract.Json, count: int) -> object:
    """Return everything but the first texts."""
    name = "messages" if "messages" in body else "choices"
    return {**body, name: body[name][count:]}


CONTRACTS = (
    contract.Contract(
        "litellm",
        "/beta/litellm_basic_guardrail_api",
        "Judge texts for LiteLLM's generic guardrail.",
        _read,
        _write,
        call_id="litellm_call_id",
    ),
)
