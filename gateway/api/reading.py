"""Read body, query, path and `If-Match` of a request, each with one strict reader that guesses nothing."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, cast
from urllib.parse import unquote_plus

from gateway.errors import Conflict, InvalidRequest, UnsupportedMediaType
from gateway.http.messages import Request
from gateway.operations.operation import Operation, Parameter
from gateway.schema import Now, decode
from gateway.strict_json import read_json

LARGE_BYTES = 65_536
"""Longer bodies are parsed in a thread, one at a time, so that the event loop keeps answering."""

_NAME_CHARS = 64
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_PATH_FIELD = re.compile(r"\{(\w+)\}")
IF_MATCH_PATTERN = '^(?:\\*|(?:W/)?"?([0-9]{1,10})"?)$'
"""A version as an entity tag, with or without its quotes, or ``*`` for any (RFC 9110 section 13.1.1)."""
_IF_MATCH = re.compile(IF_MATCH_PATTERN[1:-1])


def read_body(request: Request) -> object:
    """Return the JSON value of the body.

    Raises:
        UnsupportedMediaType: the body is not declared as uncompressed JSON in UTF-8.
        InvalidJson: the body is not strict JSON.
    """
    headers = request.headers
    if not _is_json(headers.get("content-type")):
        raise UnsupportedMediaType("Send the body with 'Content-Type: application/json'.", param="Content-Type")
    if (headers.get("content-encoding") or "identity").lower() != "identity":
        raise UnsupportedMediaType("Send the body uncompressed, without Content-Encoding.", param="Content-Encoding")
    return read_json(request.body)


def read_query(query: str, parameters: Mapping[str, Parameter], *, now_at: int) -> dict[str, object]:
    """Return the values of the query by name, without parameters that were not sent.

    Raises:
        InvalidRequest: a parameter is unknown, repeated, or not of its form. `param` is its name.
    """
    values: dict[str, object] = {}
    for part in query.split("&"):
        if not part:
            continue
        raw_name, _, raw_value = part.partition("=")
        name = _decode(raw_name, raw_name)
        parameter = parameters.get(name)
        if parameter is None:
            known = ", ".join(parameters) or "none"
            raise InvalidRequest(
                f"{name[:_NAME_CHARS]} is no parameter here; the parameters are: {known}.", param=name[:_NAME_CHARS]
            )
        if name in values:
            raise InvalidRequest(f"{name} was sent more than once.", param=name)
        values[name] = parameter.read(_decode(raw_value, name), now_at)
    return values


def path_fields(operation: Operation) -> dict[str, int]:
    """Return the fields in the row's path template, each with the index of its segment."""
    segments = operation.route[1].split("/")
    return {found[1]: index for index, text in enumerate(segments) if (found := _PATH_FIELD.fullmatch(text))}


def names_of(operation: Operation) -> frozenset[str]:
    """Return the fields of the record that a row takes, except those that JSON does not show."""
    return frozenset(one.name for one in _fields(operation) if one.metadata.get("json_name", one.name) is not None)


def _fields(operation: Operation) -> tuple[Field[Any], ...]:
    return fields(cast(Any, operation.takes)) if operation.takes else ()


def record_reader(operation: Operation, now: Now) -> Callable[[Request], object]:
    """Return the function from a request to the record that `operation` takes. It refuses unknown parameters.

    The fields are those of the path, and of the query or the body; the version may be that of `If-Match`. The body may
    be left out when the path or `If-Match` can hold every required field.
    """
    takes, in_path, has_version = operation.takes, path_fields(operation), "version" in names_of(operation)
    parameters = {parameter.name: parameter for parameter in operation.query}
    may_be_empty = bool(in_path or has_version) and all(
        field.default is not MISSING or field.default_factory is not MISSING
        for field in _fields(operation)
        if field.name not in in_path
    )

    def read(request: Request) -> object:
        values = read_query(request.query, parameters, now_at=now()) if request.query else {}
        if takes is None:
            return None
        segments = request.path.split("/")
        of_path = {name: segments[index] for name, index in in_path.items()}
        if parameters:
            return takes(**values, **of_path)
        body = {} if may_be_empty and not request.body else read_body(request)
        if isinstance(body, dict):
            for name in in_path:
                if name in body:
                    raise InvalidRequest(f"{name} is part of the path, and no field of the body.", param=name)
            body = body | of_path
            if has_version and (sent := request.headers.get("if-match")) is not None:
                body["version"] = _agreed(_version(sent), body.get("version"))
        return decode(takes, body, now=now)

    return read


def _is_json(content_type: str | None) -> bool:
    media_type, _, rest = (content_type or "").partition(";")
    if media_type.strip().lower() != "application/json":
        return False
    parameter = rest.strip().lower().replace('"', "")
    return parameter in ("", "charset=utf-8", "charset=utf8")


def _decode(text: str, name: str) -> str:
    """Undo percent-encoding and ``+``. RFC 3986 section 2.1: a ``%`` is followed by two hex digits."""
    try:
        if _BAD_ESCAPE.search(text):
            raise ValueError
        return unquote_plus(text, errors="strict")
    except ValueError:
        raise InvalidRequest("The query is not percent-encoded UTF-8.", param=name[:_NAME_CHARS]) from None


def _agreed(header: int | None, body: object) -> object:
    """Return the version to change. header: of If-Match, None for any. body: None if it names none."""
    if body is None:
        return header
    if header is not None and type(body) in (int, float) and body != header:
        raise Conflict("If-Match and version name two versions.", param="version")
    return body  # the record refuses what is not a number


def _version(if_match: str) -> int | None:
    """Read the version that an If-Match header names; None for any."""
    found = _IF_MATCH.fullmatch(if_match.strip())
    if found is None:
        raise InvalidRequest('If-Match must be a version, such as "3".', param="If-Match")
    return None if found[1] is None else int(found[1])
