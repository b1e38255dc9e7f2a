"""Portkey's webhook guardrail: https://portkey.ai/docs/integrations/guardrails/bring-your-own-guardrails.

`verdict` false blocks only where the guardrail has *deny* on. A masked body goes back as a whole.
"""

from collections.abc import Sequence

from gateway.errors import InvalidRequest
from gateway.guardrails import contract

_SIDES = {"beforeRequestHook": "request", "afterRequestHook": "response"}


def _side(call: contract.Call) -> str:
    side = _SIDES.get(str(call.body.get("eventType")))
    if side is None:
        raise InvalidRequest(f"eventType must be one of {', '.join(_SIDES)}.", param="eventType")
    return side


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    side = _side(call)
    sent = contract.object_of(call.body, side)
    body, text = contract.object_of(sent, "json"), sent.get("text")
    if side == "request":
        if "messages" in body:
            return (contract.prompt(contract.messages_of(body), **_but(body, "messages")),)
        return (contract.prompt([contract.said(text)] if isinstance(text, str) else [], json=body),)
    if _is_chat(body):
        return (contract.answer(contract.choices_of(body), **_but(body, "choices")),)
    return (
        contract.answer(
            [contract.choice(contract.said(text, "assistant"))] if isinstance(text, str) else [], json=body
        ),
    )


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one = judged[0]
    if one.action == "blocked":
        return {"verdict": False, "data": {"explanation": contract.reason(call, one)}}
    if one.action != "redacted":
        return {"verdict": True, "data": {}}
    body = one.body.get("json", one.body) if "json" in one.asked.body else one.body
    return {
        "verdict": True,
        "data": {"explanation": "The security gateway masked what its policy hides."},
        "transformedData": {_side(call): {"json": body}},
    }


def _is_chat(body: contract.Json) -> bool:
    choices = body.get("choices")
    return isinstance(choices, list) and any(isinstance(one, dict) and "message" in one for one in choices)


def _but(body: contract.Json, name: str) -> contract.Json:
    return {key: value for key, value in body.items() if key != name}


CONTRACTS = (
    contract.Contract("portkey", "/integrations/portkey", "Judge a request or an answer for Portkey.", _read, _write),
)  # fmt: skip
