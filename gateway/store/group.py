"""A group of works in one transaction: each can be taken back alone, plain rows go in together. Knows no driver."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any, Protocol, cast

from gateway.store.database import Insert, Params, Row, StoreUnavailable, pieces
from gateway.store.fresh import insert_sql
from gateway.store.writer import Work

# A statement for each, so that few are ever compiled. Each lets go of the interpreter several times, and to get it back
# from a busy event loop costs more than the insert: so any number of rows below 48 takes two statements, or three.
_INSERT_ROWS = (32, 16, 12, 8, 6, 4, 3, 2, 1)


class Cursor(Protocol):
    """What a statement answers."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        ...


class GroupTransaction:
    """`Transaction` over whatever runs a statement. The writer also lets it do works and finish.

    fresh_rows: how many rows it has inserted that are to be moved later.
    """

    def __init__(self, run: Callable[[str, Params | Sequence[object]], Cursor]) -> None:
        self._run = run
        self._values: dict[Insert, list[object]] = {}  # of one row after the other
        self._is_guarded = True
        self.after: dict[str, Callable[[bool], None]] = {}
        self.memo: dict[str, Any] = {}
        self.fresh_rows = 0

    def execute(self, sql: str, params: Params = {}, /) -> int:  # noqa: B006  # never written to
        """Run one statement and return how many rows it changed."""
        if not self._is_guarded:
            # Only a work that changes something at once needs a savepoint; plain rows are taken back by themselves.
            self._run("SAVEPOINT work", ())
            self._is_guarded = True
        return self._run(sql, params).rowcount

    def query(self, sql: str, params: Params = {}, /) -> list[Row]:  # noqa: B006  # never written to
        """Run one SELECT and return all its rows."""
        return cast(list[Row], self._run(sql, params).fetchall())

    def add(self, insert: Insert, row: Sequence[object], /) -> None:
        """Insert a plain row before the commit."""
        values = self._values.get(insert)
        if values is None:
            values = self._values[insert] = []
        values.extend(row)

    def after_commit(self, name: str, work: Callable[[bool], None], /) -> None:
        """Run `work` after the commit, under the lock."""
        self.after.setdefault(name, work)

    def do(self, work: Work) -> None:
        """Do one work. Its exception takes back that work alone and is kept for its caller.

        Raises:
            StoreUnavailable: the whole group must be given up.
        """
        marks = [*map(len, self._values.values())]
        memo, hooks = dict(self.memo), len(self.after)
        self._is_guarded = False
        try:
            work.result = work.call(self)
        except StoreUnavailable:
            raise
        except BaseException as error:  # handed to whoever asked for the work
            work.error = error
            if self._is_guarded:
                self._run("ROLLBACK TO work", ())
            self.memo = memo
            for name in list(self.after)[hooks:]:  # they only ever come to be more
                del self.after[name]
            for values, mark in zip(self._values.values(), chain(marks, repeat(0)), strict=False):
                del values[mark:]
        if self._is_guarded:
            self._run("RELEASE work", ())
        self._is_guarded = True

    def finish(self) -> None:
        """Insert the plain rows."""
        for insert, values in self._values.items():
            width, begin = len(insert.columns), 0
            rows = len(values) // width
            self.fresh_rows += rows * insert.is_fresh
            for size in pieces(rows, _INSERT_ROWS):
                end = begin + size * width
                self._run(_insert_sql(insert, size), values[begin:end])
                begin = end


_insert_sql = cache(insert_sql)
