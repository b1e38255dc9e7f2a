"""The gateway's own key is masked in whatever its provider sends back: plain, escaped, or encoded once."""

import base64
import json
import re
from typing import Any
from urllib.parse import quote

from gateway.errors import InvalidJson
from gateway.strict_json import read_json, write_json

SHORTEST_KEY = 8
"""A shorter one is not masked: its letters would stand in many words."""
MASK = "****"
_ESCAPED = re.compile(r"\\u00([2-7][0-9a-fA-F])")


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
        masked = _masked(value, self._text)
        return (write_json(masked), True) if masked != value else (body, False)


def _masked(value: Any, key: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)  # JSON within a string
        return key.sub(MASK, plain if key.search(plain) else value)
    if isinstance(value, list):
        return [_masked(one, key) for one in value]
    if isinstance(value, dict):
        return {key.sub(MASK, name): _masked(one, key) for name, one in value.items()}
    return value


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
