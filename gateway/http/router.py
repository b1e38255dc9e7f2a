"""From method and canonical path to a route. Knows no request, no handler's type and no credentials."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gateway.http.messages import HttpError

Handler = TypeVar("Handler")


@dataclass(frozen=True, slots=True)
class Route(Generic[Handler]):
    """One method on one path template such as ``/api/v1/alerts/{id}``; `handler` is whatever the caller routes to."""

    method: str
    path_template: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Match(Generic[Handler]):
    """The route of a request and the values of its template's parameters. Each is one segment, never empty."""

    route: Route[Handler]
    params: Mapping[str, str] = field(default_factory=dict)


class Router(Generic[Handler]):
    """A fixed table of routes. A path without parameters wins over every template that fits it, as in OpenAPI ("Path
    Templating Matching"). Among templates, a literal segment wins over a parameter, from left to right.

    The route of GET also answers HEAD, unless HEAD has its own.

    Raises:
        ValueError: two routes have the same method and the same shape, or a template is malformed.
    """

    def __init__(self, routes: Sequence[Route[Handler]]) -> None:
        self._fixed: dict[str, dict[str, Match[Handler]]] = {}
        self._shaped: dict[int, dict[tuple[str, ...], dict[str, Match[Handler]]]] = {}
        for route in routes:
            self._add(route)
        shaped = [methods for shapes in self._shaped.values() for methods in shapes.values()]
        for methods in (*self._fixed.values(), *shaped):
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])

    def _add(self, route: Route[Handler]) -> None:
        segments = route.path_template.split("/")[1:]
        shape = tuple("" if _is_parameter(segment) else segment for segment in segments)
        parameters = [segment for segment in segments if _is_parameter(segment)]
        if not route.path_template.startswith("/") or len(set(parameters)) != len(parameters):
            raise ValueError(f"malformed path template {route.path_template}")
        if parameters:
            methods = self._shaped.setdefault(len(segments), {}).setdefault(shape, {})
        else:
            methods = self._fixed.setdefault(route.path_template, {})
        if route.method in methods:
            raise ValueError(f"two routes for {route.method} {route.path_template}")
        methods[route.method] = Match(route)

    def match(self, method: str, path: str) -> Match[Handler]:
        """Return the route for `method` on `path`, which is canonical as `Request.path` is.

        Raises:
            HttpError: 404 `not_found`, or 405 `method_not_allowed` with an Allow header.
        """
        fixed = self._fixed.get(path)
        if fixed is not None:
            found = fixed.get(method)
            if found is not None:
                return found
            raise _not_allowed(fixed)
        segments = path.split("/")[1:]
        allowed: set[str] = set()
        for shape, methods in self._candidates(segments):
            if method in methods:
                route = methods[method].route
                names = route.path_template.split("/")[1:]
                return Match(
                    route,
                    {name[1:-1]: value for name, word, value in zip(names, shape, segments, strict=True) if not word},
                )
            allowed.update(methods)
        if allowed:
            raise _not_allowed(allowed)
        raise HttpError(404, "not_found", "There is no such path.")

    def _candidates(self, segments: list[str]) -> list[tuple[tuple[str, ...], dict[str, Match[Handler]]]]:
        """Return the shapes that fit `segments`, the one with the earliest literal first."""
        shapes = self._shaped.get(len(segments), {})
        fitting = [
            (shape, methods)
            for shape, methods in shapes.items()
            if all(word == segment if word else segment for word, segment in zip(shape, segments, strict=True))
        ]
        fitting.sort(key=lambda pair: [not word for word in pair[0]])
        return fitting


def _not_allowed(methods: Iterable[str]) -> HttpError:
    allow = ", ".join(sorted(methods))
    return HttpError(405, "method_not_allowed", "This path does not take this method.", headers=(("allow", allow),))


def _is_parameter(segment: str) -> bool:
    return len(segment) > 2 and segment.startswith("{") and segment.endswith("}")
