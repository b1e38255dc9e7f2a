"""The rows of event outputs on the internal API. Rules are kept in `services.event_outputs`."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.app import Gateway
from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS
from gateway.domain.event_outputs import (
    ALL_KINDS,
    FILE_PROMISE,
    SECRET_PROMISE,
    SYSLOG_PROMISE,
    EventKind,
    EventOutput,
    EventSeverity,
    OutputKind,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.field_types import PlainName
from gateway.operations.operation import Answer, ById, Door, Operation, kind
from gateway.operations.views import project
from gateway.schema import Bounds, JsonSchema
from gateway.services.event_outputs import Tried, WantedOutput

_ABOUT_TARGETS = (
    "A URL of a webhook; udp://, tcp:// or tls://HOST:PORT of a syslog; the name of a file: events.jsonl. A host "
    "may be an IP address as well; a private one, and localhost, with `allow_private`."
)
_Target = Annotated[str, Bounds(1, MAX_URL_CHARS), _ABOUT_TARGETS]
_EVERY_PROMISE = "|".join(promise[1:-1] for promise in (BASE_URL_PROMISE, SYSLOG_PROMISE, FILE_PROMISE))
_AnyTarget = Annotated[str, Bounds(1, MAX_URL_CHARS, promise=f"^(?:{_EVERY_PROMISE})$"), _ABOUT_TARGETS]
_Secret = Annotated[
    str,
    Bounds(1, 1000, promise=SECRET_PROMISE),
    "Of a webhook: whsec_ and 24 to 64 bytes in base64, or env:NAME, file:/PATH, cred:NAME.",
]
_Kinds = Annotated[tuple[EventKind, ...], Bounds(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOutput:
    """An event output to be made. secret: of a webhook; made, and told once, if it is not said."""

    name: PlainName
    kind: OutputKind
    target: _Target
    secret: _Secret | None = field(default=None, repr=False)
    kinds: _Kinds = ALL_KINDS
    min_severity: EventSeverity = EventSeverity.INFO
    allow_private: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOutput:
    """What is to change of the output `id`."""

    id: str
    name: PlainName | None = None
    target: _AnyTarget | None = None
    secret: _Secret | None = field(default=None, repr=False)
    kinds: _Kinds | None = None
    min_severity: EventSeverity | None = None
    allow_private: bool | None = None
    enabled: bool | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """An output as it is shown.

    secret_source: where the secret is, such as ``env:NAME`` or ``stored``; None for no secret. waiting: events that are
    still to be sent, and dropped: those that were too many. secret: in the answer to its making alone.
    """

    id: str
    name: str
    kind: OutputKind
    target: str
    secret_source: str | None
    kinds: tuple[EventKind, ...]
    min_severity: EventSeverity
    allow_private: bool
    enabled: bool
    created_at: int
    created_by: str
    version: int
    waiting: int
    sent: int
    failed: int
    dropped: int
    last_sent_at: int | None
    last_error: str | None
    last_error_at: int | None
    secret: str | None = field(default=None, repr=False)


async def list_outputs(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[OutputView]:
    """Return all outputs as one page."""
    views = tuple(_view(output, waiting) for output, waiting in await gateway.event_outputs.list())
    return Page(views, len(views), None)


async def create_output(gateway: Gateway, who: Principal, command: NewOutput, context: RequestContext) -> OutputView:
    """Make an output."""
    made = await gateway.event_outputs.create(who, project(WantedOutput, command, version=None), context)
    return _view(made.output, 0, made.secret)


async def change_output(gateway: Gateway, who: Principal, command: PatchOutput, context: RequestContext) -> OutputView:
    """Change an output."""
    wanted = project(WantedOutput, command, kind=None)
    return _view(await gateway.event_outputs.change(who, command.id, wanted, context), 0)


async def remove_output(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> OutputView:
    """Remove an output and show it a last time."""
    return _view(await gateway.event_outputs.remove(who, command.id, context), 0)


async def test_output(gateway: Gateway, who: Principal, command: ById, context: RequestContext) -> Tried:
    """Send a test event."""
    return await gateway.event_outputs.test(who, command.id, context)


def _view(output: EventOutput, waiting: int, secret: str | None = None) -> OutputView:
    source = output.secret.partition(":")[0] if output.secret and output.secret.startswith("stored:") else output.secret
    return project(OutputView, output, secret_source=source, waiting=waiting, secret=secret)


def _of(one: OutputKind, promise: str, **properties: JsonSchema) -> JsonSchema:
    return kind(kind={"const": one.value}, target={"type": "string", "pattern": promise}, **properties)


EVENT_OUTPUT_OPERATIONS = (
    Operation(
        name="event_outputs.list",
        route=("GET", "/api/event-outputs"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_READ,
        answer=Answer.PAGE,
        gives=OutputView,
        call=list_outputs,
        summary="List the event outputs with what they sent, what waits and what was dropped.",
    ),
    Operation(
        name="event_outputs.create",
        route=("POST", "/api/event-outputs"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=NewOutput,
        gives=OutputView,
        call=create_output,
        kinds=(
            _of(OutputKind.WEBHOOK, BASE_URL_PROMISE),
            _of(OutputKind.SYSLOG, SYSLOG_PROMISE, secret={"type": "null"}),
            _of(OutputKind.JSONL, FILE_PROMISE, secret={"type": "null"}),
        ),
        status=201,
        has_secret=True,
        summary="Create an event output: `kind` `webhook`, `syslog` or `jsonl`, and its `target`.",
    ),
    Operation(
        name="event_outputs.change",
        route=("PATCH", "/api/event-outputs/{id}"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=PatchOutput,
        gives=OutputView,
        call=change_output,
        summary="Change an event output. `version` or `If-Match` guards.",
    ),
    Operation(
        name="event_outputs.remove",
        route=("DELETE", "/api/event-outputs/{id}"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=ById,
        gives=OutputView,
        call=remove_output,
        summary="Remove an event output.",
    ),
    Operation(
        name="event_outputs.test",
        route=("POST", "/api/event-outputs/{id}/test"),
        door=Door.SESSION,
        needs=Permission.SETTINGS_MANAGE,
        takes=ById,
        gives=Tried,
        call=test_output,
        summary="Send one test event now, and say what became of it.",
    ),
)
