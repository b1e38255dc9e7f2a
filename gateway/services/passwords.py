"""Password hashing in worker threads, a few at a time: scrypt takes a tenth of a second and 32 MiB each."""

import anyio
from anyio import to_thread

from gateway.auth.passwords import check_password, hash_password, is_of_random
from gateway.clock import Ids
from gateway.errors import Overloaded

AT_ONCE = 2
WAITING = 32
SALT_BYTES = 16


class Passwords:
    """Makes and checks hashes. Beyond `AT_ONCE` at work, `WAITING` wait; more are refused."""

    def __init__(self, *, ids: Ids) -> None:
        self._ids = ids
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._entered = 0
        self._nobody: str | None = None

    async def hash(self, password: str) -> str:
        """Return the hash to store.

        Raises:
            Overloaded: too many wait already.
        """
        self._enter()
        try:
            salt = self._ids.random_bytes(SALT_BYTES)
            return await to_thread.run_sync(hash_password, password, salt, limiter=self._limiter)
        finally:
            self._entered -= 1

    async def check(self, password: str, stored: str | None) -> bool:
        """Tell whether `password` belongs to `stored`. Takes as long, and says no, when there is none (None).

        Raises:
            Overloaded: too many wait already; nothing is known of the password.
        """
        self._enter()
        try:
            return await to_thread.run_sync(self._check, password, stored, limiter=self._limiter)
        finally:
            self._entered -= 1

    def _check(self, password: str, stored: str | None) -> bool:
        found = stored is not None and check_password(password, stored)
        if stored is not None and not is_of_random(stored):
            return found
        # Whoever measures the time must not learn that there is no such user, or one with the first password.
        if self._nobody is None:
            # The first of them takes as long as any other: making a hash is checking one.
            self._nobody = hash_password(password, self._ids.random_bytes(SALT_BYTES))
            return found
        check_password(password, self._nobody)
        return found

    def _enter(self) -> None:
        if self._entered >= AT_ONCE + WAITING:
            raise Overloaded("Too many sign-ins at once; try again.", retry_after_seconds=1)
        self._entered += 1
