"""Exchange the strings of a prompt or reply, or replace a whole choice. Pure; the caller decides what has to go."""

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from gateway.errors import InvalidJson
from gateway.strict_json import read_json, write_json

NOTICE = "[Withheld by the security gateway: this answer matched its rules against data leaks and attacks.]"


def withheld_choice(choice: object, position: int) -> dict[str, object]:
    """Return what stands for a choice that may not leave. Made afresh: nothing of the old one is kept but its index."""
    index = choice.get("index") if isinstance(choice, dict) else None
    return {
        "index": index if isinstance(index, int) else position,
        "message": {"role": "assistant", "content": NOTICE, "refusal": None},
        "logprobs": None,
        "finish_reason": "content_filter",
    }


def strings(value: object) -> Iterator[str]:
    """Return every string of `value`, keys included; of a string that is a JSON object or array, those inside it."""
    if isinstance(value, str):
        inner = _inner(value)
        if inner is None:
            yield value
        else:
            yield from strings(inner)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def with_strings(value: object, masked: Mapping[str, str]) -> object:
    """Return `value` with the strings that `strings` found exchanged. JSON inside of strings stays valid JSON."""
    if isinstance(value, str):
        inner = _inner(value)
        if inner is None:
            return masked.get(value, value)
        changed = with_strings(inner, masked)
        return value if changed == inner else write_json(changed).decode()
    if isinstance(value, dict):
        return {masked.get(key, key): with_strings(item, masked) for key, item in value.items()}
    if isinstance(value, list):
        return [with_strings(item, masked) for item in value]
    return value


def with_joined_parts(message: object) -> object:
    """Return a message with neighbouring text parts as one part, so that no match is masked by halves."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    parts: list[object] = []
    for part in content:
        last = parts[-1] if parts else None
        if _is_text(part) and _is_text(last):
            parts[-1] = {"type": "text", "text": last["text"] + part["text"]}
        else:
            parts.append(part)
    return {**message, "content": parts}


def masked_choice(choice: object, masked: Mapping[str, str]) -> object:
    """Return the choice with its strings exchanged, and without log probabilities, which repeat it token by token."""
    changed = with_strings(choice, masked)
    if isinstance(changed, dict) and changed != choice:
        return {**changed, "logprobs": None}
    return changed


def _is_text(part: object) -> TypeGuard[dict[str, str]]:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _inner(text: str) -> object | None:
    """Return the object or array that `text` is the JSON of, or None."""
    if text[:64].lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_json(text.encode())
    except (InvalidJson, UnicodeEncodeError):
        return None
