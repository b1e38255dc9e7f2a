"""Every path the server answers: the rows of `operations`, each with what answers it. Runs nothing."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import cast

from gateway.api import chat, documents, feed, openapi, signin, static
from gateway.api.folding import folder, places_of
from gateway.api.plain import PlainEdge
from gateway.api.reading import LARGE_BYTES, read_query
from gateway.api.responses import envelope_response, json_response
from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.http.messages import Request, Response
from gateway.http.router import Route, Router
from gateway.offload import ThreadOffload
from gateway.operations import every, prompts
from gateway.operations.operation import Answer, Door, Operation
from gateway.operations.probes import PROBE_OPERATIONS
from gateway.schema import decoder, encoder
from gateway.settings import Settings
from gateway.strict_json import write_json, write_time

Handler = Callable[[Request, Principal, RequestContext], Awaitable[Response]]
"""What answers a request whose caller may come in. Adds only headers of its own; GatewayErrors pass through it."""


class Endpoint:
    """One row, ready to answer: compiled for its first request, looked at never again.

    Most rows are asked for by no one for hours, and compiling them all would take a third of the start.
    """

    __slots__ = (
        "body_bytes", "body_setting", "door", "handle", "has_secret", "in_work", "is_for_keys", "is_internal",
        "is_openai", "is_shed", "make", "name", "needs", "path", "scope",
    )  # fmt: skip

    def __init__(self, operation: Operation, make: Callable[[], Handler], settings: Settings) -> None:
        self.name = operation.name
        self.path = operation.route[1]
        self.door = operation.door
        self.is_internal = operation.door.is_internal
        self.needs = operation.needs
        # Of a row that is for keys alone. By type, since a scope and a permission may have the same text.
        self.scope = operation.needs if operation.door is Door.KEY and isinstance(operation.needs, Scope) else None
        # A known key is all that has to be looked at.
        self.is_for_keys = self.scope is not None or (operation.door is Door.OPTIONAL and operation.needs is None)
        self.has_secret = operation.has_secret
        # Who asks how we are is answered however busy we are.
        self.is_shed = operation.door not in (Door.OPEN, Door.OPTIONAL, Door.LOOPBACK)
        self.in_work = 0
        self.is_openai = operation.is_openai
        self.body_setting = operation.body_setting
        self.body_bytes: int = getattr(settings, operation.body_setting)
        self.handle: Handler = self._first
        self.make = make

    async def _first(self, request: Request, who: Principal, context: RequestContext) -> Response:
        self.handle = self.make()
        return await self.handle(request, who, context)


def make_router(gateway: Gateway) -> Router[Endpoint]:
    """Return the router of all rows. Probes are routed from the start, prompts when the first request of another path
    comes, and all the rest when one comes whose path is neither: its rows take a moment to load.
    """
    later = (lambda: routes(gateway, prompts.PROMPT_OPERATIONS), lambda: routes(gateway, every.OTHER_OPERATIONS))
    return Router(routes(gateway, PROBE_OPERATIONS), later)


def routes(gateway: Gateway, operations: Sequence[Operation]) -> list[Route[Endpoint]]:
    """Return one route a row. Raises ValueError for a row that nothing answers."""
    edges = _Edges(gateway)
    table = []
    for operation in operations:
        if operation.call is not None:
            make = partial(_calling, gateway, operation)
        elif operation.name in _ANSWERS:
            make = partial(_guarding, gateway, operation, edges)
        else:
            raise ValueError(f"nothing answers {operation.name}")
        table.append(Route(*operation.route, Endpoint(operation, make, gateway.settings)))
    return table


class _Edges:
    """What answers the rows that have no call: probes from the start, the others from their first request on."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.probes = PlainEdge(gateway, self._document)

    @cached_property
    def chats(self) -> "chat.ChatEdge":
        """Chat completions."""
        return chat.ChatEdge(self._gateway)

    @cached_property
    def people(self) -> "signin.SignInEdge":
        """Who signs in."""
        return signin.SignInEdge(self._gateway)

    @cached_property
    def downloads(self) -> "documents.DocumentEdge":
        """What is saved as a file."""
        return documents.DocumentEdge(self._gateway)

    @cached_property
    def news(self) -> "feed.FeedEdge":
        """What happens now."""
        return feed.FeedEdge(self._gateway)

    @cached_property
    def pages(self) -> "static.StaticEdge":
        """The dashboard's files."""
        return static.StaticEdge()

    def _document(self) -> Mapping[str, object]:
        return openapi.document(every.DESCRIBED_OPERATIONS, self._gateway.settings)


