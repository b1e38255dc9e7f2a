"""Short ways to write rows: `row` for any operation, `Noun` for those of one kind of record.

The door of a row follows from `needs`: a scope belongs to an API key, a permission to a session. A row of a `Noun`
calls the service method of its name and shows the result; a row that needs other code passes a `call` of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, cast

from gateway.app import Gateway
from gateway.domain.paging import DEFAULT_LIMIT, Page, PageQuery
from gateway.domain.principals import Caller, Permission, Scope
from gateway.operations.operation import ById, Call, Door, Operation, Parameter, choice, cursor, integer

View = Callable[[Gateway, Any], object]
"""From what a service returns to what is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOf20(PageQuery):
    """Which page of a list to return, 20 items by default."""

    limit: int = 20


def paging(high: int, default: int = DEFAULT_LIMIT, sorts: Iterable[str] = ()) -> tuple[Parameter, ...]:
    """Return the parameters of a list that has pages. sorts: the names of what it can be sorted by."""
    names = tuple(name for sort in sorts for name in (sort, f"-{sort}"))
    about = "What to sort by, lowest first; with `-` before it, highest first. If left out: newest first."
    sort = (choice("sort", names, about),) if names else ()
    return (*sort, integer("limit", "Most items of one page.", 1, high, default), cursor())


def row(name: str, route: str, needs: Scope | Permission | None, summary: str, **options: Any) -> Operation:
    """Return a row. route: method and path, such as ``GET /api/budgets``. options: other fields of `Operation`."""
    method, _, path = route.partition(" ")
    options.setdefault("door", Door.KEY if isinstance(needs, Scope) else Door.SESSION)
    return Operation(name=name, route=(method, path), needs=needs, summary=summary, **options)


def public(twin: Operation, name: str, scope: Scope, summary: str = "") -> Operation:
    """Return the row of the public API, for API keys, that answers as `twin` does on the internal API."""
    route = twin.route[0], twin.route[1].replace("/api/", "/api/v1/", 1)
    return replace(twin, name=name, route=route, door=Door.KEY, needs=scope, summary=summary or twin.summary)


def whole(items: tuple[Any, ...]) -> Page[Any]:
    """Return all items as the only page."""
    return Page(items, len(items), None, len(items))


def with_id(changes: type[object]) -> type[object]:
    """Return the record `changes` with one more field, the `id` from the path."""
    return make_dataclass(
        f"Patch{changes.__name__}", [("id", str)], bases=(changes,), frozen=True, slots=True, kw_only=True
    )


@dataclass(frozen=True, slots=True)
class Noun:
    """One kind of record on the internal API.

    name: prefix of the names of its rows. gives: the record that is shown. reads, manages: the permissions. path: of
    its list, if it does not follow from the name. service: the attribute of the gateway that keeps its rules, if it is
    not the name.
    """

    name: str
    gives: type[object]
    reads: Permission
    manages: Permission
    view: View = lambda gateway, record: record
    path: str = ""
    service: str = ""

    def row(self, verb: str, route: str, summary: str, *, method: str = "", **options: Any) -> Operation:
        """Return any row of this noun.

        route: HTTP method and what follows the noun's path, such as ``POST /{id}/test``. method: of the service, if it
        is not the verb. It gets the caller, the id if the path has one, the record unless it holds only the id, and the
        context. In options, `call` replaces the method, and `view` that of the noun, which shows only what the noun
        gives.
        """
        http_method, _, suffix = route.partition(" ")
        path = self.path or "/api/" + self.name.replace("_", "-").replace(".", "/")
        takes, has_id = options.get("takes"), suffix.startswith("/{id}")
        is_of_noun = options.setdefault("gives", self.gives) is self.gives
        call: Call | None = options.pop("call", None)
        view: View | None = options.pop("view", self.view if is_of_noun else None)

        async def act(gateway: Gateway, caller: Caller, command: Any) -> object:
            if call is not None:
                result = await call(gateway, caller, command)
            else:
                given = ((command.id,) if has_id else ()) + (() if takes in (None, ById) else (command,))
                result = await self._act(gateway, method or verb)(caller, *given)
            return result if view is None else view(gateway, result)

        needs = self.reads if http_method == "GET" else self.manages
        return row(f"{self.name}.{verb}", f"{http_method} {path}{suffix}", needs, summary, call=act, **options)

    def list(self, summary: str, *, verb: str = "list", method: str = "list", **options: Any) -> Operation:
        """Return the row of the list: a page of the records that the query selects, or all that `method` returns."""
        view: View = options.pop("view", self.view)

        async def call(gateway: Gateway, caller: Caller, command: Any) -> Page[object]:
            if command is None:
                return whole(await self._act(gateway, method)())
            return cast("Page[object]", await self._act(gateway, "page")(command))

        def view_page(gateway: Gateway, page: Page[object]) -> Page[object]:
            return replace(page, items=tuple(view(gateway, one) for one in page.items))

        return self.row(verb, "GET", summary, is_list=True, call=call, view=view_page, **options)

    def create(
        self, new: type[object], summary: str, *, verb: str = "create", method: str = "create", **options: Any
    ) -> Operation:
        """Return the row that creates a record. new: what its creator states about it."""
        return self.row(verb, "POST", summary, method=method, takes=new, status=201, **options)

    def show(self, summary: str, *, method: str = "show", **options: Any) -> Operation:
        """Return the row that shows one record."""

        async def call(gateway: Gateway, caller: Caller, command: Any) -> object:
            return await self._act(gateway, method)(command.id)

        options.setdefault("call", call)
        return self.row("show", "GET /{id}", summary, takes=ById, **options)

    def change(self, changes: type[object], summary: str, **options: Any) -> Operation:
        """Return the row that changes a record. changes: its fields, without the id."""
        return self.row("change", "PATCH /{id}", summary, takes=with_id(changes), **options)

    def remove(self, summary: str, **options: Any) -> Operation:
        """Return the row that removes a record and shows it a last time."""
        return self.row("remove", "DELETE /{id}", summary, **{"takes": ById} | options)

    def _act(self, gateway: Gateway, method: str) -> Any:
        return getattr(getattr(gateway, self.service or self.name), method)
