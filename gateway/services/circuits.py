"""Keep the circuit of each provider in this process, raise the alert when one is down, and end that alert.

A circuit belongs to one version of a provider: a changed provider begins anew.
"""

from collections.abc import Callable, Iterable
from dataclasses import field

from gateway.domain.alerts import AlertSource
from gateway.domain.circuits import Circuit, ProviderStatus
from gateway.domain.providers import Provider
from gateway.log import Log
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.shield.detections import Severity
from gateway.store.database import StoreUnavailable, Transaction

PROVIDER_DOWN = "provider-down"


class Circuits(Service):
    """The circuits of this process."""

    alerts: Alerts
    log: Log
    _circuits: dict[tuple[str, int], Circuit] = field(default_factory=dict, init=False)

    def circuit(self, provider: Provider) -> Circuit:
        """Return the circuit of a provider as it is now."""
        return self._circuits.get((provider.id, provider.version), Circuit())

    def status(self, provider: Provider) -> ProviderStatus:
        """Return how a provider is."""
        if not provider.enabled:
            return ProviderStatus.DISABLED
        return self.circuit(provider).status(self.clock.monotonic_seconds())

    def wait_seconds(self, provider: Provider) -> int:
        """Return after how many whole seconds a provider that is open is tried again; at least 1."""
        until_seconds = self.circuit(provider).open_until_seconds or 0.0
        return max(1, round(until_seconds - self.clock.monotonic_seconds() + 0.5))

    def begin(self, provider: Provider) -> bool:
        """Return whether a request may be sent to a provider now, and note that it is.

        The first request after a pause is the probe. The provider of the settings is never held back: no other provider
        takes its place, and nobody can test it by hand.
        """
        circuit = self.circuit(provider)
        if circuit.may_pass(self.clock.monotonic_seconds()):
            self._note(provider, circuit.begun())
            return True
        return provider.origin == "settings"

    def let_go(self, provider: Provider) -> None:
        """Note that a request ended in a way that says nothing of the provider."""
        self._note(provider, self.circuit(provider).cancelled())

    def succeeded(self, provider: Provider) -> None:
        """Note a good answer. One that follows an opening, also of an earlier process, ends the alert."""
        before = self.circuit(provider)
        self._note(provider, Circuit(has_answered=True))
        if before.is_open:
            self.log.info("provider_recovered", provider=provider.name)
        if before.is_open or not before.has_answered:
            self._write_behind(lambda tx: self.end_alert(tx, provider, "The provider answers again."))

    def failed(self, provider: Provider, reason: str) -> None:
        """Note a failure. reason: for the operator."""
        before = self.circuit(provider)
        after = before.failed(self.clock.monotonic_seconds())
        self._note(provider, after)
        if after.open_until_seconds is None or after.open_until_seconds == before.open_until_seconds:
            return
        if not before.is_open:
            self.log.warning("provider_down", provider=provider.name, failures=after.failures, reason=reason)
        now_at = self.clock.now_at()
        evidence = {"provider": provider.name, "failures": after.failures, "pause_seconds": after.pause_seconds}
        self._write_behind(
            lambda tx: self.alerts.raise_event(
                tx,
                source=AlertSource.PROVIDER,
                rule=PROVIDER_DOWN,
                severity=Severity.HIGH,
                title=f"Provider {provider.name} is down",
                description=f"{after.failures} requests in a row failed. The last: {reason.rstrip('.')}.",
                subject=provider.id,
                occurred_at=now_at,
                evidence=(evidence,),
            )
        )

    def end_alert(self, tx: Transaction, provider: Provider, resolution: str) -> None:
        """End in `tx` the alert that a provider is down."""
        self.alerts.end_event(
            tx,
            source=AlertSource.PROVIDER,
            rule=PROVIDER_DOWN,
            subject=provider.id,
            occurred_at=self.clock.now_at(),
            resolution=resolution,
        )

    def keep_only(self, providers: Iterable[Provider]) -> None:
        """Forget all other providers, and other versions of these."""
        known = {(provider.id, provider.version) for provider in providers}
        self._circuits = {key: circuit for key, circuit in self._circuits.items() if key in known}

    def _note(self, provider: Provider, circuit: Circuit) -> None:
        self._circuits[provider.id, provider.version] = circuit

    def _write_behind(self, work: Callable[[Transaction], object]) -> None:
        """Write an alert that may be lost: if it cannot be written now, the request still gets its answer."""
        try:
            self.store.db.write_behind(work)
        except StoreUnavailable as error:
            self.log.error("provider_alert_lost", error=error)
