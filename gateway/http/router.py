"""From method and canonical path to a handler. Knows no request and no credentials."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from gateway.http.messages import HttpError

Handler = TypeVar("Handler")


class Router(Generic[Handler]):
    """A fixed table of routes: method, path template such as ``/api/v1/alerts/{id}``, handler of whatever type.

    A path without parameters wins over every template that fits it, as in OpenAPI ("Path Templating Matching"). Among
    templates, a literal segment wins over a parameter, from left to right. The route of GET also answers HEAD, unless
    HEAD has its own.

    Raises:
        ValueError: two routes have the same method and the same shape, or a template is malformed.
    """

    def __init__(self, routes: Iterable[tuple[str, str, Handler]]) -> None:
        # By the segments of the template, None for a parameter.
        self._shapes: dict[tuple[str | None, ...], dict[str, Handler]] = {}
        for method, template, handler in routes:
            segments = template.split("/")[1:]
            parameters = [segment for segment in segments if _is_parameter(segment)]
            if not template.startswith("/") or len(set(parameters)) != len(parameters):
                raise ValueError(f"malformed path template {template}")
            shape = tuple(None if segment in parameters else segment for segment in segments)
            methods = self._shapes.setdefault(shape, {})
            if method in methods:
                raise ValueError(f"two routes for {method} {template}")
            methods[method] = handler
        for methods in self._shapes.values():
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])

    def match(self, method: str, path: str) -> Handler:
        """Return the handler for `method` on `path`, which is canonical as `Request.path` is.

        Raises:
            HttpError: 404 `not_found`, or 405 `method_not_allowed` with an Allow header.
        """
        segments = tuple(path.split("/")[1:])
        fixed = self._shapes.get(segments)
        candidates = self._candidates(segments) if fixed is None else [fixed]
        for methods in candidates:
            if method in methods:
                return methods[method]
        if not candidates:
            raise HttpError(404, "not_found", "There is no such path.")
        allow = ", ".join(sorted(set().union(*candidates)))
        raise HttpError(405, "method_not_allowed", "This path does not take this method.", headers=(("allow", allow),))

    def _candidates(self, segments: Sequence[str]) -> list[dict[str, Handler]]:
        """Return the methods of the templates that fit `segments`, the one with the earliest literal first."""
        fitting = [
            shape
            for shape in self._shapes
            if len(shape) == len(segments)
            and all(segment if word is None else word == segment for word, segment in zip(shape, segments, strict=True))
        ]
        fitting.sort(key=lambda shape: [word is None for word in shape])
        return [self._shapes[shape] for shape in fitting]


def _is_parameter(segment: str) -> bool:
    return len(segment) > 2 and segment.startswith("{") and segment.endswith("}")
