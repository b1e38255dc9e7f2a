"""The rows of the detectors, and the view of one."""

from dataclasses import dataclass

from gateway.app import Gateway
from gateway.domain.circuits import ProviderStatus
from gateway.domain.detectors import Detector, DetectorKind, OnError
from gateway.domain.principals import Permission
from gateway.operations.operation import ById, kind
from gateway.operations.rows import Noun
from gateway.records import project
from gateway.services.detectors import NEEDED, ChangedDetector, DetectorTestResult, NewDetector


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorView(Detector):
    """A detector and its status in the process that answers. Never holds its key.

    on_error, timeout_ms, window_chars, send_masked: what holds, by default too. problem: why there is no key to send.
    """

    on_error: OnError
    timeout_ms: int
    window_chars: int
    send_masked: bool
    api_key_source: str | None
    status: ProviderStatus
    problem: str | None


def _view(gateway: Gateway, one: Detector) -> DetectorView:
    return project(
        DetectorView,
        one,
        key_reference=None,
        api_key_source=one.key_source(),
        on_error=one.error_action,
        timeout_ms=one.wait_ms,
        window_chars=one.window,
        send_masked=one.masks,
        status=gateway.detector_circuits.status(one),
        problem=gateway.secrets.problem(one.key_reference),
    )


_DETECTORS = Noun("detectors", DetectorView, Permission.POLICIES_READ, Permission.POLICIES_MANAGE, view=_view)

DETECTOR_OPERATIONS = (
    _DETECTORS.list("List the detectors, oldest first."),
    _DETECTORS.create(
        NewDetector,
        "Set up a detector: `name`, `kind`, `base_url`, and what its kind needs.",
        kinds=tuple(kind(NEEDED.get(one, ()), kind={"const": one.value}) for one in DetectorKind),
    ),
    _DETECTORS.show("Show one detector, by id or name. Its key is never shown."),
    _DETECTORS.change(
        ChangedDetector,
        "Change a detector; it applies to the next text, in every worker. `version` or `If-Match` guards.",
    ),
    _DETECTORS.remove("Remove a detector and its stored key."),
    _DETECTORS.row(
        "test",
        "POST /{id}/test",
        "Have a detector judge a harmless text and an attack: `ok`, `said`, `latency_ms`, and `error` in plain words.",
        takes=ById,
        gives=DetectorTestResult,
    ),
)
