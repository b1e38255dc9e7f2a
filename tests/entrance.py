"""The authentication of a process, as a test needs it over its own store."""

from functools import cache

from gateway.clock import Clock, SystemIds
from gateway.services.access_guard import AccessGuard
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.authentication import Authentication
from gateway.services.policies import Policies
from gateway.services.refusals import Refusals
from gateway.store.rate_windows import RateWindows
from gateway.store.store import Store

rate_windows = cache(RateWindows)


def open_entrance(
    store: Store, clock: Clock, audit: Audit, *, access: AccessGuard | None = None, policies: Policies | None = None
) -> Authentication:
    """Return an authentication whose other parts are new."""
    ids = SystemIds(clock)
    return Authentication(
        store=store,
        clock=clock,
        audit=audit,
        limiter=rate_windows(),
        refusals=Refusals(audit=audit, clock=clock, alerts=Alerts(store=store, clock=clock, ids=ids, audit=audit)),
        access=access or AccessGuard(store=store, clock=clock),
        policies=policies or Policies(store=store, clock=clock, ids=ids, audit=audit),
    )
