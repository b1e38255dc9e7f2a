"""The rows of the one operation for a harmless request. The rules are in `services.harmless`."""

from gateway.domain.harmless import HarmlessPreview, MarkedHarmless, MarkHarmless
from gateway.domain.principals import Permission
from gateway.operations.operation import ById
from gateway.operations.rows import row

HARMLESS_OPERATIONS = (
    row(
        "harmless.preview",
        "GET /api/harmless/{id}",
        Permission.ALERTS_READ,
        "Show the exceptions for a request (`req_…`, `trf_…`, or an alert’s newest), and what they would let through.",
        takes=ById,
        gives=HarmlessPreview,
        call=lambda gateway, who, command, context: gateway.harmless.preview(who, command.id),
        fails=("conflict",),
    ),
    row(
        "harmless.mark",
        "POST /api/harmless/{id}",
        Permission.ALERTS_MANAGE,
        "Mark a request harmless: `note`, `exception`?, `until`?. Closes its alerts; an exception may need approval.",
        takes=MarkHarmless,
        gives=MarkedHarmless,
        call=lambda gateway, who, command, context: gateway.harmless.mark(who, command, context),
        fails=("conflict",),
    ),
)
