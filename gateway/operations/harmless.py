"""The rows of the one operation for a harmless request. The rules are in `services.harmless`."""

from gateway.domain.harmless import HarmlessPreview, MarkedHarmless, MarkHarmless
from gateway.domain.principals import Permission
from gateway.operations.operation import ById
from gateway.operations.rows import Noun

_HARMLESS = Noun("harmless", HarmlessPreview, Permission.ALERTS_READ, Permission.ALERTS_MANAGE)

OPERATIONS = (
    _HARMLESS.row(
        "preview",
        "GET /{id}",
        "Show the exceptions for a request (`req_…`, `trf_…`, or an alert’s newest), and what they would let through.",
        takes=ById,
        call=lambda gateway, caller, command: gateway.harmless.preview(caller.principal, command.id),
        fails=("conflict",),
    ),
    _HARMLESS.row(
        "mark",
        "POST /{id}",
        "Mark a request harmless: `note`, `exception`?, `until`?. Closes its alerts; an exception may need approval.",
        takes=MarkHarmless,
        gives=MarkedHarmless,
        call=lambda gateway, caller, command: gateway.harmless.mark(caller, command),
    ),
)
