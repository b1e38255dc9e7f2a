"""The API of LLM Guard: https://github.com/protectai/llm-guard. `scanners_suppress` is ignored: the policy decides.

`is_valid` is false for what the policy blocks. What it masks is valid as `sanitized_prompt` or `sanitized_output`, so
send that on.
"""

from collections.abc import Sequence

from gateway.guardrails import contract
from gateway.shield.detections import Direction

_SCANNERS = {"secret": "Secrets", "pii": "Anonymize", "financial": "Anonymize"}
_ATTACKS = "PromptInjection"


def _read_prompt(call: contract.Call) -> Sequence[contract.Asked]:
    return (contract.prompt([contract.said(contract.text_of(call.body, "prompt"))]),)


def _read_output(call: contract.Call) -> Sequence[contract.Asked]:
    contract.text_of(call.body, "prompt")
    return (contract.answer([contract.choice(contract.said(contract.text_of(call.body, "output"), "assistant"))]),)


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one = judged[0]
    name = "sanitized_prompt" if one.asked.direction is Direction.INBOUND else "sanitized_output"
    scanners = dict.fromkeys((_ATTACKS, *_SCANNERS.values()), -1.0)  # of LLM Guard: -1 nothing, 1 certain
    for _, found in one.found():
        scanner = _SCANNERS.get(found.category, _ATTACKS)
        scanners[scanner] = max(scanners[scanner], found.confidence)
    is_valid = one.action != "blocked"
    text = contract.contents(one.body)[0] if is_valid else ""
    return {"is_valid": is_valid, "scanners": scanners, name: text}


CONTRACTS = (
    contract.Route("llm_guard", "/analyze/prompt", "Judge a prompt as LLM Guard does.", _read_prompt, _write),
    contract.Route("llm_guard", "/analyze/output", "Judge an answer as LLM Guard does.", _read_output, _write),
)
