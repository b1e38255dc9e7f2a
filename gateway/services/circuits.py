"""Keep the circuit of each provider or detector in this process, raise the alert when one is down, and end that alert.

A circuit belongs to one version of a record: a changed one begins anew.
"""

from collections.abc import Callable, Iterable
from dataclasses import field

from gateway.domain.alerts import AlertSource
from gateway.domain.circuits import Circuit, ProviderStatus
from gateway.domain.detectors import Detector
from gateway.domain.providers import Provider
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity
from gateway.store.database import StoreUnavailable, Transaction

PROVIDER_DOWN = "provider-down"
Server = Provider | Detector
"""The record of a server that the gateway asks."""


class Circuits(Service):
    """The circuits of this process. source: of the alerts, and what each server is."""

    source: AlertSource = AlertSource.PROVIDER

    alerts: Alerts
    _circuits: dict[tuple[str, int], Circuit] = field(default_factory=dict, init=False)

    def circuit(self, server: Server) -> Circuit:
        """Return the circuit of a server as it is now."""
        return self._circuits.get((server.id, server.version), Circuit())

    def status(self, server: Server) -> ProviderStatus:
        """Return how a server is."""
        if not server.enabled:
            return ProviderStatus.DISABLED
        return self.circuit(server).status(self.clock.monotonic_seconds())

    def wait_seconds(self, server: Server) -> int:
        """Return after how many whole seconds a server that is open is tried again; at least 1."""
        until_seconds = self.circuit(server).open_until_seconds or 0.0
        return max(1, round(until_seconds - self.clock.monotonic_seconds() + 0.5))

    def begin(self, server: Server) -> bool:
        """Return whether a request may be sent to a server now, and note that it is.

        The first request after a pause is the probe.
        """
        circuit = self.circuit(server)
        if circuit.may_pass(self.clock.monotonic_seconds()):
            self._note(server, circuit.begun())
            return True
        return False

    def let_go(self, server: Server) -> None:
        """Note that a request ended in a way that says nothing of the server."""
        self._note(server, self.circuit(server).cancelled())

    def succeeded(self, server: Server) -> None:
        """Note a good answer. One that follows an opening, also of an earlier process, ends the alert."""
        before = self.circuit(server)
        self._note(server, Circuit(has_answered=True))
        if before.is_open:
            self.log.info(f"{self.source}_recovered", **{self.source: server.name})
        if before.is_open or not before.has_answered:
            self._write_behind(lambda tx: self.end_alert(tx, server, f"The {self.source} answers again."))

    def failed(self, server: Server, reason: str) -> None:
        """Note a failure. reason: for the operator."""
        before = self.circuit(server)
        after = before.failed(self.clock.monotonic_seconds())
        self._note(server, after)
        if after.open_until_seconds is None or after.open_until_seconds == before.open_until_seconds:
            return
        if not server.enabled:  # it may be tested, and nobody waits for it
            return
        if not before.is_open:
            named: dict[str, str] = {self.source: server.name}
            self.log.warning(f"{self.source}_down", **named, failures=after.failures, reason=reason)
        now_at = self.clock.now_at()
        evidence = {self.source.value: server.name, "failures": after.failures, "pause_seconds": after.pause_seconds}
        self._write_behind(
            lambda tx: self.alerts.raise_event(
                tx,
                source=self.source,
                rule=f"{self.source}-down",
                severity=Severity.HIGH,
                title=f"{self.source.capitalize()} {server.name} is down",
                description=f"{after.failures} requests in a row failed. The last: {reason.rstrip('.')}.",
                subject=server.id,
                occurred_at=now_at,
                evidence=(evidence,),
            )
        )

    def end_alert(self, tx: Transaction, server: Server, resolution: str) -> None:
        """End in `tx` the alert that a server is down."""
        self.alerts.end_event(
            tx,
            source=self.source,
            rule=f"{self.source}-down",
            subject=server.id,
            occurred_at=self.clock.now_at(),
            resolution=resolution,
        )

    def keep_only(self, servers: Iterable[Server]) -> None:
        """Forget all other servers, and other versions of these."""
        known = {(server.id, server.version) for server in servers}
        self._circuits = {key: circuit for key, circuit in self._circuits.items() if key in known}

    def _note(self, server: Server, circuit: Circuit) -> None:
        self._circuits[server.id, server.version] = circuit

    def _write_behind(self, work: Callable[[Transaction], object]) -> None:
        """Write an alert that may be lost: if it cannot be written now, the request still gets its answer."""
        try:
            self.store.db.write_behind(work)
        except StoreUnavailable as error:
            self.log.error(f"{self.source}_alert_lost", error=error)
