"""Exchange the strings of a prompt or reply, or replace a whole choice. Pure; the caller decides what has to go.

The gateway's own key always goes, from whatever its provider sends back: plain, escaped, or encoded once.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeGuard
from urllib.parse import quote

from gateway.errors import InvalidJson
from gateway.strict_json import read_json, write_json

NOTICE = "[Withheld by the security gateway: this answer matched its rules against data leaks and attacks.]"
SHORTEST_KEY = 8
"""A shorter one is not masked: its letters would stand in many words."""
MASK = "****"
JSON_LEVELS = 3
_ESCAPED = re.compile(r"\\u00([2-7][0-9a-fA-F])")


def withheld_choice(choice: object, position: int) -> dict[str, object]:
    """Return what stands for a choice that may not leave. Made afresh: nothing of the old one is kept but its index."""
    index = choice.get("index") if isinstance(choice, dict) else None
    return {
        "index": index if isinstance(index, int) else position,
        "message": {"role": "assistant", "content": NOTICE, "refusal": None},
        "logprobs": None,
        "finish_reason": "content_filter",
    }


def strings(value: object, levels: int = JSON_LEVELS) -> Iterator[str]:
    """Return every string of `value`, keys included; of a string that is a JSON object or array, those inside it.

    levels: how often JSON is read that stands in a string of JSON. A deeper one is a text.
    """
    if isinstance(value, str):
        inner = _inner(value) if levels else None
        if inner is None:
            yield value
        else:
            yield from strings(inner, levels - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item, levels)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, levels)


def with_strings(value: object, masked: Mapping[str, str], levels: int = JSON_LEVELS) -> object:
    """Return `value` with the strings that `strings` found exchanged. JSON inside of strings stays valid JSON."""

    def exchanged(text: str) -> str:
        inner = _inner(text) if levels else None
        if inner is None:
            return masked.get(text, text)
        changed = with_strings(inner, masked, levels - 1)
        return text if changed == inner else write_json(changed).decode()

    return _mapped(value, exchanged, lambda key: masked.get(key, key))


def _mapped(value: object, text: Callable[[str], str], name: Callable[[str], str]) -> object:
    """Return `value` with each text in it changed by `text`, and each key by `name`."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {name(key): _mapped(item, text, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, text, name) for item in value]
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


class OwnKey:
    """One key, known to the gateway, and the forms in which an answer may repeat it. None: there is none."""

    def __init__(self, key: str | None) -> None:
        self._text: re.Pattern[str] | None = None
        self._raw: re.Pattern[bytes] | None = None
        if key is not None and len(key) >= SHORTEST_KEY:
            either = "|".join(re.escape(form) for form in sorted(_forms(key), key=len, reverse=True))
            self._text = re.compile(either)
            # A letter may be escaped in JSON as well. What has such an escape is read before it is searched.
            escapes = r"\\" if json.dumps(key)[1:-1] != key else r"\\(?:u00|/)"
            self._raw = re.compile(f"{either}|{escapes}".encode())

    def without(self, text: str) -> str:
        """Return a text without the key."""
        return text if self._text is None else self._text.sub(MASK, text)

    def mask(self, body: bytes, *, max_values: int) -> tuple[bytes, bool]:
        """Return a body without the key, and whether it was there. One that holds none is returned as it came."""
        if self._text is None or self._raw is None or self._raw.search(body) is None:
            return body, False
        try:
            value = read_json(body, max_values=max_values)
        except InvalidJson:
            text = body.decode("utf-8", "replace")
            clean = self._text.sub(MASK, text)
            return (clean.encode(), True) if clean != text else (body, False)
        masked = _mapped(value, partial(_without_key, key=self._text), self.without)
        return (write_json(masked), True) if masked != value else (body, False)


def _without_key(text: str, key: re.Pattern[str]) -> str:
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)  # JSON within a string
    return key.sub(MASK, plain if key.search(plain) else text)


def _forms(key: str) -> set[str]:
    raw = key.encode()
    url = quote(key, safe="")
    forms = {key, json.dumps(key)[1:-1], url, re.sub("%..", lambda found: found[0].lower(), url), quote(key)}
    every = "".join(f"%{byte:02X}" for byte in raw)
    forms |= {raw.hex(), raw.hex().upper(), every, every.lower()}
    for before in range(3):
        # What stands before and after the key in the same four letters of base64 is not known.
        packed = base64.b64encode(bytes(before) + raw).decode()
        whole = packed[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
        forms |= {whole, whole.replace("+", "-").replace("/", "_")}
    return forms
