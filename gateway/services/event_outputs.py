"""Keep event outputs and their secrets, and open their connections. `event_sender` sends the events."""

import base64
import os
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from gateway.domain.addresses import BASE_URL_PROMISE, MAX_URL_CHARS, address_check, check_host, read_base_url
from gateway.domain.event_outputs import (
    ALL_KINDS,
    FILE_PROMISE,
    MAX_WAITING,
    SECRET_PREFIX,
    SECRET_PROMISE,
    SYSLOG_PROMISE,
    EventKind,
    EventOutput,
    EventSeverity,
    OutEvent,
    OutputFormat,
    OutputKind,
    kind_of_target,
    read_file_target,
    read_secret,
    read_syslog_target,
)
from gateway.domain.principals import Caller
from gateway.domain.providers import read_key
from gateway.errors import Conflict, GatewayError, InvalidRequest
from gateway.field_types import PlainName
from gateway.outputs.delivery import Delivery, DeliveryFailed
from gateway.outputs.jsonlines import JsonLines
from gateway.outputs.syslog import Syslog
from gateway.outputs.webhook import Post, Webhook
from gateway.schema import Bounds, check
from gateway.services.provider_keys import STORED, KeyedResource, ProviderKeys
from gateway.services.resource import as_conflict, patched
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

