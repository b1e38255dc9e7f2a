"""
title: Security gateway
description: Sends prompts and answers through the shield of a security gateway, which blocks or masks them.
version: 1.0
"""

import asyncio
import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any, Literal

from pydantic import BaseModel, Field

NOTICE = "The security gateway withheld this answer."
MOST_ANSWERS = 1_000
AROUND = ("id", "object", "created", "model", "system_fingerprint", "usage", "event", "sources", "selected_model_id")
KEPT = ("id", "role", "timestamp", "model", "parentId", "childrenIds", "done")
REQUEST, RESPONSE = "/integrations/agentgateway/request", "/integrations/agentgateway/response"


class Filter:
    """A filter function of Open WebUI: `inlet` for prompts, `stream` and `outlet` for answers.

    An answer that is streamed is held until its end, since a match may stand over any two pieces of it.
    """

    class Valves(BaseModel):
        """What an administrator sets."""

        priority: int = Field(default=0, description="Filters with a lower number run first.")
        url: str = Field(default="http://127.0.0.1:5001", description="Address of the gateway.")
        key: str = Field(default="", description="A key of the gateway with the scope shield:scan.")
        ca_file: str = Field(default="", description="File of the authority of the gateway's certificate, if private.")
        timeout_seconds: float = Field(default=10.0, description="How long a decision may take.")
        on_error: Literal["block", "allow"] = Field(
            default="block", description="What happens without a decision. With allow, nothing protects you then."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._answers: dict[tuple[str, int], dict[str, Any]] = {}

    async def inlet(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a prompt as it may go to the model. Raises RuntimeError: it is blocked."""
        action = await self._judge(REQUEST, "messages", {"messages": body.get("messages", [])})
        if isinstance(action.get("body"), str):
            raise RuntimeError(action["reason"])
        return {**body, **action.get("body", {})}

    async def outlet(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a chat whose last answer may be shown and kept."""
        messages = list(body.get("messages", []))
        last = next((i for i in reversed(range(len(messages))) if messages[i].get("role") == "assistant"), None)
        if last is None:
            return body
        kept = await self._allowed(messages[last])
        messages[last] = {name: messages[last][name] for name in KEPT if name in messages[last]} | kept
        return {**body, "messages": messages}

    async def stream(self, event: Any, __metadata__: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return an event without the text of its choices, or at the end of a choice with all of its text.

        An event in another form than that of a completion may hold text as well: it is left out.
        """
        if not isinstance(event, dict):
            raise RuntimeError("The security gateway cannot read this stream, so nothing of it was sent on.")
        choices = event.get("choices")
        known = {name: value for name, value in event.items() if name in AROUND}
        if not isinstance(choices, list):
            return known | ({"error": {"message": NOTICE}} if "error" in event else {})
        # Some servers give each event an id of its own, and some give none.
        answer_id = (__metadata__ or {}).get("message_id") or event.get("id")
        if answer_id is None:
            raise RuntimeError("The security gateway cannot tell whose answer this is, so nothing of it was sent on.")
        return known | {"choices": [await self._held(str(answer_id), choice) for choice in choices]}

    async def _held(self, answer_id: str, choice: dict[str, Any]) -> dict[str, Any]:
        place = answer_id, choice.get("index", 0)
        message = self._answers.setdefault(place, {"role": "assistant"})
        _add(message, choice.get("delta") or choice.get("message") or {"content": choice.get("text")})
        held = {"index": choice.get("index", 0), "delta": {"role": "assistant"}, "finish_reason": None}
        if not choice.get("finish_reason"):
            while len(self._answers) > MOST_ANSWERS:  # of clients that left
                del self._answers[next(iter(self._answers))]
            return held
        allowed = await self._allowed(self._answers.pop(place))
        return {**held, "delta": allowed, "finish_reason": choice["finish_reason"]}

    async def _allowed(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message of a model as it may be shown."""
        asked = {"choices": [{"index": 0, "message": {"content": None, **message}}]}
        try:
            action = await self._judge(RESPONSE, "choices", asked)
        except RuntimeError as error:
            return {"role": "assistant", "content": str(error)}
        if isinstance(action.get("body"), str):
            return {"role": "assistant", "content": NOTICE}
        return dict(action["body"]["choices"][0]["message"]) if "body" in action else message

    async def _judge(self, path: str, name: str, body: object) -> dict[str, Any]:
        """Return the action of the gateway. Raises RuntimeError: there is none, and that means to block."""
        try:
            action = (await asyncio.to_thread(self._post, path, {"body": body}))["action"]
            found = action.get("body", {name: [{"message": {}}]})
            if not isinstance(action["reason"], str) or not (isinstance(found, str) or found[name][0]):
                raise ValueError
            return dict(action)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, http.client.HTTPException):
            if self.valves.on_error == "allow":
                return {"reason": "no decision"}
            raise RuntimeError("The security gateway gave no decision, so nothing was sent on.") from None

    def _post(self, path: str, body: object) -> Any:
        headers = {"Content-Type": "application/json", "X-Service-Key": self.valves.key}
        url = self.valves.url.rstrip("/") + path
        context = ssl.create_default_context(cafile=self.valves.ca_file or None) if url.startswith("https:") else None
        if not url.startswith(("http://", "https://")):
            raise ValueError
        asked = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - checked above
        with urllib.request.urlopen(asked, timeout=self.valves.timeout_seconds, context=context) as reply:  # noqa: S310
            return json.load(reply)


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Put a piece of a message to the ones before it."""
    for name, value in delta.items():
        if isinstance(value, str) and name != "role":
            message[name] = (message.get(name) or "") + value
        elif name == "tool_calls" and isinstance(value, list):
            calls = message.setdefault(name, [])
            for piece in value:
                named = "index" if "index" in piece else "id"
                call = next((one for one in calls if one.get(named) == piece.get(named)), None)
                if call is None:
                    calls.append({**piece, "function": dict(piece.get("function") or {})})
                else:
                    said = (piece.get("function") or {}).get("arguments") or ""
                    call["function"]["arguments"] = (call["function"].get("arguments") or "") + said
        elif isinstance(value, list):
            message[name] = [*(message.get(name) or []), *value]
        elif value is not None and name != "role":
            message[name] = value
