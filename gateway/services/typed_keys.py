"""Store a typed-in key and the record that refers to it together or not at all. Knows no kind of record.

The key is written into its file before the commit of its record (see `store.keyfile`). If that commit fails, the key is
removed again, because nothing refers to it.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import anyio

from gateway.errors import GatewayError, SetupError
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

T = TypeVar("T")
STORED = "stored:"
_DROP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class TypedKeys:
    """The typed-in keys of one kind of record. noun: for the log. references: reads the references of all records."""

    store: Store
    audit: Audit
    log: Log
    noun: str
    references: Callable[[Transaction], Iterable[str | None]]

    async def commit(self, work: Callable[[AuthorityTransaction], T], reference: str | None, key: str | None) -> T:
        """Commit `work`, and keep `key` if one is given and the reference is a stored one.

        Raises:
            SetupError: the key cannot be written. AuditUnavailable: nothing was changed. What `work` raises.
        """
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
            if reference not in self.references(tx):  # else only the answer of the commit was lost
                self.store.keyfile.drop(key_id)

        try:
            return await self.audit.commit_authority(keeping)
        except BaseException:
            # Also after a cancellation. A disk that refuses writes keeps the key.
            with anyio.move_on_after(_DROP_SECONDS, shield=True), suppress(GatewayError, OSError):
                await self.store.db.write(undo)
            raise

    def drop(self, tx: Transaction | AuthorityTransaction, reference: str | None, name: str) -> None:
        """Remove the key of a record, if it is a stored one, once `tx` is committed. name: of the record."""
        if reference is None or not reference.startswith(STORED):
            return

        def drop() -> None:
            try:
                self.store.keyfile.drop(reference.removeprefix(STORED))
            except OSError as error:
                self.log.error(f"{self.noun}_key_left", error=error, **{self.noun: name})

        tx.after_commit(drop)
