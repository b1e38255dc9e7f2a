"""What all contracts share: the call, the texts that it asks about, what was judged, and readers of their bodies.

A contract asks about a prompt or an answer in the form of the OpenAI API, which the chat is scanned in. So each has the
same decisions as a chat, and knows no rule. An unknown field is ignored: a later release of a product may add one.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from gateway.errors import InvalidRequest
from gateway.shield.detections import Detection, Direction, ScanResult, Verdict

Json = Mapping[str, Any]
MOST_TEXTS = 2_000
_INDEX = re.compile(r"(?:messages|choices)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a contract. headers: by lower-case name. request_id: ours."""

    body: Json
    headers: Mapping[str, str]
    request_id: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What is judged together. body: a prompt with `messages` if inbound, an answer with `choices` if outbound.

    first: the index of its first message or choice in the call.
    """

    direction: Direction
    body: Json
    first: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """What the shield says, and what the policy of the key does.

    action: as of a traffic row: ``none``, ``observed``, ``redacted`` or ``blocked``. body: as asked, masked if it is
    ``redacted``. masked: the categories that the policy masks.
    """

    asked: Asked
    result: ScanResult
    action: str
    body: Json
    masked: Collection[str] = ()

    @property
    def is_flagged(self) -> bool:
        """Whether the texts may not go on as they are: what a contract says that cannot mask."""
        return self.action in ("blocked", "redacted")

    def found(self) -> list[tuple[int | None, Detection]]:
        """Return what flagged the texts, each with the index of its message or choice; None if it may be in others."""
        found = [one for one in self.result.detections if one.accepted is None and self._counts(one)]
        places = [_INDEX.match(one.place) for one in found]
        first = self.asked.first
        return [
            (first + int(place[1]) if place and not one.is_spread else None, one)
            for place, one in zip(places, found, strict=True)
        ]

    def _counts(self, found: Detection) -> bool:
        is_all = self.action == "blocked" or self.result.verdict is Verdict.BLOCK
        return self.is_flagged and (is_all or found.category in self.masked)


@dataclass(frozen=True, slots=True)
class Route:
    """One route of a contract.

    name: of the product, as records have it. read: what to judge; raises InvalidRequest. write: the answer. call_id:
    the field of the body, or the header, with the caller's own id of the call.
    """

    name: str
    route: str
    about: str
    read: Callable[[Call], Sequence[Asked]]
    write: Callable[[Call, Sequence[Judged]], object]
    call_id: str = ""

    @property
    def operation(self) -> str:
        """The name of its row."""
        return f"guardrail.{self.name}.{self.route.rpartition('/')[2]}"


def prompt(messages: Sequence[Json], **fields: object) -> Asked:
    """Return a question about texts on their way to a model."""
    return Asked(Direction.INBOUND, {"messages": list(messages), **fields})


def answer(choices: Sequence[Json], **fields: object) -> Asked:
    """Return a question about texts that come from a model."""
    return Asked(Direction.OUTBOUND, {"choices": list(choices), **fields})


def said(text: object, role: str = "user") -> Json:
    """Return the message of a text."""
    return {"role": role, "content": text}


def choice(message: Json, index: int = 0) -> Json:
    """Return the choice of a message."""
    return {"index": index, "message": message}


def conversation(messages: Sequence[Json], **fields: object) -> Sequence[Asked]:
    """Ask about a conversation: all of it is a prompt, and what a model said last, if it did, an answer as well.

    A caller may end a prompt with words of the model, so that the role alone says too little.
    """
    asked = prompt(messages, **fields)
    if messages[-1].get("role") != "assistant":
        return (asked,)
    return asked, replace(answer([choice(messages[-1])]), first=len(messages) - 1)


def contents(body: Json) -> list[Any]:
    """Return the content of each message or choice."""
    messages = body["messages"] if "messages" in body else [one["message"] for one in body["choices"]]
    return [one.get("content") for one in messages]


def text_of(body: Json, name: str) -> str:
    """Return a field that must be a text."""
    return str(_field(body, name, str, "a text"))


def object_of(body: Json, name: str) -> Json:
    """Return a field that must be an object."""
    return cast(Json, _field(body, name, dict, "an object"))


def list_of(body: Json, name: str, kind: type = object, *, least: int = 0) -> list[Any]:
    """Return a field that must be a list, of values of a kind. One that is missing or null is empty."""
    found = _field({name: []} if body.get(name) is None else body, name, list, "a list")
    if not least <= len(found) <= MOST_TEXTS or not all(isinstance(one, kind) for one in found):
        raise InvalidRequest(f"{name} must be a list of {least} to {MOST_TEXTS} values of one kind.", param=name)
    return cast(list[Any], found)


def _field(body: Json, name: str, kind: type, called: str) -> Any:
    if not isinstance(body.get(name), kind):
        raise InvalidRequest(f"{name} must be {called}.", param=name)
    return body[name]


def messages_of(body: Json, name: str = "messages", *, least: int = 1) -> list[Json]:
    """Return a field that must be a list of messages, each with a text, parts or nothing as its content."""
    found = list_of(body, name, least=least)
    for index, one in enumerate(found):
        if not isinstance(one, dict) or not isinstance(one.get("content"), str | list | None):
            raise InvalidRequest("A message is an object whose content is a text or parts.", param=f"{name}[{index}]")
    return found


def choices_of(body: Json) -> list[Json]:
    """Return the field `choices`, which must be a list of objects with a message each."""
    found = list_of(body, "choices", least=1)
    messages_of({"choices": [one.get("message") if isinstance(one, dict) else None for one in found]}, "choices")
    return found


def reason(call: Call, judged: Judged) -> str:
    """Return why texts are refused, in one line that quotes nothing of them."""
    categories = ", ".join(sorted({one.category.replace("_", " ") for _, one in judged.found()}))
    return f"The security gateway blocked this: {categories or 'its score'}. Its request id is {call.request_id}."
