"""Attempts with a password, or with a wrong key for MCP: one at a time of one account from one network.

None is let in while earlier failures make it wait.

Theory of operation. An attempt is counted as a failure before its password is looked at, in the database, so that of
many tries at once over all workers none slips through; success forgets the failures of that account from that network.
Tries of one account from one network take turns within a process, so that several right passwords at once are not
taken for failures.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.auth.throttle import ACCOUNT_FAILURES, NETWORK_FAILURES, REMEMBER_MS, network_of, wait_ms
from gateway.clock import Clock
from gateway.domain.principals import RequestContext
from gateway.errors import LoginThrottled, Overloaded
from gateway.services.refusals import SIGN_IN_THROTTLED, Refusals
from gateway.store.database import Transaction
from gateway.store.sessions import SignInOrigin
from gateway.store.store import Store

WAITING = 64


class SignInThrottle:
    """Lets attempts in. At most `WAITING` are in or wait for their turn."""

    def __init__(self, *, store: Store, clock: Clock, refusals: Refusals) -> None:
        self._store = store
        self._clock = clock
        self._refusals = refusals
        self._turns: dict[SignInOrigin, anyio.Lock] = {}
        self._entered = 0

    @asynccontextmanager
    async def attempt(
        self, account: str, context: RequestContext, *, resource_type: str = "session"
    ) -> AsyncGenerator[SignInOrigin]:
        """Wait for the turn of this account and address, count the attempt, and yield what `forget` takes.

        resource_type: what is tried to be entered, for the audit.

        Raises:
            LoginThrottled: too many failures before. The attempt was not counted.
            Overloaded: too many attempts at once, or the count cannot be written.
        """
        if self._entered >= WAITING:
            raise Overloaded("Too many sign-ins at once; try again.", retry_after_seconds=1)
        place = _place(account, context)
        turn = self._turns.setdefault(place, anyio.Lock())
        self._entered += 1
        try:
            async with turn:
                await self._count(place, context, resource_type)
                yield place
        finally:
            self._entered -= 1
            if not turn.locked() and not turn.statistics().tasks_waiting:
                self._turns.pop(place, None)

    def forget(self, tx: Transaction, place: SignInOrigin) -> None:
        """Forget the failures of this account from this network: the password was right."""
        self._store.sign_in_failures.forget(tx, place)

    async def _count(self, place: SignInOrigin, context: RequestContext, resource_type: str) -> None:
        failures, now_at = self._store.sign_in_failures, self._clock.now_at()
        since = now_at - REMEMBER_MS

        def work(tx: Transaction) -> int:
            failures.prune(tx, before=since)
            of_account = failures.times(tx, place.network, account=place.account, since=since, limit=ACCOUNT_FAILURES)
            of_network = failures.times(tx, place.network, since=since, limit=NETWORK_FAILURES)
            wait = wait_ms(of_account, of_network, now_at)
            if not wait:
                failures.insert(tx, place, failed_at=now_at)
            return wait

        wait = await self._store.db.write(work)
        if wait:
            raise self._refusals.note(
                LoginThrottled(
                    "Too many attempts failed. Wait before the next one.", retry_after_seconds=-(-wait // 1000)
                ),
                context,
                action=SIGN_IN_THROTTLED,
                resource_type=resource_type,
            )


def _place(account: str, context: RequestContext) -> SignInOrigin:
    folded = account.lower().encode("utf-8", "surrogatepass")
    return SignInOrigin(account=hashlib.sha256(folded).hexdigest(), network=network_of(context.ip))
