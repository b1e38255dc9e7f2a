"""Event outputs: made, changed, removed and tried. Sending is the work of `event_sender`."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gateway.clock import Clock, Ids
from gateway.domain.addresses import check_host, read_base_url
from gateway.domain.event_outputs import (
    ALL_KINDS,
    MAX_WAITING,
    SECRET_PREFIX,
    EventKind,
    EventOutput,
    EventSeverity,
    OutEvent,
    OutputKind,
    kind_of_target,
    read_file_target,
    read_secret,
    read_syslog_target,
)
from gateway.domain.principals import Principal, RequestContext
from gateway.domain.providers import read_key
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.field_types import read_plain_name
from gateway.outputs.delivery import DeliveryFailed
from gateway.services.audit import Audit
from gateway.services.event_sinks import EventSinks
from gateway.services.resource import AuditTrail, check_version
from gateway.services.typed_keys import STORED, commit_with_key, id_of, keep
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_OUTPUTS = 20
SECRET_BYTES = 32
_REFERENCES = ("env:", "file:", "cred:")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOutput:
    """What is said of an event output. None leaves a field as it is, or in a new one as it is by default.

    secret: ``whsec_…``, or where it is to be found: ``env:NAME``, ``file:PATH``, ``cred:NAME``.
    """

    name: str | None = None
    kind: OutputKind | None = None
    target: str | None = None
    secret: str | None = field(default=None, repr=False)
    kinds: tuple[EventKind, ...] | None = None
    min_severity: EventSeverity | None = None
    allow_private: bool | None = None
    enabled: bool | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class CreatedOutput:
    """A new output. secret: of the webhook's signature, told this once when the gateway made it."""

    output: EventOutput
    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a test event."""

    ok: bool
    reason: str | None
    elapsed_ms: float


class EventOutputs:
    """The event outputs of this database. Who may manage them is checked by the edges."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit, ways: EventSinks) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._ways = ways
        self._trail = AuditTrail(audit, "event_output")

    async def list(self) -> tuple[tuple[EventOutput, int], ...]:
        """Return all outputs, oldest first, each with how many events wait for it."""

        def work(tx: Transaction) -> tuple[tuple[EventOutput, int], ...]:
            newest = self._store.audit.newest_position(tx), self._store.alerts.newest_position(tx)
            return tuple((one, _waiting(one, *newest)) for one in self._store.event_outputs.all(tx))

        return await self._store.db.read(work)

    async def create(self, principal: Principal, wanted: WantedOutput, context: RequestContext) -> CreatedOutput:
        """Make an output. It begins with the events that come after it.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: the name is taken, or there are too many.
            AuditUnavailable: it was not made.
        """
        if wanted.kind is None or wanted.target is None:
            raise InvalidRequest("Say name, kind and target.", param="target" if wanted.kind else "kind")
        blank = EventOutput(
            id=self._ids.new("out"),
            name="",
            kind=wanted.kind,
            target="",
            created_at=self._clock.now_at(),
            created_by=principal.name,
        )
        made = None
        if wanted.kind is OutputKind.WEBHOOK and wanted.secret is None:
            made = SECRET_PREFIX + base64.b64encode(self._ids.random_bytes(SECRET_BYTES)).decode()
            wanted = replace(wanted, secret=made)
        reference = f"{STORED}{self._ids.new('key')}"
        record = self._changed(blank, wanted, reference)

        def work(tx: Transaction) -> EventOutput:
            have = self._store.event_outputs.all(tx)
            if len(have) >= MAX_OUTPUTS:
                raise Conflict(f"There are {MAX_OUTPUTS} event outputs; remove some first.")
            _check_name_is_free(have, record)
            placed = replace(
                record,
                audit_position=self._store.audit.newest_position(tx),
                alert_position=self._store.alerts.newest_position(tx),
            )
            self._keep_secret(placed, wanted)
            self._store.event_outputs.insert(tx, placed)
            self._trail.note(tx, "event_output_created", principal, context, id=record.id, after=_shown(record))
            return placed

        return CreatedOutput(await self._commit(work, reference, wanted), made)

    async def change(
        self, principal: Principal, output_id: str, wanted: WantedOutput, context: RequestContext
    ) -> EventOutput:
        """Change an output; within seconds its sender goes on with what it is now.

        Raises:
            InvalidRequest: a field. NotFound: there is none. AuditUnavailable: nothing was changed.
            Conflict: another version, the name is taken, or the field does not go with what the output is.
        """

        # Its id is made here, so that a secret whose commit fails can be found again.
        reference = f"{STORED}{self._ids.new('key')}"

        def work(tx: Transaction) -> EventOutput:
            before = self._find(tx, output_id)
            check_version(wanted.version, before.version, "event output")
            _check_kind_has(before, wanted)
            after = self._changed(before, wanted, reference)
            if after == before and wanted.secret is None:
                return before
            _check_name_is_free(self._store.event_outputs.all(tx), after)
            self._keep_secret(after, wanted)
            self._store.event_outputs.change(tx, after)
            if before.secret != after.secret:
                tx.after_commit(self._dropping(before))
            shown = {"before": _shown(before), "after": _shown(after)}
            self._trail.note(tx, "event_output_changed", principal, context, id=before.id, **shown)
            return self._find(tx, before.id)

        return await self._commit(work, reference, wanted)

    async def remove(self, principal: Principal, output_id: str, context: RequestContext) -> EventOutput:
        """Remove an output and return what it was.

        Raises:
            NotFound: there is none. AuditUnavailable: it is still there.
        """

        def work(tx: Transaction) -> EventOutput:
            before = self._find(tx, output_id)
            self._store.event_outputs.remove(tx, before.id)
            self._trail.note(tx, "event_output_removed", principal, context, id=before.id, before=_shown(before))
            tx.after_commit(self._dropping(before))
            return before

        return await self._audit.commit(work)

    async def test(self, principal: Principal, output_id: str, context: RequestContext) -> Tried:
        """Send one event of a test, past queue and filters, and say what became of it.

        Raises:
            NotFound: there is none. AuditUnavailable: nothing was sent.
        """
        output = await self._store.db.read(lambda tx: self._find(tx, output_id))
        now_at = self._clock.now_at()
        data = {"message": "A test of this event output.", "output": output.name, "sent_by": principal.name}
        event = OutEvent(self._ids.new("evt"), "test", EventSeverity.INFO, now_at, data)
        noted = self._audit.event(
            "event_output_tested",
            source="api",
            principal=principal,
            request=context,
            resource_type="event_output",
            resource_id=output.id,
        )
        await self._audit.record(noted)
        started_seconds = self._clock.monotonic_seconds()
        reason = None
        try:
            way = self._ways.open(output)
            try:
                await way.deliver(event)
            finally:
                await way.aclose()
        except DeliveryFailed as error:
            reason = error.message
        elapsed_ms = round((self._clock.monotonic_seconds() - started_seconds) * 1000, 1)
        return Tried(reason is None, reason, elapsed_ms)

    def _find(self, tx: Transaction, output_id: str) -> EventOutput:
        for output in self._store.event_outputs.all(tx):
            if output.id == output_id:
                return output
        raise NotFound("There is no such event output.")

    def _changed(self, record: EventOutput, wanted: WantedOutput, reference: str) -> EventOutput:
        """Return the record with what is wanted, checked. reference: of a secret that was typed in."""
        if wanted.kind is not None and wanted.kind is not record.kind:
            raise InvalidRequest("kind stays what it is; make another output.", param="kind")
        after = replace(
            record,
            name=record.name if wanted.name is None else read_plain_name(wanted.name),
            target=record.target if wanted.target is None else wanted.target,
            kinds=record.kinds if wanted.kinds is None else tuple(dict.fromkeys(wanted.kinds)),
            min_severity=wanted.min_severity or record.min_severity,
            allow_private=record.allow_private if wanted.allow_private is None else wanted.allow_private,
            enabled=record.enabled if wanted.enabled is None else wanted.enabled,
        )
        if not after.kinds or not set(after.kinds) <= set(ALL_KINDS):
            raise InvalidRequest("kinds must be audit, alert or both.", param="kinds")
        if wanted.secret is not None:
            secret = _reference(after, wanted.secret, reference)
            self._ways.check_secret(secret)
            after = replace(after, secret=secret)
        try:
            return replace(after, target=_read_target(after))
        except InvalidRequest as error:
            if wanted.target is not None:
                raise
            raise Conflict(error.message, param=error.param) from None  # what was taken away is needed

    async def _commit(
        self, work: Callable[[Transaction], EventOutput], reference: str, wanted: WantedOutput
    ) -> EventOutput:
        """Commit what keeps the secret, if one was typed in, as `reference`."""

        def is_named(tx: Transaction) -> bool:
            return any(one.secret == reference for one in self._store.event_outputs.all(tx))

        key_id = None if wanted.secret is None else id_of(reference)
        return await commit_with_key(self._audit.commit, self._store, work, key_id=key_id, is_named=is_named)

    def _keep_secret(self, output: EventOutput, wanted: WantedOutput) -> None:
        key_id = id_of(output.secret)
        if wanted.secret is not None and key_id is not None:
            keep(self._store, key_id, wanted.secret)

    def _dropping(self, output: EventOutput) -> Callable[[], None]:
        def drop() -> None:
            key_id = id_of(output.secret)
            if key_id is not None:
                self._store.keyfile.drop(key_id)

        return drop


