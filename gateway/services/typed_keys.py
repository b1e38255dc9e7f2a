"""Store a typed-in key and the record that refers to it together or not at all. Knows no kind of record.

The key is written into its file before the commit of its record (see `store.keyfile`). If that commit fails, the key is
removed again, because nothing refers to it.
"""

from collections.abc import Awaitable, Callable, Iterable
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
    """Return the id in the file for a reference ``stored:ID``, None for any other reference."""
    return reference.removeprefix(STORED) if reference is not None and reference.startswith(STORED) else None


def keep(store: Store, reference: str | None, key: str | None) -> None:
    """Write a key, if there is one and the reference is a stored one. Call it in the transaction of the record.

    Raises:
        SetupError: the key cannot be written.
    """
    key_id = id_of(reference)
    try:
        if key is not None and key_id is not None:
            store.keyfile.put(key_id, key)
    except OSError as error:
        raise SetupError(f"The secret cannot be kept ({error.strerror}): nothing was changed.") from error


def drop(store: Store, reference: str | None) -> None:
    """Remove the key of a reference, if it is a stored one.

    Raises:
        OSError: it is still there.
    """
    key_id = id_of(reference)
    if key_id is not None:
        store.keyfile.drop(key_id)


async def commit_with_key(
    commit: Callable[[Work], Awaitable[T]],
    store: Store,
    work: Work,
    *,
    reference: str | None,
    key: str | None,
    references: Callable[[Transaction], Iterable[str | None]],
) -> T:
    """Commit `work`, which keeps `key` as `reference`. If the commit fails, remove the key again.

    commit: `commit` or `commit_authority` of `Audit`. references: reads those of all records, in case the commit
    succeeded and only its answer was lost. Raises what `commit` and `work` raise.
    """
    try:
        return await commit(work)
    except BaseException:
        if key is not None:

            def undo(tx: Transaction) -> None:
                if reference not in references(tx):
                    drop(store, reference)

            # Also after a cancellation. A disk that refuses writes keeps the key.
            with anyio.move_on_after(_DROP_SECONDS, shield=True), suppress(GatewayError, OSError):
                await store.db.write(undo)
        raise
