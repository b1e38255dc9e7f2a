"""The writes of a group, in one SQL transaction. Holds no driver.

A write that raises is rolled back alone. A savepoint for each write would do that, but each statement costs a switch of
threads, because the driver releases the interpreter's lock. So the writes of a group run without savepoints. Only if
one of them raises, the group is rolled back and each write runs again in its own savepoint. For the same reason,
statements whose result nobody needs are deferred and run together.
"""

from collections.abc import Callable, Sequence

from gateway.store.database import Run, StoreUnavailable, Transaction
from gateway.store.writer import PendingWrite


def do_group(
    run: Run, group: Sequence[PendingWrite], begin: Callable[[], object], now_at: Callable[[], int]
) -> Transaction:
    """Run a group of writes in the open transaction, and return it with its calls for after the commit.

    begin: opens a transaction again after a rollback. now_at: returns the clock of the database.

    Raises:
        StoreUnavailable: the whole group must be given up.
    """
    tx = Transaction(run, now_at)
    try:
        for write in group:
            if not write.is_abandoned:
                write.result, write.error = write.work(tx), None  # an earlier group may have failed
        tx.flush()
        return tx
    except StoreUnavailable:
        raise
    except BaseException:  # raised again below, by the write that it belongs to
        run("ROLLBACK")
    begin()
    tx = Transaction(run, now_at)
    for write in group:
        if not write.is_abandoned:
            _do_alone(tx, write)
    return tx


def _do_alone(tx: Transaction, write: PendingWrite) -> None:
    """Run one write of a group in a savepoint. An exception rolls back that write alone and goes to its caller."""
    calls, memo = len(tx.calls), dict(tx.memo)
    tx.run("SAVEPOINT work")
    try:
        write.result, write.error = write.work(tx), None
        tx.flush()
    except StoreUnavailable:
        raise
    except BaseException as error:  # handed to the caller
        write.error = error
        del tx.calls[calls:]
        tx.waiting.clear()
        tx.memo.clear()
        tx.memo.update(memo)
        tx.run("ROLLBACK TO work")
    tx.run("RELEASE work")
