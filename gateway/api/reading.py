"""Read the JSON body and the query of a request, each with one strict reader that guesses nothing."""

from collections.abc import Mapping

from gateway.errors import InvalidRequest, UnsupportedMediaType
from gateway.http.messages import Request
from gateway.http.target import undo_escapes
from gateway.operations.operation import Parameter
from gateway.strict_json import read_json

LARGE_BYTES = 65_536
"""Longer bodies are parsed in a thread, one at a time, so that the event loop keeps answering."""

_NAME_CHARS = 64
_HEX = frozenset("0123456789abcdefABCDEF")


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


def _is_json(content_type: str | None) -> bool:
    media_type, _, rest = (content_type or "").partition(";")
    if media_type.strip().lower() != "application/json":
        return False
    parameter = rest.strip().lower().replace('"', "")
    return parameter in ("", "charset=utf-8", "charset=utf8")


def _decode(text: str, name: str) -> str:
    """Undo percent-encoding and ``+``. RFC 3986 section 2.1: a ``%`` is followed by two hex digits."""
    pieces = text.split("%")
    try:
        if not all(len(piece) >= 2 and _HEX.issuperset(piece[:2]) for piece in pieces[1:]):
            raise ValueError
        return undo_escapes(text.replace("+", " ")).decode("utf-8")
    except ValueError:
        raise InvalidRequest("The query is not percent-encoded UTF-8.", param=name[:_NAME_CHARS]) from None
