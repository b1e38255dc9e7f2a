"""Portkey's webhook guardrail: https://portkey.ai/docs/integrations/guardrails/bring-your-own-guardrails.

`verdict` false blocks only where the guardrail has *deny* on. A masked body goes back as a whole.
"""

from collections.abc import Sequence

from gateway.errors import InvalidRequest
from gateway.guardrails import contract

_SIDES = {"beforeRequestHook": ("request", "messages"), "afterRequestHook": ("response", "choices")}


def _sent(call: contract.Call) -> tuple[str, contract.Json, str, bool]:
    """Return the side that is asked about, its body, where its texts stand, and whether the body is one of a chat."""
    side, name = _SIDES.get(str(call.body.get("eventType")), ("", ""))
    if not side:
        raise InvalidRequest(f"eventType must be one of {', '.join(_SIDES)}.", param="eventType")
    body = contract.object_of(call.body, side).get("json")
    body = body if isinstance(body, dict) else {}
    found: object = body.get(name)
    is_chat = isinstance(found, list) and bool(found)
    if isinstance(found, list) and name == "choices":
        is_chat = bool(found) and all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in found)
    return side, body, name, is_chat


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    side, body, name, is_chat = _sent(call)
    ask = contract.prompt if side == "request" else contract.answer
    if is_chat:
        others = {key: value for key, value in body.items() if key != name}
        read = contract.messages_of if side == "request" else contract.choices_of
        return (ask(read(body), **others),)
    text = contract.object_of(call.body, side).get("text")
    said = [contract.said(text, "user" if side == "request" else "assistant")] if isinstance(text, str) else []
    return (ask(said if side == "request" else [contract.choice(one) for one in said], json=body),)


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one, (side, _, _, is_chat) = judged[0], _sent(call)
    if one.action == "blocked":
        return {"verdict": False, "data": {"explanation": contract.reason(call, one)}}
    if one.action != "redacted":
        return {"verdict": True, "data": {}}
    return {
        "verdict": True,
        "data": {"explanation": "The security gateway masked what its policy hides."},
        "transformedData": {side: {"json": one.body if is_chat else one.body["json"]}},
    }


CONTRACTS = (contract.Route("portkey", "/integrations/portkey", "Judge a chat for Portkey.", _read, _write),)