_ANSWERS: Mapping[str, Callable[[_Edges], Handler]] = {
    "chat.completions": lambda edges: edges.chats.complete,
    "models.list": lambda edges: edges.chats.models,
    "models.show": lambda edges: edges.chats.model,
    "health": lambda edges: edges.probes.health,
    "openapi": lambda edges: edges.probes.openapi,
    "metrics": lambda edges: edges.probes.metrics,
    "auth.login": lambda edges: edges.people.login,
    "auth.session": lambda edges: edges.people.session,
    "auth.logout": lambda edges: edges.people.logout,
    "auth.password": lambda edges: edges.people.password,
    "sessions.end_all": lambda edges: edges.people.end_all,
    "audit.export": lambda edges: edges.downloads.audit_export,
    "reports.document": lambda edges: edges.downloads.report,
    "feed": lambda edges: edges.news.watch,
    "dashboard.page": lambda edges: edges.pages.page,
    "dashboard.file": lambda edges: edges.pages.file,
    "dashboard.module": lambda edges: edges.pages.file,
}


def _taking(gateway: Gateway, operation: Operation) -> Callable[[Request], object]:
    """Return what makes the row's record of a request. A row that takes nothing refuses every query."""
    parameters = {parameter.name: parameter for parameter in operation.query}
    clock = gateway.clock
    if operation.takes is None or parameters:
        make = operation.takes
        places = places_of(operation)

        def take_query(request: Request) -> object:
            values = read_query(request.query, parameters, now_at=clock.now_at()) if request.query else {}
            if make is None:
                return None
            if places:
                path = request.path.split("/")
                values |= {name: path[index] for name, index in places.items()}
            return make(**values)

        return take_query
    decode = decoder(operation.takes, now=clock.now_at)
    fold = folder(operation)

    def take_body(request: Request) -> object:
        if request.query:
            read_query(request.query, parameters, now_at=0)
        return decode(fold(request))

    return take_body


def _guarding(gateway: Gateway, operation: Operation, edges: _Edges) -> Handler:
    """Put before an edge what it may not forget: refusing a query, unless its clients add parameters of their own."""
    handle = _ANSWERS[operation.name](edges)
    if operation.is_openai:
        return handle
    take = _taking(gateway, operation)

    def guard(request: Request, who: Principal, context: RequestContext) -> Awaitable[Response]:
        take(request)
        return handle(request, who, context)

    return guard


def _calling(gateway: Gateway, operation: Operation) -> Handler:
    """Return what reads, calls and writes a row that an operation of a service answers."""
    call, gives, clock = operation.call, operation.gives, gateway.clock
    if call is None or gives is None:
        raise ValueError(f"{operation.name} must say what it calls and gives")
    take = _taking(gateway, operation)
    write = operation.write or encoder(gives)
    status = operation.status
    is_page, is_bare = operation.answer is Answer.PAGE, operation.answer is Answer.BARE
    aside = ThreadOffload(wait_seconds=gateway.settings.max_wait_seconds)

    async def handle(request: Request, who: Principal, context: RequestContext) -> Response:
        if len(request.body) > LARGE_BYTES:
            command = await aside.run(take, request)
        else:
            command = take(request)
        value = await call(gateway, who, command, context)
        if is_bare:
            return json_response(write(value))
        page = cast("Page[object]", value) if is_page else None
        data = write(value) if page is None else [write(item) for item in page.items]
        return envelope_response(
            write_json(data), page, request_id=context.request_id, timestamp=write_time(clock.now_at()), status=status
        )

    return handle
