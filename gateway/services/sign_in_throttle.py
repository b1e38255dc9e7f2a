"""Throttle attempts with a password, or with a wrong key for MCP.

For one account from one network, 5 failures in a minute block the rest of that minute; from the 10th on, each failure
blocks 5 minutes, and from the 15th on 30 minutes. For one network and all accounts, the limit is 50 failures in a
minute. A success clears the failures of the account from that network.

An attempt is counted in the database as a failure before its password is checked, so parallel attempts on all workers
are counted too. Within a process, attempts on one account from one network take turns; otherwise several right
passwords at once would block each other.
"""

import hashlib
import ipaddress
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import field

import anyio

from gateway.domain.principals import RequestContext
from gateway.errors import LoginThrottled, Overloaded
from gateway.services.core import Service
from gateway.services.refusals import SIGN_IN_THROTTLED, Refusals
from gateway.store.database import Transaction
from gateway.store.sessions import SignInOrigin

WAITING = 64
REMEMBER_MS = 24 * 3_600_000
ACCOUNT_FAILURES = 15
NETWORK_FAILURES = 50
MINUTE_MS = 60_000
_FAILURES_A_MINUTE = 5
_STEPS = ((15, 30 * MINUTE_MS), (10, 5 * MINUTE_MS))
_IPV6_PREFIX = 64
NO_ADDRESS = "none"


class SignInThrottle(Service):
    """Admits attempts. At most `WAITING` attempts are under way or wait for their turn."""

    refusals: Refusals
    _turns: dict[SignInOrigin, anyio.Lock] = field(default_factory=dict, init=False)
    _entered: int = field(default=0, init=False)

    @asynccontextmanager
    async def attempt(
        self, account: str, context: RequestContext, *, resource_type: str = "session"
    ) -> AsyncGenerator[SignInOrigin]:
        """Wait for the turn of this account and network, count the attempt, and yield its origin.

        After a success, pass the origin to `store.sign_in_failures.forget`. resource_type: for the audit event.

        Raises:
            LoginThrottled: too many failures before. The attempt was not counted.
            Overloaded: too many attempts at once, or the count cannot be written.
        """
        if self._entered >= WAITING:
            raise Overloaded("Too many sign-ins at once; try again.", retry_after_seconds=1)
        folded = account.lower().encode("utf-8", "surrogatepass")
        origin = SignInOrigin(account=hashlib.sha256(folded).hexdigest(), network=network_of(context.ip))
        turn = self._turns.setdefault(origin, anyio.Lock())
        self._entered += 1
        try:
            async with turn:
                await self._count(origin, context, resource_type)
                yield origin
        finally:
            self._entered -= 1
            if not turn.locked() and not turn.statistics().tasks_waiting:
                self._turns.pop(origin, None)

    async def _count(self, origin: SignInOrigin, context: RequestContext, resource_type: str) -> None:
        failures, now_at = self.store.sign_in_failures, self.clock.now_at()
        since = now_at - REMEMBER_MS

        def work(tx: Transaction) -> int:
            failures.prune(tx, before=since)
            of_account = failures.times(tx, origin.network, account=origin.account, since=since, limit=ACCOUNT_FAILURES)
            of_network = failures.times(tx, origin.network, since=since, limit=NETWORK_FAILURES)
            wait = wait_ms(of_account, of_network, now_at)
            if not wait:
                failures.insert(tx, origin, failed_at=now_at)
            return wait

        wait = await self.store.db.write(work)
        if wait:
            error = LoginThrottled(
                "Too many attempts failed. Wait before the next one.", retry_after_seconds=-(-wait // 1000)
            )
            raise self.refusals.record(error, context, action=SIGN_IN_THROTTLED, resource_type=resource_type)


def wait_ms(of_account: Sequence[int], of_network: Sequence[int], now_at: int) -> int:
    """Return the remaining wait of an attempt in milliseconds.

    of_account, of_network: times of the last failures, newest first, Unix milliseconds; at most `ACCOUNT_FAILURES` and
    `NETWORK_FAILURES` of them are read.
    """
    ends = [0, *(of_account[0] + wait for count, wait in _STEPS if len(of_account) >= count)]
    if len(of_account) >= _FAILURES_A_MINUTE:
        ends.append(of_account[_FAILURES_A_MINUTE - 1] + MINUTE_MS)
    if len(of_network) >= NETWORK_FAILURES:
        ends.append(of_network[NETWORK_FAILURES - 1] + MINUTE_MS)
    # Bounded, in case the clock was set back.
    return min(max(0, max(ends) - now_at), _STEPS[0][1])


def network_of(ip: str | None) -> str:
    """Return the key of an address: itself, or the /64 network of an IPv6 address, because one host has all of it."""
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return NO_ADDRESS
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
