"""The writes of a group, in one SQL transaction. Holds no driver.

A write that raises is rolled back alone. A savepoint for each write would do that, but each statement costs a switch of
threads, because the driver releases the interpreter's lock. So the writes of a group run without savepoints. Only if
one of them raises, the group is rolled back and each write runs again in its own savepoint. For the same reason,
statements whose result nobody needs are deferred and run together.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from gateway.store.database import Params, Row, StoreUnavailable
from gateway.store.writer import PendingWrite

Run = Callable[..., Any]
"""Runs a statement with its parameters, or once for each of a sequence of them, and returns the driver's cursor."""


def do_group(run: Run, group: Sequence[PendingWrite]) -> "SqlTransaction":
    """Run a group of writes in the open transaction, and return it with its calls for after the commit.

    Raises:
        StoreUnavailable: the whole group must be given up.
    """
    tx = SqlTransaction(run)
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
    run("BEGIN IMMEDIATE")
    tx = SqlTransaction(run)
    for write in group:
        if not write.is_abandoned:
            tx.do_alone(write)
    return tx


class SqlTransaction:
    """See `Transaction`. calls: the functions to call after the commit."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: dict[str, dict[object, Params]] = {}  # by their statements and keys
        self.calls: list[Callable[[], None]] = []
        self.memo: dict[object, Any] = {}

    def execute(self, sql: str, params: Params = {}, /) -> int:  # noqa: B006  # never written to
        self.flush()
        return cast(int, self._run(sql, params).rowcount)

    def query(self, sql: str, params: Params = {}, /) -> list[Row]:  # noqa: B006
        self.flush()
        return cast(list[Row], self._run(sql, params).fetchall())

    def defer(self, sql: str, params: Params, key: object = None, /) -> None:
        rows = self._waiting.setdefault(sql, {})
        rows[len(rows) if key is None else key] = params

    def flush(self) -> None:
        """Run the deferred statements. A statement that fails stays, so that no write can hide its error."""
        while self._waiting:
            sql, rows = next(iter(self._waiting.items()))
            self._run(sql, [*rows.values()])
            del self._waiting[sql]

    def after_commit(self, call: Callable[[], None], /) -> None:
        self.calls.append(call)

    def do_alone(self, write: PendingWrite) -> None:
        """Run one write of a group in a savepoint. An exception rolls back that write alone and goes to its caller.

        Raises:
            StoreUnavailable: the whole group must be given up.
        """
        calls, memo = len(self.calls), dict(self.memo)
        self._run("SAVEPOINT work")
        try:
            write.result, write.error = write.work(self), None
            self.flush()
        except StoreUnavailable:
            raise
        except BaseException as error:  # handed to the caller
            write.error = error
            del self.calls[calls:]
            self._waiting.clear()
            self.memo.clear()
            self.memo.update(memo)
            self._run("ROLLBACK TO work")
        self._run("RELEASE work")
