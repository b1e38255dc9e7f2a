"""Detectors of the FMS guardrails orchestrator, as OpenShift AI and watsonx ask them.

Shapes: https://foundation-model-stack.github.io/fms-guardrails-orchestrator. An empty list means that nothing was
found, and whatever is listed makes the orchestrator act. The header `detector-id` may name a category of the shield,
and then only what is of it is listed; any other id lists all. `text` is empty, because it would repeat a secret.
"""

from collections.abc import Sequence
from typing import Any

from gateway.guardrails import contract
from gateway.shield.detections import CATEGORIES, Detection


def _contents(call: contract.Call) -> Sequence[contract.Asked]:
    return (contract.prompt([contract.said(text) for text in contract.list_of(call.body, "contents", str, least=1)]),)


def _chat(call: contract.Call) -> Sequence[contract.Asked]:
    return contract.conversation(contract.messages_of(call.body), tools=contract.list_of(call.body, "tools"))


def _lists(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    one = judged[0]
    texts = contract.list_of(call.body, "contents", str)
    lists: list[list[dict[str, Any]]] = [[] for _ in texts]
    for index, found in one.found():
        if not _is_wanted(call, found):
            continue
        # What stands in no text alone is told of each, and what was decoded has no place in the text as sent.
        is_placed = index is not None and found.view in ("text", "normalized")
        for at in range(len(texts)) if index is None else (index,):
            spans = (found.spans or ((found.start, found.end),)) if is_placed else ((0, len(texts[at])),)
            lists[at] += [{"start": start, "end": end, "text": "", **_told(found)} for start, end in spans]
    return lists


def _list(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    found = [found for one in judged for _, found in one.found() if _is_wanted(call, found)]
    return list({one.rule: _told(one) for one in found}.values())


def _is_wanted(call: contract.Call, found: Detection) -> bool:
    wanted = call.headers.get("detector-id")
    return wanted not in CATEGORIES or found.category == wanted


def _told(found: Detection) -> dict[str, Any]:
    return {
        "detection": found.rule,
        "detection_type": found.category,
        "score": found.confidence,
        "evidence": [],
        "metadata": {"severity": found.severity.value, "name": found.name},
    }


CONTRACTS = (
    contract.Route("fms", "/api/v1/text/contents", "Detect in texts for FMS orchestrators.", _contents, _lists),
    contract.Route("fms", "/api/v1/text/chat", "Detect in a conversation for FMS orchestrators.", _chat, _list),
)
