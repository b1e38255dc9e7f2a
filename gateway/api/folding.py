"""From body, path and `If-Match` of a request to the one object that a row's record is decoded from."""

import re
from collections.abc import Callable
from dataclasses import MISSING, fields

from gateway.api.reading import read_body
from gateway.errors import Conflict, InvalidRequest
from gateway.http.messages import Request
from gateway.operations.operation import Operation

_PLACE = re.compile(r"\{(\w+)\}")
IF_MATCH_PATTERN = '^(?:\\*|(?:W/)?"?([0-9]{1,10})"?)$'
"""A version as an entity tag, with or without its quotes, or ``*`` for any (RFC 9110 section 13.1.1)."""
_IF_MATCH = re.compile(IF_MATCH_PATTERN[1:-1])


def places_of(operation: Operation) -> dict[str, int]:
    """Return the places of the row's path template, each with the number of its segment."""
    segments = operation.route[1].split("/")
    return {found[1]: index for index, text in enumerate(segments) if (found := _PLACE.fullmatch(text))}


def names_of(operation: Operation) -> frozenset[str]:
    """Return the fields of the record that a row takes, but for those that are kept inside."""
    given = fields(operation.takes) if operation.takes else ()  # type: ignore[arg-type]  # every record is a dataclass
    return frozenset(one.name for one in given if one.metadata.get("json_name", one.name) is not None)


def folder(operation: Operation) -> Callable[[Request], object]:
    """Return what makes the object of a request to `operation`, which takes a record.

    The body may be left out when no field of it must be there.
    """
    if operation.takes is None:
        raise ValueError(f"{operation.name} takes nothing")
    of_record = fields(operation.takes)  # type: ignore[arg-type]  # every record is a dataclass
    places, names = places_of(operation), names_of(operation)
    has_version = "version" in names
    if not places and not has_version:
        return read_body
    if not places.keys() <= names:
        raise ValueError(f"{operation.name} has a place that its record has no field for")
    may_be_empty = all(
        field.default is not MISSING or field.default_factory is not MISSING
        for field in of_record
        if field.name not in places
    )

    def fold(request: Request) -> object:
        body = {} if may_be_empty and not request.body else read_body(request)
        if not isinstance(body, dict):
            return body
        for name in places:
            if name in body:
                raise InvalidRequest(f"{name} stands in the path and is no field of the body.", param=name)
        path = request.path.split("/")
        folded = body | {name: path[index] for name, index in places.items()}
        if has_version and (sent := request.headers.get("if-match")) is not None:
            folded["version"] = _agreed(_version(sent), body.get("version"))
        return folded

    return fold


def _agreed(named: int | None, said: object) -> object:
    """Return the version to be changed. named: by If-Match, None for any. said: by the body, None for nothing.

    Raises:
        Conflict: they are two, so that one of them has passed.
    """
    if said is None:
        return named
    if named is not None and type(said) in (int, float) and said != named:
        raise Conflict("If-Match and version name two versions.", param="version")
    return said  # what is no number is refused where the record is decoded


def _version(if_match: str) -> int | None:
    """Read the version that an If-Match header names; None for any."""
    found = _IF_MATCH.fullmatch(if_match.strip())
    if found is None:
        raise InvalidRequest('If-Match must be a version, such as "3".', param="If-Match")
    return None if found[1] is None else int(found[1])
