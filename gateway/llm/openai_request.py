"""The shape of an OpenAI chat request: what is refused, and by which path. Values are the upstream's to judge.

Shape: https://platform.openai.com/docs/api-reference/chat/create. Null stands for absent everywhere.
"""

from collections.abc import Mapping
from typing import cast

from gateway.errors import InvalidRequest, UnsupportedValue
from gateway.llm.base import Prompt

MAX_MODEL_CHARS = 256
MAX_CHOICES = 128

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_MAY_BE_SILENT = ("assistant", "function")
TEXT_FIELDS = {"text": "text", "refusal": "refusal", "input_text": "text", "output_text": "text"}
"""Parts that are text, and the field that holds it."""

# The types of a field as an error names them, what they are in JSON, and the fields that have them.
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "a string": ((str,), "user service_tier reasoning_effort"),
    "a whole number": ((int,), "n max_tokens max_completion_tokens top_logprobs seed"),
    "a number": ((int, float), "temperature top_p presence_penalty frequency_penalty"),
    "true or false": ((bool,), "logprobs parallel_tool_calls store"),
    "an object": (
        (dict,),
        "logit_bias metadata response_format prediction audio stream_options web_search_options",
    ),
    "an array of objects": ((list,), "tools functions"),
    "a string or an array of strings": ((str, list), "stop"),
    "a string or an object": ((str, dict), "tool_choice function_call"),
}
_FIELDS = {name: kind for kind, (_, names) in _KINDS.items() for name in names.split()}
_OF_MESSAGE = {
    "name": "a string",
    "tool_call_id": "a string",
    "refusal": "a string",
    "tool_calls": "an array of objects",
}

# Keys and fixed values of the dialect: they are nobody's text, so no scan reads them.
_MESSAGE = (
    "messages role content name refusal tool_calls tool_call_id function_call audio annotations reasoning "
    "reasoning_content id type index system developer user assistant tool function custom"
)
_PART = (
    "text image_url url detail input_audio data format file file_data file_id filename input_text output_text "
    "input_image input_file auto low high wav mp3 cache_control ephemeral"
)
_REQUEST = (
    "model max_tokens max_completion_tokens n stream stop temperature top_p presence_penalty frequency_penalty "
    "logit_bias logprobs top_logprobs seed tools tool_choice parallel_tool_calls functions response_format json_schema "
    "json_object metadata prediction modalities service_tier store reasoning_effort verbosity stream_options "
    "include_usage web_search_options user_location search_context_size approximate city country region timezone "
    "medium minimal none required default strict"
)
_SCHEMA = (
    "description parameters properties items object string number integer boolean array null enum anyOf allOf oneOf "
    "additionalProperties schema arguments title minimum maximum"
)
_REPLY = (
    "choices message finish_reason length tool_calls content_filter created usage prompt_tokens completion_tokens "
    "total_tokens prompt_tokens_details completion_tokens_details cached_tokens audio_tokens reasoning_tokens "
    "accepted_prediction_tokens rejected_prediction_tokens system_fingerprint chat.completion transcript expires_at "
    "token logprob bytes url_citation start_index end_index choice list"
)

WORDS = frozenset(" ".join((_MESSAGE, _PART, _REQUEST, _SCHEMA, _REPLY)).split())
"""Compared whole and case-sensitive. Nothing here is longer than 32 characters or says anything by itself."""


def check_request(body: object, *, max_messages: int, raw: bytes | None = None, may_stream: bool = False) -> Prompt:
    """Check a parsed body; `stream` before all else, since a client that wants a stream must not wait for 400.

    raw: the strict JSON that it was read from.

    Raises:
        InvalidRequest: a field is missing or of the wrong type; `param` is its path.
        UnsupportedValue: `stream` is true and it `may_stream` not.
    """
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    stream = body.get("stream")
    if stream is True and not may_stream:
        raise UnsupportedValue(
            "stream is not supported by this version of the API: leave it out, or use the base URL /api/v2.",
            param="stream",
        )
    if stream is not None and not isinstance(stream, bool):
        raise _wrong("stream", "true or false")
    model = body.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= MAX_MODEL_CHARS or "\0" in model:
        raise _wrong("model", f"a string of 1 to {MAX_MODEL_CHARS} characters without NUL")
    messages = body.get("messages")
    if not isinstance(messages, list) or not 0 < len(messages) <= max_messages:
        raise _wrong("messages", f"an array of 1 to {max_messages} messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    whole: dict[str, object] = {}
    for name, value in body.items():
        kind = _FIELDS.get(name)
        if kind is None or value is None:
            continue
        if kind == "a whole number" and isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
            whole[name] = int(value)  # 5.0 is an integer in JSON Schema, but not to every upstream
        else:
            _check_type(value, name, kind)
    if "\0" in (body.get("user") or ""):
        raise _wrong("user", "a string without NUL")
    if whole:
        body, raw = body | whole, None
    count = body.get("n")
    if isinstance(count, int) and not 1 <= count <= MAX_CHOICES:
        raise _wrong("n", f"a whole number from 1 to {MAX_CHOICES}")
    return Prompt(model, body, raw, cast("str | None", body.get("user")))


def _wrong(param: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"{param} must be {wanted}.", param=param)


def _check_type(value: object, param: str, kind: str) -> None:
    """Refuse a value of another type than `kind`, a key of `_KINDS`."""
    is_bool = isinstance(value, bool)
    if not isinstance(value, _KINDS[kind][0]) or is_bool is not (kind == "true or false"):
        raise _wrong(param, kind)
    if isinstance(value, list):
        wanted, name = (dict, "an object") if kind == "an array of objects" else (str, "a string")
        for index, item in enumerate(value):
            if not isinstance(item, wanted):
                raise _wrong(f"{param}[{index}]", name)


def _check_message(message: object, place: str) -> None:
    if not isinstance(message, dict):
        raise _wrong(place, "an object with role and content")
    role = message.get("role")
    if role not in ROLES:
        raise _wrong(f"{place}.role", "one of " + ", ".join(ROLES))
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            _check_part(part, f"{place}.content[{index}]")
    elif not isinstance(content, str) and not (content is None and role in _MAY_BE_SILENT):
        raise _wrong(f"{place}.content", "a string or an array of parts")
    for name, kind in _OF_MESSAGE.items():
        if message.get(name) is not None:
            _check_type(message[name], f"{place}.{name}", kind)


def _check_part(part: object, place: str) -> None:
    if not isinstance(part, dict):
        raise _wrong(place, "an object with a type")
    kind = part.get("type")
    if not isinstance(kind, str):
        raise _wrong(f"{place}.type", "a string")
    field = TEXT_FIELDS.get(kind)
    if field is not None and not isinstance(part.get(field), str):
        raise _wrong(f"{place}.{field}", "a string")
