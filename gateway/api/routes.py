"""The routing table: one route for each row of `operations`, with the handler that answers it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from gateway.api.chat import ChatEdge
from gateway.api.plain import PlainEdge
from gateway.api.reading import LARGE_BYTES, read_body, record_reader
from gateway.api.signin import SignInEdge
from gateway.api.static import StaticEdge, manual_page
from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Caller
from gateway.errors import InvalidRequest
from gateway.guardrails.contract import Call, Route
from gateway.guardrails.every import CONTRACTS
from gateway.http.messages import Request, Response
from gateway.http.router import Router
from gateway.offload import ThreadOffload
from gateway.operations.edges import MANUAL_OPERATIONS
from gateway.operations.every import ALL_OPERATIONS
from gateway.operations.operation import Door, Operation
from gateway.responses import envelope_response, json_response
from gateway.schema import encode

Handler = Callable[[Request, Caller], Awaitable[Response]]
"""Answers a request of an admitted caller. Adds only headers of its own; a GatewayError passes through."""
Edge = Callable[[Request, Caller, Any], Awaitable[Response]]
"""Answers the same from the request and the record that the operation takes."""
_CALL_ID = re.compile("[0-9a-f-]{8,64}")  # such as a UUID; any other text might be a secret


@dataclass(slots=True, eq=False)
class Endpoint:
    """One operation, ready to answer. in_progress: requests that it is answering now."""

    operation: Operation
    handle: Handler
    body_bytes: int
    in_progress: int = 0

    @property
    def path(self) -> str:
        """The path template."""
        return self.operation.route[1]

    @property
    def is_shed(self) -> bool:
        """Whether an overloaded gateway refuses requests. It answers probes under any load."""
        return self.operation.door not in (Door.OPEN, Door.OPTIONAL, Door.LOOPBACK)


def make_router(gateway: Gateway) -> Router[Endpoint]:
    """Return the router of all operations.

    Raises:
        ValueError: an operation has neither a call nor an edge that answers it.
    """
    edges = _edges(gateway)
    table = []
    for operation in ALL_OPERATIONS:
        if operation.call is not None:
            handle = _calling(gateway, operation)
        elif operation.name in edges:
            handle = _on_edge(gateway, operation, edges[operation.name])
        else:
            raise ValueError(f"nothing answers {operation.name}")
        body_bytes: int = getattr(gateway.settings, operation.body_setting)
        table.append((*operation.route, Endpoint(operation, handle, body_bytes)))
    return Router(table)


def _edges(gateway: Gateway) -> Mapping[str, Edge]:
    """Return what answers the operations without a call, by name."""
    plain, chat, signin, static = PlainEdge(gateway), ChatEdge(gateway), SignInEdge(gateway), StaticEdge()
    offload = ThreadOffload(wait_seconds=gateway.settings.max_wait_seconds)
    return {
        "chat.completions": chat.complete,
        "shield.chat": chat.try_out,
        "shield.models": chat.models,
        "models.list": chat.models,
        "models.show": chat.model,
        "health": plain.health,
        "openapi": plain.openapi,
        "metrics": plain.metrics,
        "about.sbom": plain.sbom,
        "auth.login": signin.login,
        "auth.session": signin.session,
        "auth.logout": signin.logout,
        "auth.password": signin.password,
        "sessions.end_all": signin.end_all,
        "audit.export": plain.audit_export,
        "reports.document": plain.report,
        "incidents.evidence": plain.evidence,
        "feed": plain.feed,
        "dashboard.page": static.page,
        "dashboard.file": static.file,
        "dashboard.module": static.file,
        **{one.operation: _guardrail(gateway, offload, one) for one in CONTRACTS},
        **{operation.name: manual_page for operation in MANUAL_OPERATIONS},
    }


def _guardrail(gateway: Gateway, offload: ThreadOffload, contract: Route) -> Edge:
    """Return what answers one contract. Whatever fails is an error of the API, and never a decision."""

    async def judge(request: Request, caller: Caller, command: None) -> Response:
        is_large = len(request.body) > LARGE_BYTES
        body = await offload.run(read_body, request) if is_large else read_body(request)
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        call = Call(body, request.headers, caller.context.request_id)
        call_id = body.get(contract.call_id)
        kept = call_id if isinstance(call_id, str) and _CALL_ID.fullmatch(call_id) else None
        judged = []
        for asked in await offload.run(contract.read, call) if is_large else contract.read(call):
            one = await gateway.guardrails.judge(caller, contract.name, asked, call_id=kept)
            gateway.metrics.count("gateway_scans_total", source=contract.name, verdict=str(one.result.verdict))
            judged.append(one)
        return json_response(contract.write(call, judged))

    return judge


def _on_edge(gateway: Gateway, operation: Operation, edge: Edge) -> Handler:
    """Return the handler that reads what the operation takes and lets an edge answer.

    OpenAI clients add query parameters of their own, so the gateway does not check the query of these operations.
    """
    take = (lambda request: None) if operation.is_openai else record_reader(operation, gateway.clock.now_at)
    return lambda request, caller: edge(request, caller, take(request))


def _calling(gateway: Gateway, operation: Operation) -> Handler:
    """Return the handler that decodes a request, calls the operation and encodes its result."""
    call, gives, clock = operation.call, operation.gives, gateway.clock
    if call is None or gives is None:
        raise ValueError(f"{operation.name} must say what it calls and gives")
    take = record_reader(operation, clock.now_at)
    write = operation.write or encode
    status = operation.status
    offload = ThreadOffload(wait_seconds=gateway.settings.max_wait_seconds)

    async def handle(request: Request, caller: Caller) -> Response:
        if len(request.body) > LARGE_BYTES:
            command = await offload.run(take, request)
        else:
            command = take(request)
        value = await call(gateway, caller, command)
        page = cast("Page[object]", value) if operation.is_list else None
        data = write(value) if page is None else [write(item) for item in page.items]
        return envelope_response(data, page, request_id=caller.context.request_id, now_at=clock.now_at(), status=status)

    return handle
