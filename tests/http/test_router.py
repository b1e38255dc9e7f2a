"""Routing: literal before place, 404, 405 with Allow."""

import pytest

from gateway.http.messages import HttpError
from gateway.http.router import Router

ROUTES = (
    ("GET", "/", "root"),
    ("GET", "/api/alerts", "list"),
    ("POST", "/api/alerts", "make"),
    ("GET", "/api/alerts/{id}", "show"),
    ("POST", "/api/alerts/{id}/close", "close"),
    ("GET", "/api/alerts/stats", "stats"),
    ("POST", "/api/{noun}/stats", "noun"),
    ("HEAD", "/own", "own head"),
    ("GET", "/own", "own get"),
    ("POST", "/only", "only"),
)


def refused(method: str, path: str) -> HttpError:
    with pytest.raises(HttpError) as caught:
        Router(ROUTES).match(method, path)
    return caught.value


@pytest.mark.parametrize(
    ("method", "path", "handler"),
    [
        ("GET", "/", "root"),
        ("GET", "/api/alerts", "list"),
        ("POST", "/api/alerts", "make"),
        ("HEAD", "/api/alerts", "list"),
        ("HEAD", "/own", "own head"),
        ("GET", "/api/alerts/alr_1", "show"),
        ("HEAD", "/api/alerts/alr_1", "show"),
        ("POST", "/api/alerts/a b/close", "close"),
        ("GET", "/api/alerts/stats", "stats"),
        ("POST", "/api/other/stats", "noun"),
    ],
)
def test_a_request_finds_its_route(method: str, path: str, handler: str) -> None:
    assert Router(ROUTES).match(method, path) == handler


@pytest.mark.parametrize("path", ["/none", "/api/alerts/", "/api/alerts/1/open", "/api", "/api/alerts/1/close/2", ""])
def test_an_unknown_path_is_404(path: str) -> None:
    error = refused("GET", path)
    assert (error.status, error.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/api/alerts", "GET, HEAD, POST"),
        ("get", "/api/alerts", "GET, HEAD, POST"),
        ("POST", "/api/alerts/1", "GET, HEAD"),
        ("POST", "/api/alerts/stats", "GET, HEAD"),
    ],
)
def test_a_known_path_with_another_method_is_405_and_names_the_allowed_ones(method: str, path: str, allow: str) -> None:
    error = refused(method, path)
    assert (error.status, error.code, error.headers) == (405, "method_not_allowed", (("allow", allow),))


def test_the_shape_with_the_earlier_literal_wins() -> None:
    router = Router((("GET", "/a/{x}/c", 1), ("GET", "/{y}/b/c", 2), ("GET", "/a/b/{z}", 3)))
    assert router.match("GET", "/a/b/c") == 3
    assert router.match("GET", "/a/x/c") == 1
    assert router.match("GET", "/z/b/c") == 2


@pytest.mark.parametrize(
    "routes",
    [
        (("GET", "/a", 1), ("GET", "/a", 2)),
        (("GET", "/a/{x}", 1), ("GET", "/a/{y}", 2)),
        (("GET", "a", 1),),
        (("GET", "/{x}/{x}", 1),),
    ],
)
def test_a_table_that_is_ambiguous_or_malformed_is_refused(routes: tuple[tuple[str, str, int], ...]) -> None:
    with pytest.raises(ValueError):
        Router(routes)
