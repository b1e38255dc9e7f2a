"""A key that was typed in and the record that names it are kept together or not at all. Knows no kind of record.

The key is written into its file before the commit of its record (see `store.keyfile`). When that commit fails, it is
taken out again: nobody would ever find it, and what was refused is not to be kept.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import anyio

from gateway.errors import GatewayError, SetupError
from gateway.store.database import Transaction
from gateway.store.store import Store

T = TypeVar("T")
Work = TypeVar("Work")
STORED = "stored:"
_DROP_SECONDS = 10.0


def id_of(reference: str | None) -> str | None:
    """Return the id in the file of what ``stored:ID`` names, None for any other reference."""
    return reference.removeprefix(STORED) if reference is not None and reference.startswith(STORED) else None


def keep(store: Store, key_id: str, key: str) -> None:
    """Write a key, in a transaction.

    Raises:
        SetupError: it cannot be kept.
    """
    try:
        store.keyfile.put(key_id, key)
    except OSError as error:
        raise SetupError(f"The secret cannot be kept ({error.strerror}): nothing was changed.") from error


async def commit_with_key(
    commit: Callable[[Work], Awaitable[T]],
    store: Store,
    work: Work,
    *,
    key_id: str | None,
    is_named: Callable[[Transaction], bool],
) -> T:
    """Commit `work`, which keeps the key `key_id`; if it fails, take the key out again.

    commit: `commit` or `commit_authority` of `Audit`. is_named: whether a record names the key after all, because only
    the answer of the commit was lost.

    Raises:
        Whatever `work` raises. AuditUnavailable: nothing was written.
    """
    try:
        return await commit(work)
    except BaseException:
        if key_id is not None:

            def drop(tx: Transaction) -> None:
                if not is_named(tx):
                    store.keyfile.drop(key_id)

            # Also when the caller has left; and a disk that takes nothing keeps what it has.
            with anyio.move_on_after(_DROP_SECONDS, shield=True), suppress(GatewayError, OSError):
                await store.db.write(drop)
        raise
