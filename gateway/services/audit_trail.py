"""What every kept record has in common when it is changed: the version its changer saw, and the event of it."""

from collections.abc import Mapping

from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict
from gateway.services.audit import Audit, source_of
from gateway.store.database import Transaction


class AuditTrail:
    """The audit events of one kind of record. resource_type: its name in the log, such as ``policy``."""

    def __init__(self, audit: Audit, resource_type: str) -> None:
        self._audit = audit
        self._resource_type = resource_type

    def note(
        self,
        tx: Transaction,
        action: str,
        principal: Principal,
        context: RequestContext,
        *,
        id: str,
        before: Mapping[str, object] | None = None,
        after: Mapping[str, object] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        """Append in `tx` that `principal` did `action` to the record `id`. Secrets are never among the fields given."""
        event = self._audit.event(
            action,
            source=source_of(principal),
            principal=principal,
            request=context,
            resource_type=self._resource_type,
            resource_id=id,
            before=before,
            after=after,
            details=details,
        )
        self._audit.append(tx, event)


def check_version(wanted: int | None, have: int, noun: str) -> None:
    """Refuse a change made to another version than the one that stands. wanted: None when the changer does not say.

    Raises:
        Conflict: the record was changed meanwhile.
    """
    if wanted is not None and wanted != have:
        raise Conflict(f"The {noun} was changed meanwhile: it has version {have}.", param="version")
