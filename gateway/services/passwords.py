"""Hash and check passwords in worker threads, a few at a time: scrypt takes a tenth of a second and 32 MiB each."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from gateway.auth.passwords import check_password, hash_password, is_of_random
from gateway.clock import Ids
from gateway.errors import Overloaded

T = TypeVar("T")
AT_ONCE = 2
WAITING = 32
SALT_BYTES = 16


class Passwords:
    """Makes and checks hashes, `AT_ONCE` at a time. `WAITING` more may wait; further ones are refused."""

    def __init__(self, *, ids: Ids) -> None:
        self._ids = ids
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._entered = 0
        self._nobody: str | None = None

    async def hash(self, password: str) -> str:
        """Return the hash to store. Raises Overloaded if too many wait already."""
        return await self._run(hash_password, password, self._ids.random_bytes(SALT_BYTES))

    async def check(self, password: str, stored: str | None) -> bool:
        """Return whether `stored` is a hash of `password`; false if it is None, which takes as long.

        Raises:
            Overloaded: too many wait already. The password was not checked.
        """
        return await self._run(self._check, password, stored)

    def _check(self, password: str, stored: str | None) -> bool:
        found = stored is not None and check_password(password, stored)
        if stored is not None and not is_of_random(stored):
            return found
        # The time must not reveal that there is no such user, or that the user still has the first password.
        if self._nobody is None:
            # Making a hash takes as long as checking one.
            self._nobody = hash_password(password, self._ids.random_bytes(SALT_BYTES))
            return found
        check_password(password, self._nobody)
        return found

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        if self._entered >= AT_ONCE + WAITING:
            raise Overloaded("Too many sign-ins at once; try again.", retry_after_seconds=1)
        self._entered += 1
        try:
            return await to_thread.run_sync(work, *arguments, limiter=self._limiter)
        finally:
            self._entered -= 1
