"""The interface of a transaction, for repositories and services. Holds no SQL and no driver."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gateway.errors import GatewayError, Overloaded

Params = Mapping[str, object]


class StoreUnavailable(Overloaded):
    """The database cannot be read or written now: full, read-only, locked or broken disk, or too much to write."""


class UnreadableRow(GatewayError):
    """A row holds bytes that are not text: somebody wrote to the file past the gateway."""

    code = "internal_error"


class Row(Protocol):
    """One row of an answer."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""


class Transaction(Protocol):
    """One write inside a group that is committed together, or one consistent read.

    A write may run more than once until it is committed, so it must not change anything outside the database.

    memo: values that the writes of a group share. A rollback of one write also restores them.
    """

    @property
    def memo(self) -> dict[object, Any]:
        """Values that the writes of a group share."""

    def execute(self, sql: str, params: Params = ..., /) -> int:
        """Run one statement and return how many rows it changed."""

    def query(self, sql: str, params: Params = ..., /) -> list[Row]:
        """Run one SELECT and return all its rows."""

    def defer(self, sql: str, params: Params, key: object = ..., /) -> None:
        """Run a statement before the next `execute` or `query` of the group, or before its commit.

        Statements with the same text run together. Of those that also have the same `key`, only the last one runs.
        An error rolls back the write, although `defer` has returned.
        """

    def after_commit(self, call: Callable[[], None], /) -> None:
        """Run `call` after the commit, while no other process can write.

        It must not fail, because the commit stands. If the write fails, `call` does not run.
        """