def _check_kind_has(output: EventOutput, wanted: WantedOutput) -> None:
    """Refuse what is right for outputs of another kind."""
    if wanted.target is not None and kind_of_target(wanted.target) is not output.kind:
        raise Conflict(f"target is none of an output of the kind {output.kind.value}.", param="target")
    if wanted.secret is not None and output.kind is not OutputKind.WEBHOOK:
        raise Conflict("Only a webhook has a secret.", param="secret")


def _reference(output: EventOutput, secret: str, reference: str) -> str:
    """Return where the secret is to be found: as it says itself, or in the file as `reference`."""
    if output.kind is not OutputKind.WEBHOOK:
        raise InvalidRequest("Only a webhook has a secret.", param="secret")
    if secret.startswith(_REFERENCES):
        return read_key(secret, param="secret")[0] or reference
    read_secret(secret)
    return reference


def _read_target(output: EventOutput) -> str:
    """Return the target in its one form."""
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


def _check_name_is_free(have: tuple[EventOutput, ...], record: EventOutput) -> None:
    if any(one.name.lower() == record.name.lower() and one.id != record.id for one in have):
        raise Conflict("There is an event output of this name already.", param="name")


def _waiting(output: EventOutput, newest_audit: int, newest_alert: int) -> int:
    """Return how many events are still to be looked at, `MAX_WAITING` at the most."""
    audit = max(newest_audit - output.audit_position, 0) if "audit" in output.kinds else 0
    alerts = max(newest_alert - output.alert_position, 0) if "alert" in output.kinds else 0
    return min(audit + alerts, MAX_WAITING)


def _shown(output: EventOutput) -> dict[str, object]:
    """Return what the audit log keeps of an output: never the secret."""
    return {
        "name": output.name,
        "kind": output.kind,
        "target": output.target,
        "kinds": output.kinds,
        "min_severity": output.min_severity,
        "allow_private": output.allow_private,
        "enabled": output.enabled,
    }
