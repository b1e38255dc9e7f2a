"""A transaction of any database: what it runs, its rows and its errors. Holds no SQL and no driver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from gateway.errors import GatewayError, Overloaded

T = TypeVar("T")
Params = Mapping[str, object]
Run = Callable[..., Any]
"""Runs a statement with its parameters, or once for each of a sequence of them, and returns the driver's cursor."""


class StoreUnavailable(Overloaded):
    """The database cannot be read or written now: full, read-only, locked or broken disk, or too much to write."""


class UnreadableRow(GatewayError):
    """A row holds bytes that are not text: somebody wrote to the file past the gateway."""

    code = "internal_error"


class LeaseLost(GatewayError):
    """Another process has the lease of a job, so what this one would write of it is not written."""

    code = "internal_error"


def insert_into(table: str, columns: Sequence[str], *, key: Sequence[str] = ()) -> str:
    """Return the statement that inserts a row or, with a `key`, writes it in place of the one with that key."""
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES (:{', :'.join(columns)})"  # noqa: S608  # our own names
    sets = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    return f"{sql} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}" if key else sql


class Row(Protocol):
    """One row of an answer."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A table. columns: the names of all. key: of those that identify a row."""

    name: str
    columns: Sequence[str]
    key: Sequence[str]


class Transaction:
    """One write inside a group that is committed together, or one consistent read.

    A write may run more than once until it is committed, so it must not change anything outside the database.

    now_at: returns the clock of the database in Unix milliseconds. It decides between hosts, whose clocks may differ.
    memo: values that the writes of a group share. A rollback of one write also restores them. The rest is for the
    writer alone. calls: after the commit. waiting: deferred statements with the parameters of each run, by their keys.
    """

    def __init__(self, run: Run, now_at: Callable[[], int]) -> None:
        self.run = run
        self.now_at = now_at
        self.waiting: dict[str, dict[object, Params]] = {}
        self.calls: list[Callable[[], None]] = []
        self.memo: dict[object, Any] = {}

    def execute(self, sql: str, params: Params = {}, /) -> int:  # noqa: B006  # never written to
        """Run one statement and return how many rows it changed."""
        self.flush()
        return cast(int, self.run(sql, params).rowcount)

    def query(self, sql: str, params: Params = {}, /) -> list[Row]:  # noqa: B006
        """Run one SELECT and return all its rows."""
        self.flush()
        return cast(list[Row], self.run(sql, params).fetchall())

    def defer(self, sql: str, params: Params, key: object = None, /) -> None:
        """Run a statement before the next `execute` or `query` of the group, or before its commit.

        Statements with the same text run together. Of those that also have the same `key`, only the last one runs.
        An error rolls back the write, although `defer` has returned.
        """
        rows = self.waiting.setdefault(sql, {})
        rows[len(rows) if key is None else key] = params

    def flush(self) -> None:
        """Run the deferred statements. A statement that fails stays, so that no write can hide its error."""
        while self.waiting:
            sql, rows = next(iter(self.waiting.items()))
            self.run(sql, [*rows.values()])
            del self.waiting[sql]

    def after_commit(self, call: Callable[[], None], /) -> None:
        """Run `call` after the commit, while no other process can write.

        It must not fail, because the commit stands. If the write fails, `call` does not run.
        """
        self.calls.append(call)


_FENCE: ContextVar[Callable[[Transaction], None] | None] = ContextVar("fence", default=None)


@contextmanager
def fence(check: Callable[[Transaction], None]) -> Iterator[None]:
    """Let each write of this task, and of tasks that it starts inside, run `check` first in its own transaction."""
    token = _FENCE.set(check)
    try:
        yield
    finally:
        _FENCE.reset(token)


def fenced(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Return `work` with the check of the fence around its caller, if there is one."""
    check = _FENCE.get()
    if check is None:
        return work

    def checked(tx: Transaction) -> T:
        check(tx)
        return work(tx)

    return checked
