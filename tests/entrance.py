"""The authentication of a process, as a test needs it over its own store."""

from functools import cache

from gateway.services.access_guard import AccessGuard
from gateway.services.alerts import Alerts
from gateway.services.authentication import Authentication
from gateway.services.core import Core
from gateway.services.policies import Policies
from gateway.services.refusals import Refusals
from gateway.store.rate_windows import RateWindows

rate_windows = cache(RateWindows)


def open_entrance(core: Core, *, access: AccessGuard | None = None, policies: Policies | None = None) -> Authentication:
    """Return an authentication whose other parts are new."""
    return Authentication(
        core,
        limiter=rate_windows(),
        refusals=Refusals(core, alerts=Alerts(core)),
        access=access or AccessGuard(core),
        policies=policies or Policies(core),
    )
