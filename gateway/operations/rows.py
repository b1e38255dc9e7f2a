"""Short ways to write rows: `row` for any operation, `Noun` for the five that most kept records have.

A row says `needs` once and its door follows: a scope belongs to an API key, a permission to a session. `Noun` calls the
method of its service that has the row's name, so a row that needs an `if` passes a `call` of its own.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, TypedDict, Unpack

from gateway.app import Gateway
from gateway.domain.paging import DEFAULT_LIMIT, Page, PageQuery
from gateway.domain.principals import Permission, Principal, RequestContext, Scope
from gateway.operations.operation import Answer, ById, Call, Door, Operation, Parameter, cursor, limit
from gateway.schema import JsonSchema


class Options(TypedDict, total=False):
    """The fields of an `Operation` that a row may leave out."""

    door: Door
    takes: type[object] | None
    query: tuple[Parameter, ...]
    gives: type[object] | None
    write: Callable[[Any], object] | None
    schema: Callable[[], JsonSchema] | None
    answer: Answer
    call: Call | None
    status: int
    body_setting: str
    max_chars: Mapping[str, str] | None
    kinds: tuple[JsonSchema, ...]
    fails: tuple[str, ...]
    has_secret: bool
    is_openai: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOf20(PageQuery):
    """Which page of a list to return, 20 items by default."""

    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOf100(PageQuery):
    """Which page of a list to return, 100 items by default."""


def paging(high: int, default: int = DEFAULT_LIMIT) -> tuple[Parameter, Parameter]:
    """Return the two parameters of a list that has pages."""
    return limit(high, default), cursor()


def row(name: str, route: str, needs: Scope | Permission | None, summary: str, **options: Unpack[Options]) -> Operation:
    """Return a row. route: method and path, such as ``GET /api/budgets``."""
    method, _, path = route.partition(" ")
    options.setdefault("door", Door.KEY if isinstance(needs, Scope) else Door.SESSION)
    return Operation(name=name, route=(method, path), needs=needs, summary=summary, **options)


def public(twin: Operation, name: str, scope: Scope, summary: str = "") -> Operation:
    """Return the row of the public API, for API keys, that answers as `twin` does on the internal API."""
    route = twin.route[0], twin.route[1].replace("/api/", "/api/v1/", 1)
    return replace(twin, name=name, route=route, door=Door.KEY, needs=scope, summary=summary or twin.summary)


def whole(items: tuple[Any, ...]) -> Page[Any]:
    """Return all items as the only page."""
    return Page(items, len(items), None)


def with_id(changes: type[object]) -> type[object]:
    """Return the record `changes` with one more field, the `id` from the path."""
    return make_dataclass(
        f"Patch{changes.__name__}", [("id", str)], bases=(changes,), frozen=True, slots=True, kw_only=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """One kind of kept record on the internal API.

    name: prefix of the names of its rows. path: of its list. service: where its rules are kept. gives: the record that
    is shown. view: from what the service returns to what is shown. reads, manages: the permissions.
    """

    name: str
    path: str
    service: Callable[[Gateway], Any]
    gives: type[object]
    reads: Permission
    manages: Permission
    view: Callable[[Gateway, Any], object] = lambda gateway, record: record

    def row(self, verb: str, route: str, summary: str, **options: Unpack[Options]) -> Operation:
        """Return any row of this noun. route: method and what follows the noun's path, such as ``POST /{id}/test``."""
        method, _, suffix = route.partition(" ")
        needs = self.reads if method == "GET" else self.manages
        options.setdefault("gives", self.gives)
        return row(f"{self.name}.{verb}", f"{method} {self.path}{suffix}", needs, summary, **options)

    def list(self, summary: str, *, verb: str = "list", **options: Unpack[Options]) -> Operation:
        """Return the row of the list: all records as one page, or a page of them if the row takes a query."""

        async def call(gateway: Gateway, who: Principal, command: Any, context: RequestContext) -> object:
            service = self.service(gateway)
            page = whole(await service.list()) if command is None else await service.page(command)
            return Page(tuple(self.view(gateway, one) for one in page.items), page.limit, page.next)

        options.setdefault("call", call)
        options["answer"] = Answer.PAGE
        return self.row(verb, "GET", summary, **options)

    def create(
        self, record: type[object], summary: str, *, verb: str = "create", **options: Unpack[Options]
    ) -> Operation:
        """Return the row that makes a record. record: what its maker says of it."""
        options.setdefault(
            "call", self.showing(lambda service, who, command, context: service.create(who, command, context))
        )
        options |= {"takes": record, "status": 201}
        return self.row(verb, "POST", summary, **options)

    def show(self, summary: str, **options: Unpack[Options]) -> Operation:
        """Return the row that shows one record."""
        options.setdefault("call", self.showing(lambda service, who, command, context: service.show(command.id)))
        options["takes"] = ById
        return self.row("show", "GET /{id}", summary, **options)

    def change(self, changes: type[object], summary: str, **options: Unpack[Options]) -> Operation:
        """Return the row that changes a record. changes: its fields, without the id."""
        options.setdefault(
            "call",
            self.showing(lambda service, who, command, context: service.change(who, command.id, command, context)),
        )
        options["takes"] = with_id(changes)
        return self.row("change", "PATCH /{id}", summary, **options)

    def remove(self, summary: str, **options: Unpack[Options]) -> Operation:
        """Return the row that removes a record and shows it a last time."""
        options.setdefault(
            "call", self.showing(lambda service, who, command, context: service.remove(who, command.id, context))
        )
        options.setdefault("takes", ById)
        return self.row("remove", "DELETE /{id}", summary, **options)

    def showing(self, act: Callable[[Any, Principal, Any, RequestContext], Awaitable[Any]]) -> Call:
        """Return a call that shows what `act` returns. `act` gets the service in place of the gateway."""

        async def call(gateway: Gateway, who: Principal, command: Any, context: RequestContext) -> object:
            return self.view(gateway, await act(self.service(gateway), who, command, context))

        return call
