"""The rows of event outputs on the internal API, and their view. The rules are in `services.event_outputs`."""

from dataclasses import dataclass

from gateway.domain.addresses import BASE_URL_PROMISE
from gateway.domain.event_outputs import FILE_PROMISE, SYSLOG_PROMISE, EventOutput, OutputKind
from gateway.domain.principals import Permission
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun
from gateway.records import project
from gateway.schema import JsonSchema
from gateway.services.event_outputs import ChangedOutput, NewOutput, Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView(EventOutput):
    """An event output and its counters.

    secret_source: where the secret is kept, such as ``env:NAME`` or ``stored``; None without a secret. waiting: events
    not sent yet. dropped: events lost because too many waited. secret: only in the answer that creates the output.
    """

    secret_source: str | None
    waiting: int


def _view(output: EventOutput, waiting: int, secret: str | None = None) -> OutputView:
    source = output.secret.partition(":")[0] if output.secret and output.secret.startswith("stored:") else output.secret
    return project(OutputView, output, secret_source=source, waiting=waiting, secret=secret)


def _of(one: OutputKind, promise: str, **properties: JsonSchema) -> JsonSchema:
    return kind(kind={"const": one.value}, target={"type": "string", "pattern": promise}, **properties)


_OUTPUTS = Noun(
    "event_outputs",
    OutputView,
    Permission.SETTINGS_READ,
    Permission.SETTINGS_MANAGE,
    view=lambda gateway, output: _view(output, 0),
)

EVENT_OUTPUT_OPERATIONS = (
    _OUTPUTS.list(
        "List the event outputs with what they sent, what waits and what was dropped.",
        method="list_waiting",
        view=lambda gateway, given: _view(*given),
    ),
    _OUTPUTS.create(
        NewOutput,
        "Create an event output: `kind` `webhook`, `syslog` or `jsonl`, and its `target`.",
        view=lambda gateway, made: _view(made.output, 0, made.secret),
        kinds=(
            _of(OutputKind.WEBHOOK, BASE_URL_PROMISE),
            _of(OutputKind.SYSLOG, SYSLOG_PROMISE, secret={"type": "null"}),
            _of(OutputKind.JSONL, FILE_PROMISE, secret={"type": "null"}),
        ),
        has_secret=True,
    ),
    _OUTPUTS.change(ChangedOutput, "Change an event output. `version` or `If-Match` guards."),
    _OUTPUTS.remove("Remove an event output."),
    _OUTPUTS.row(
        "test", "POST /{id}/test", "Send one test event now, and say whether it arrived.", takes=ById, gives=Tried
    ),
)
