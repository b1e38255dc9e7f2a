"""How each provider fares in this process: its circuit, the alert when it is down, and the end of that alert."""

from collections.abc import Callable

from gateway.clock import Clock
from gateway.domain.alerts import AlertSource
from gateway.domain.circuits import NEW, WORKING, Circuit, ProviderStatus
from gateway.domain.providers import Provider
from gateway.log import Log
from gateway.services.alerts import Alerts
from gateway.shield.detections import Severity
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

PROVIDER_DOWN = "provider-down"


class Standing:
    """How one version of a provider fares in this process: its circuit as it is now."""

    __slots__ = ("circuit", "provider")

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.circuit = NEW


class Circuits:
    """The circuits of this process, by id and version of the provider: a changed one begins anew."""

    def __init__(self, *, store: Store, clock: Clock, alerts: Alerts, log: Log) -> None:
        self._store = store
        self._clock = clock
        self._alerts = alerts
        self._log = log
        self._standings: dict[tuple[str, int], Standing] = {}

    def standing(self, provider: Provider) -> Standing:
        """Return how a provider fares, for those who send to it and note what came of it."""
        standing = self._standings.setdefault((provider.id, provider.version), Standing(provider))
        standing.provider = provider  # that of the settings is another one after a reload, under the same version
        return standing

    def status(self, provider: Provider) -> ProviderStatus:
        """Return how a provider is."""
        if not provider.enabled:
            return ProviderStatus.DISABLED
        return self._of(provider).status(self._clock.monotonic_seconds())

    def wait_seconds(self, provider: Provider) -> int:
        """Return after how many whole seconds a provider that is open is tried again; at least 1."""
        until_seconds = self._of(provider).open_until_seconds or 0.0
        return max(1, round(until_seconds - self._clock.monotonic_seconds() + 0.5))

    def begin(self, standing: Standing) -> bool:
        """Tell whether a request may be sent to a provider now, and note that it is.

        The first after a pause is the probe. That of the settings is never held back: it has no other to take its place
        that the operator had said to be one, and nobody can test it by hand.
        """
        circuit = standing.circuit
        if circuit.open_until_seconds is None:
            return True
        if circuit.may_pass(self._clock.monotonic_seconds()):
            standing.circuit = circuit.begun()
            return True
        return standing.provider.origin == "settings"

    def let_go(self, standing: Standing) -> None:
        """Note that a request ended in a way that says nothing of the provider."""
        if standing.circuit.is_probing:
            standing.circuit = standing.circuit.let_go()

    def succeeded(self, standing: Standing) -> None:
        """Note a good answer. One that follows an opening, also of an earlier process, ends the alert."""
        before, provider = standing.circuit, standing.provider
        if before is WORKING:
            return
        standing.circuit = before.succeeded()
        if before.is_open or not before.has_answered:
            if before.is_open:
                self._log.info("provider_recovered", provider=provider.name)
            self._behind(lambda tx: self.end_alert(tx, provider, "The provider answers again."))

    def failed(self, standing: Standing, reason: str) -> None:
        """Note a failure. reason: for the operator."""
        before, provider = standing.circuit, standing.provider
        after = standing.circuit = before.failed(self._clock.monotonic_seconds())
        if after.open_until_seconds is None or after.open_until_seconds == before.open_until_seconds:
            return
        if not before.is_open:
            self._log.warning("provider_down", provider=provider.name, failures=after.failures, reason=reason)
        now_at = self._clock.now_at()
        self._behind(
            lambda tx: self._alerts.raise_event(
                tx,
                source=AlertSource.PROVIDER,
                rule=PROVIDER_DOWN,
                severity=Severity.HIGH,
                title=f"Provider {provider.name} is down",
                description=f"{after.failures} requests in a row failed. The last: {reason.rstrip('.')}.",
                subject=provider.id,
                occurred_at=now_at,
                evidence=(
                    {"provider": provider.name, "failures": after.failures, "pause_seconds": after.pause_seconds},
                ),
            )
        )

    def end_alert(self, tx: Transaction, provider: Provider, resolution: str) -> None:
        """End in `tx` the alert that a provider is down."""
        self._alerts.end_event(
            tx,
            source=AlertSource.PROVIDER,
            rule=PROVIDER_DOWN,
            subject=provider.id,
            occurred_at=self._clock.now_at(),
            resolution=resolution,
        )

    def keep_only(self, providers: tuple[Provider, ...]) -> None:
        """Forget all other providers, and other versions of these."""
        known = {(provider.id, provider.version) for provider in providers}
        for key in self._standings.keys() - known:
            self._standings.pop(key).circuit = NEW  # what is still on its way to it begins anew as well

    def _of(self, provider: Provider) -> Circuit:
        standing = self._standings.get((provider.id, provider.version))
        return NEW if standing is None else standing.circuit

    def _behind(self, work: Callable[[Transaction], object]) -> None:
        """Write what may be lost: an alert that cannot be written now does not keep the request from its answer."""
        try:
            self._store.db.write_behind(work)
        except StoreUnavailable as error:
            self._log.error("provider_alert_lost", error=error)
