"""
title: Security gateway
description: Sends prompts and answers through the shield of a security gateway, which blocks or masks them.
version: 1.0
"""

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from typing import Any, Literal

from pydantic import BaseModel, Field

NOTICE = "The security gateway withheld this answer."
MOST_ANSWERS = 1_000
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
        action = await self._judge(REQUEST, {"messages": body.get("messages", [])})
        if isinstance(action.get("body"), str):
            raise RuntimeError(action["reason"])
        return {**body, **action.get("body", {})}

    async def outlet(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a chat whose last answer may be shown and kept."""
        messages = list(body.get("messages", []))
        if not messages or messages[-1].get("role") != "assistant":
            return body
        kept = await self._allowed({"role": "assistant", "content": messages[-1].get("content")})
        return {**body, "messages": [*messages[:-1], {**messages[-1], "content": kept.get("content")}]}

    async def stream(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return an event without the text of its choices, or at the end of a choice with all of its text."""
        choices = event.get("choices")
        if not isinstance(choices, list):
            return event
        return {**event, "choices": [await self._held(str(event.get("id")), choice) for choice in choices]}

    async def _held(self, answer_id: str, choice: dict[str, Any]) -> dict[str, Any]:
        place = answer_id, choice.get("index", 0)
        message = self._answers.setdefault(place, {"role": "assistant"})
        _add(message, choice.get("delta") or {})
        if choice.get("finish_reason") is None:
            while len(self._answers) > MOST_ANSWERS:  # of clients that left
                del self._answers[next(iter(self._answers))]
            return {**choice, "delta": {"role": "assistant"}}
        return {**choice, "delta": await self._allowed(self._answers.pop(place))}

    async def _allowed(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message of a model as it may be shown."""
        asked = {"choices": [{"index": 0, "message": {"content": None, **message}}]}
        try:
            action = await self._judge(RESPONSE, asked)
        except RuntimeError as error:
            return {"role": "assistant", "content": str(error)}
        if isinstance(action.get("body"), str):
            return {"role": "assistant", "content": NOTICE}
        return action["body"]["choices"][0]["message"] if "body" in action else message

    async def _judge(self, path: str, body: object) -> dict[str, Any]:
        """Return the action of the gateway. Raises RuntimeError: there is none, and that means to block."""
        try:
            action = (await asyncio.to_thread(self._post, path, {"body": body}))["action"]
            if not isinstance(action, dict) or "reason" not in action:
                raise ValueError
            return action
        except (OSError, ValueError, LookupError, TypeError):
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
            message[name] = message.get(name, "") + value
        elif name == "tool_calls" and isinstance(value, list):
            calls = message.setdefault(name, [])
            for piece in value:
                call = next((one for one in calls if one.get("index") == piece.get("index")), None)
                if call is None:
                    calls.append({**piece, "function": dict(piece.get("function") or {})})
                else:
                    said = (piece.get("function") or {}).get("arguments") or ""
                    call["function"]["arguments"] = (call["function"].get("arguments") or "") + said
        elif value is not None and name != "role":
            message[name] = value
