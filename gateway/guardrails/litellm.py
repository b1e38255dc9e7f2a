"""LiteLLM's generic guardrail API: https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api.

A reply without `action` lets the texts pass, so each has one. It can change `texts` alone, in their number and order:
where something else must be masked, the call is blocked. `additional_provider_specific_params` may come from LiteLLM's
own caller, so nothing in it is read.
"""

from collections.abc import Collection, Sequence

from gateway.errors import InvalidRequest
from gateway.guardrails import contract


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    body = call.body
    texts, images = contract.list_of(body, "texts", str), contract.list_of(body, "images", str)
    calls = contract.list_of(body, "tool_calls")
    role = "assistant" if body.get("input_type") == "response" else "user"
    messages = [contract.said(text, role) for text in texts]
    if images:
        messages.append(contract.said([{"type": "image_url", "image_url": {"url": image}} for image in images], role))
    if calls:
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
    # The same messages once more, with names, files and calls of tools.
    messages += [_but(one, set(texts)) for one in contract.messages_of(body, "structured_messages", least=0)]
    if role == "assistant":
        return (contract.answer([contract.choice(message, index) for index, message in enumerate(messages)]),)
    if body.get("input_type") != "request":
        raise InvalidRequest("input_type must be request or response.", param="input_type")
    return (contract.prompt(messages, tools=contract.list_of(body, "tools")),)


def _but(message: contract.Json, texts: Collection[str]) -> contract.Json:
    """Return a message without the texts that are judged already."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [part for part in content if not _is_text(part, texts)]}
    return {**message, "content": None} if content in texts else message


def _is_text(part: object, texts: Collection[str]) -> bool:
    return isinstance(part, dict) and set(part) == {"type", "text"} and part["text"] in texts


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


_PATH, _ABOUT = "/beta/litellm_basic_guardrail_api", "Judge texts for LiteLLM's generic guardrail."
CONTRACTS = (contract.Route("litellm", _PATH, _ABOUT, _read, _write, call_id="litellm_call_id"),)
