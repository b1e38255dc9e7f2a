"""OpenAI's moderations: https://platform.openai.com/docs/api-reference/moderations.

The 13 standard categories are never flagged, because the shield does not judge them; its own stand beside them. The
texts of one call are judged together, so that an attack that is spread over them is found.
"""

from collections.abc import Sequence
from typing import Any

from gateway.errors import InvalidRequest
from gateway.guardrails import contract
from gateway.shield.detections import CATEGORIES

MODEL = "gateway-shield"
STANDARD = (
    "harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
    "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
)  # fmt: skip


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    wanted = call.body.get("input")
    texts: list[Any] = [wanted] if isinstance(wanted, str) else contract.list_of(call.body, "input", least=1)
    if all(isinstance(one, dict) for one in texts):
        texts = [texts]
    elif not all(isinstance(one, str) for one in texts):
        raise InvalidRequest("input must be a text, a list of texts, or a list of content parts.", param="input")
    return (contract.prompt([contract.said(text) for text in texts]),)


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one = judged[0]
    count, found = len(one.asked.body["messages"]), one.found()
    flagged = {index for index, _ in found}
    if one.is_flagged and (None in flagged or not flagged):
        flagged = set(range(count))
    return {
        "id": f"modr-{call.request_id}",
        "model": MODEL,
        "results": [_result(one, index, is_flagged=index in flagged) for index in range(count)],
    }


def _result(judged: contract.Judged, index: int, *, is_flagged: bool) -> dict[str, Any]:
    scores = dict.fromkeys((*STANDARD, *CATEGORIES), 0.0)
    for at, one in judged.found():
        if at in (index, None) and is_flagged:
            scores[one.category] = max(scores.get(one.category, 0.0), one.confidence)
    return {
        "flagged": is_flagged,
        "categories": {name: score > 0 for name, score in scores.items()},
        "category_scores": scores,
        "category_applied_input_types": {name: ["text"] for name in scores},
    }


CONTRACTS = (contract.Route("moderations", "/api/v1/moderations", "Judge texts as OpenAI does.", _read, _write),)
