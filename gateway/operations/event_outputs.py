"""The rows of event outputs on the internal API, and their view. The rules are in `services.event_outputs`."""

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
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun, whole
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
    """An event output to create. secret: of a webhook; without one the gateway makes it and shows it once."""

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
    """Changes of an output; None leaves a field as it is."""

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
    """An event output and its counters.

    secret_source: where the secret is kept, such as ``env:NAME`` or ``stored``; None without a secret. waiting: events
    not sent yet. dropped: events lost because too many waited. secret: only in the answer that creates the output.
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
    return whole(tuple(_view(output, waiting) for output, waiting in await gateway.event_outputs.list()))


async def create_output(gateway: Gateway, who: Principal, command: NewOutput, context: RequestContext) -> OutputView:
    """Create an output and show its secret this once."""
    made = await gateway.event_outputs.create(who, project(WantedOutput, command, version=None), context)
    return _view(made.output, 0, made.secret)


def _view(output: EventOutput, waiting: int, secret: str | None = None) -> OutputView:
    source = output.secret.partition(":")[0] if output.secret and output.secret.startswith("stored:") else output.secret
    return project(OutputView, output, secret_source=source, waiting=waiting, secret=secret)


def _of(one: OutputKind, promise: str, **properties: JsonSchema) -> JsonSchema:
    return kind(kind={"const": one.value}, target={"type": "string", "pattern": promise}, **properties)


_OUTPUTS = Noun(
    name="event_outputs",
    path="/api/event-outputs",
    service=lambda gateway: gateway.event_outputs,
    gives=OutputView,
    view=lambda gateway, output: _view(output, 0),
    reads=Permission.SETTINGS_READ,
    manages=Permission.SETTINGS_MANAGE,
)

EVENT_OUTPUT_OPERATIONS = (
    _OUTPUTS.list("List the event outputs with what they sent, what waits and what was dropped.", call=list_outputs),
    _OUTPUTS.create(
        NewOutput,
        "Create an event output: `kind` `webhook`, `syslog` or `jsonl`, and its `target`.",
        call=create_output,
        kinds=(
            _of(OutputKind.WEBHOOK, BASE_URL_PROMISE),
            _of(OutputKind.SYSLOG, SYSLOG_PROMISE, secret={"type": "null"}),
            _of(OutputKind.JSONL, FILE_PROMISE, secret={"type": "null"}),
        ),
        has_secret=True,
    ),
    _OUTPUTS.change(
        PatchOutput,
        "Change an event output. `version` or `If-Match` guards.",
        call=_OUTPUTS.showing(
            lambda outputs, who, command, context: outputs.change(
                who, command.id, project(WantedOutput, command, kind=None), context
            )
        ),
    ),
    _OUTPUTS.remove("Remove an event output."),
    _OUTPUTS.row(
        "test",
        "POST /{id}/test",
        "Send one test event now, and say what became of it.",
        takes=ById,
        gives=Tried,
        call=lambda gateway, who, command, context: gateway.event_outputs.test(who, command.id, context),
    ),
)
