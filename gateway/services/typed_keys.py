"""The base of services whose records refer to a typed-in key: key and record are stored together or not at all.

The key is written into its file before the commit of its record (see `store.keyfile`). If that commit fails, the key is
removed again, because nothing refers to it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import anyio

from gateway.errors import GatewayError, SetupError
from gateway.log import Log
from gateway.services.resource import R, Resource
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction

T = TypeVar("T")
STORED = "stored:"
_DROP_SECONDS = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class KeyedResource(Resource[R]):
    """The records of one noun, each with a name and a reference to its key. key_field: has the reference."""

    key_field: ClassVar[str] = "key_reference"
    log: Log

    async def _commit_with_key(
        self, work: Callable[[AuthorityTransaction], T], reference: str | None, key: str | None
    ) -> T:
        """Commit `work`, and keep `key` if one is given and the reference is a stored one. Raises SetupError."""
        if key is None or reference is None or not reference.startswith(STORED):
            return await self.audit.commit_authority(work)
        key_id = reference.removeprefix(STORED)

        def keeping(tx: AuthorityTransaction) -> T:
            result = work(tx)
            try:
                self.store.keyfile.put(key_id, key)
            except OSError as error:
                raise SetupError(f"The secret cannot be kept ({error.strerror}): nothing was changed.") from error
            return result

        def undo(tx: Transaction) -> None:
            references = [getattr(one, self.key_field) for one in self._repository.all(tx)]
            if reference not in references:  # else only the answer of the commit was lost
                self.store.keyfile.drop(key_id)

        try:
            return await self.audit.commit_authority(keeping)
        except BaseException:
            # Also after a cancellation. A disk that refuses writes keeps the key.
            with anyio.move_on_after(_DROP_SECONDS, shield=True), suppress(GatewayError, OSError):
                await self.store.db.write(undo)
            raise

    def _drop_key(self, tx: Transaction | AuthorityTransaction, record: Any) -> None:
        """Remove the key of a record, if it is a stored one, once `tx` is committed."""
        reference: str = getattr(record, self.key_field) or ""
        if not reference.startswith(STORED):
            return

        def drop() -> None:
            try:
                self.store.keyfile.drop(reference.removeprefix(STORED))
            except OSError as error:
                self.log.error(f"{self.resource_type}_key_left", error=error, **{self.resource_type: record.name})

        tx.after_commit(drop)
