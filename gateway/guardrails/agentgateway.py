"""The webhook guardrail of agentgateway and kgateway: https://agentgateway.dev/docs.

The three actions are told apart by shape alone: one that passes has no `body`, one that masks has an object, and one
that rejects has a text.
"""

from collections.abc import Sequence

from gateway.guardrails import contract


def _prompt(call: contract.Call) -> Sequence[contract.Asked]:
    return (contract.prompt(contract.messages_of(contract.object_of(call.body, "body"))),)


def _answer(call: contract.Call) -> Sequence[contract.Asked]:
    return (contract.answer(contract.choices_of(contract.object_of(call.body, "body"))),)


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one = judged[0]
    if one.action == "blocked":
        why = contract.reason(call, one)
        return {"action": {"body": why, "status_code": 403, "reason": why}}
    if one.action == "redacted":
        name = "messages" if "messages" in one.body else "choices"
        why = "The security gateway masked what its policy hides."
        return {"action": {"body": {name: one.body[name]}, "reason": why}}
    return {"action": {"reason": "The security gateway found nothing that its policy stops."}}


_PATH = "/integrations/agentgateway"
CONTRACTS = (
    contract.Route("agentgateway", f"{_PATH}/request", "Judge a prompt for agentgateway.", _prompt, _write),
    contract.Route("agentgateway", f"{_PATH}/response", "Judge an answer for agentgateway.", _answer, _write),
)
