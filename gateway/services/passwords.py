"""Hash and check passwords in worker threads, a few at a time: scrypt takes a tenth of a second and 32 MiB each."""

from gateway.auth.passwords import check_password, hash_password, is_of_random
from gateway.clock import Ids
from gateway.offload import ThreadOffload

AT_ONCE = 2
WAITING = 32
SALT_BYTES = 16


class Passwords:
    """Makes and checks hashes, `AT_ONCE` at a time. `WAITING` more may wait; further ones are refused."""

    def __init__(self, *, ids: Ids) -> None:
        self._ids = ids
        self._threads = ThreadOffload(AT_ONCE, most_waiting=WAITING)
        self._nobody: str | None = None

    async def hash(self, password: str) -> str:
        """Return the hash to store. Raises Shed if too many wait already."""
        return await self._threads.run(self._hash, password)

    async def check(self, password: str, stored: str | None) -> bool:
        """Return whether `stored` is a hash of `password`; false if it is None, which takes as long. Raises Shed."""
        return await self._threads.run(lambda password: self._check(password, stored), password)

    def _hash(self, password: str) -> str:
        return hash_password(password, self._ids.random_bytes(SALT_BYTES))

    def _check(self, password: str, stored: str | None) -> bool:
        found = stored is not None and check_password(password, stored)
        # The time must not reveal that there is no such user, or that the user still has the first password.
        if stored is None or is_of_random(stored):
            if self._nobody is None:
                self._nobody = self._hash(password)  # takes as long as checking one
            else:
                check_password(password, self._nobody)
        return found