MAX_OUTPUTS = 20
EVENTS_FOLDER = "events"
SECRET_BYTES = 32
_REFERENCES = ("env:", "file:", "cred:")

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
    format: OutputFormat = OutputFormat.JSON
    allow_private: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOutput:
    """Changes of an output; None leaves a field as it is."""

    name: PlainName | None = None
    target: _AnyTarget | None = None
    secret: _Secret | None = field(default=None, repr=False)
    kinds: _Kinds | None = None
    min_severity: EventSeverity | None = None
    format: OutputFormat | None = None
    allow_private: bool | None = None
    enabled: bool | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CreatedOutput:
    """A new output. secret: for the signatures of a webhook, if the gateway made it; shown this once."""

    output: EventOutput
    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a test event."""

    ok: bool
    reason: str | None
    elapsed_ms: float


class EventOutputs(KeyedResource[EventOutput]):
    """The event outputs of this database. Their changes are no changes of authority: the generation stays.

    post: sends a request. folder: the parent of the event files, None without a data folder.
    """

    noun, nouns = "event output", "event outputs"
    name_field = "name"
    most = MAX_OUTPUTS
    audited = ("name", "kind", "target", "kinds", "min_severity", "format", "allow_private", "enabled")

    key_field = key_param = "secret"
    post: Post
    secrets: ProviderKeys
    folder: str | None

    async def list_waiting(self) -> tuple[tuple[EventOutput, int], ...]:
        """Return all outputs, oldest first, each with the number of its waiting events."""

        def work(tx: Transaction) -> tuple[tuple[EventOutput, int], ...]:
            newest = self.store.audit.newest_position(tx), self.store.alerts.newest_position(tx)
            return tuple((one, _waiting(one, *newest)) for one in self.store.event_outputs.all(tx))

        return await self.store.db.read(work)

    async def create(self, caller: Caller, new: NewOutput) -> CreatedOutput:
        """Create an output. It begins with the next event. Raises as `Resource.create`."""
        check(new)
        made = None
        if new.kind is OutputKind.WEBHOOK and new.secret is None:
            made = SECRET_PREFIX + base64.b64encode(self.ids.random_bytes(SECRET_BYTES)).decode()
            new = replace(new, secret=made)
        blank = EventOutput(**self._born("out", caller.principal), name="", kind=new.kind, target="")
        reference = f"{STORED}{self.ids.new('key')}"
        record = self._patched(blank, new, reference)

        def work(tx: AuthorityTransaction) -> EventOutput:
            audit, alert = self.store.audit.newest_position(tx), self.store.alerts.newest_position(tx)
            return self._insert(tx, replace(record, audit_position=audit, alert_position=alert))

        return CreatedOutput(await self._commit_with_key(caller, work, record.secret, new.secret), made)

    async def change(self, caller: Caller, name: str, changes: ChangedOutput) -> EventOutput:
        """Change an output. The sender uses the change within seconds.

        Raises as `Resource.change`, also Conflict if a field does not fit the kind of the output.
        """
        check(changes)
        reference = f"{STORED}{self.ids.new('key')}"

        def changed(before: EventOutput) -> EventOutput:
            if changes.target is not None and kind_of_target(changes.target) is not before.kind:
                reason = f"target does not fit an output of the kind {before.kind.value}."
                raise Conflict(reason, param="target")
            return self._patched(before, changes, reference)

        key = None if changes.secret is None or changes.secret.startswith(_REFERENCES) else changes.secret
        update = partial(self._update, name=name, version=changes.version, change=changed)
        return await self._commit_with_key(caller, update, reference, key)

    async def test(self, caller: Caller, name: str) -> Tried:
        """Send one test event past the queue and the filters. Raises NotFound or AuditUnavailable: nothing was sent."""
        output = await self.store.db.read(lambda tx: self.find(tx, name))
        now_at = self.clock.now_at()
        data = {"message": "A test of this event output.", "output": output.name, "sent_by": caller.principal.name}
        event = OutEvent(self.ids.new("evt"), "test", EventSeverity.INFO, now_at, data)
        await self.audit.commit_authority(caller, lambda tx: self._append(tx, "tested", output.id))
        started_seconds = self.clock.monotonic_seconds()
        reason = None
        try:
            async with aclosing(self.open(output)) as sink:
                await sink.deliver(event)
        except DeliveryFailed as error:
            reason = error.message
        elapsed_ms = round((self.clock.monotonic_seconds() - started_seconds) * 1000, 1)
        return Tried(reason is None, reason, elapsed_ms)

    def open(self, output: EventOutput) -> Delivery:
        """Return the connection of an output. Does not connect yet.

        Raises DeliveryFailed if the secret is not where the record says, or there is no folder for files.
        """
        allow = address_check(allow_private=output.allow_private)
        match output.kind:
            case OutputKind.WEBHOOK:
                try:
                    key = read_secret(self.secrets.read(output.secret) or "")
                except GatewayError as error:
                    raise DeliveryFailed(f"The webhook cannot be signed. {error.message}") from error
                return Webhook(
                    self.post, output.target, key=key, form=output.format, clock=self.clock, allow_address=allow
                )
            case OutputKind.SYSLOG:
                way, host, port = read_syslog_target(output.target)
                return Syslog(way, host, port, sender=self.store.node_id, form=output.format, allow_address=allow)
            case OutputKind.JSONL:
                if self.folder is None:
                    raise DeliveryFailed("The data is in memory, so there is no folder for files.")
                return JsonLines(os.path.join(self.folder, EVENTS_FOLDER), output.target, output.format)

    def _write(self, tx: Transaction, before: EventOutput, after: EventOutput) -> None:
        self.store.event_outputs.change(tx, after)
        if before.secret != after.secret:
            self._drop_key(tx, before)

    def _check_removal(self, tx: AuthorityTransaction, record: EventOutput) -> None:
        self._drop_key(tx, record)

    def _patched(self, record: EventOutput, wanted: NewOutput | ChangedOutput, reference: str) -> EventOutput:
        """Return the record with its changes, checked. reference: of a secret that the gateway keeps."""
        after = patched(
            record,
            wanted,
            name=record.name if wanted.name is None else wanted.name.strip(),
            kinds=record.kinds if wanted.kinds is None else tuple(dict.fromkeys(wanted.kinds)),
            secret=record.secret,
        )
        if wanted.secret is not None:
            if record.kind is not OutputKind.WEBHOOK:
                refuse = InvalidRequest if isinstance(wanted, NewOutput) else Conflict
                raise refuse("Only a webhook has a secret.", param="secret")
            if wanted.secret.startswith(_REFERENCES):
                reference = read_key(wanted.secret, param="secret")[0] or reference
            else:
                read_secret(wanted.secret)
            self.secrets.check(reference, param="secret")
            after = replace(after, secret=reference)
        with as_conflict(wanted.target is None):
            return replace(after, target=_read_target(after))


def _read_target(output: EventOutput) -> str:
    try:
        match output.kind:
            case OutputKind.WEBHOOK:
                return read_base_url(output.target, allow_private=output.allow_private)
            case OutputKind.SYSLOG:
                check_host(read_syslog_target(output.target)[1], allow_private=output.allow_private)
                return output.target
            case OutputKind.JSONL:
                return read_file_target(output.target)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.replace("base_url", "target"), param="target") from error


def _waiting(output: EventOutput, newest_audit: int, newest_alert: int) -> int:
    """Return how many events are not sent yet, at most `MAX_WAITING`."""
    audit = max(newest_audit - output.audit_position, 0) if "audit" in output.kinds else 0
    alerts = max(newest_alert - output.alert_position, 0) if "alert" in output.kinds else 0
    return min(audit + alerts, MAX_WAITING)
