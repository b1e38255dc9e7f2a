"""Lakera Guard, version 2: https://docs.lakera.ai/api-reference.

A caller may mask what stands in `payload`, and block what does not. LiteLLM masks if all kinds in `breakdown` are
`pii`, so a call that the policy blocks has one more kind there. `payload` quotes nothing.
"""

import re
from collections.abc import Sequence
from typing import Any

from gateway.guardrails import contract
from gateway.shield.detections import Detection

_CONTENT = re.compile(r"(?:messages\[\d+\]|choices\[\d+\]\.message)\.content")
_KINDS = {
    "email": "pii/email",
    "phone": "pii/phone_number",
    "card": "pii/credit_card",
    "iban": "pii/iban_code",
    "ip": "pii/ip_address",
    "ipv6": "pii/ip_address",
    "us-ssn": "pii/us_social_security_number",
}


def _read(call: contract.Call) -> Sequence[contract.Asked]:
    return contract.conversation(contract.messages_of(call.body))


def _write(call: contract.Call, judged: Sequence[contract.Judged]) -> object:
    found = [one for part in judged for one in part.found()]
    kinds = [(_kind(one), index) for index, one in found]
    if any(one.action == "blocked" for one in judged) or not all(map(_has_places, found)):
        kinds.append(("policy/block", None))
    told: dict[str, Any] = {
        "flagged": any(one.is_flagged for one in judged),
        "payload": _spans(found),
        "metadata": {"request_uuid": call.request_id},
    }
    if call.body.get("breakdown") is True:
        common = {"project_id": "gateway", "policy_id": "gateway", "detected": True}
        told["breakdown"] = [
            {**common, "detector_id": kind, "detector_type": kind, "message_id": index}
            for kind, index in dict.fromkeys(kinds)
        ]
    if call.body.get("dev_info") is True:
        told["dev_info"] = {"git_revision": "", "git_timestamp": "", "model_version": "gateway", "version": "2"}
    return told


def _kind(found: Detection) -> str:
    """Return Lakera's name for what was found."""
    if found.category == "secret":
        return f"secret/{found.rule}"
    if found.category in ("pii", "financial"):
        begins = (kind for name, kind in _KINDS.items() if found.rule == name or found.rule.startswith(f"{name}-"))
        return next(begins, f"pii/{found.rule}")
    return "prompt_attack"


def _spans(found: Sequence[tuple[int | None, Detection]]) -> list[dict[str, Any]]:
    """Return the matches of each message. Of those that overlap only one is told, so that a mask destroys no other."""
    matches = sorted(
        (index, start, end, _kind(one))
        for index, one in filter(_has_places, found)
        for start, end in one.spans or ((one.start, one.end),)
    )
    spans: list[dict[str, Any]] = []
    for index, start, end, kind in matches:
        last = spans[-1] if spans else None
        if last is not None and last["message_id"] == index and start < last["end"]:
            last["end"] = max(end, last["end"])
            continue
        spans.append({"start": start, "end": end, "text": "", "detector_type": kind, "labels": [], "message_id": index})
    return spans


def _has_places(found: tuple[int | None, Detection]) -> bool:
    """Tell whether every match of a rule can be masked: its place is known, and is in the content as it was sent."""
    index, one = found
    is_all = one.count <= max(1, len(one.spans)) and one.view in ("text", "normalized")
    return index is not None and is_all and _CONTENT.fullmatch(one.place) is not None


CONTRACTS = (contract.Route("lakera", "/v2/guard", "Judge a conversation as Lakera Guard does.", _read, _write),)
