"""A group of works in one transaction: each can be taken back alone, plain rows go in together. Knows no driver."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, Protocol, cast

from gateway.store.database import Insert, Params, Row, StoreUnavailable, pieces
from gateway.store.fresh import insert_sql
from gateway.store.works import Work

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

    fresh_rows: how many rows it has inserted, of each table, that are to be moved later.
    """

    def __init__(self, run: Callable[[str, Params | Sequence[object]], Cursor]) -> None:
        self._run = run
        self._rows: list[tuple[Insert, Sequence[object]]] = []
        self._is_guarded = True
        self._endings: dict[str, Callable[[], None]] = {}
        self._hooks: dict[str, Callable[[], None]] = {}
        self.memo: dict[str, Any] = {}
        self.fresh_rows: dict[str, int] = {}

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
        self._rows.append((insert, row))

    def before_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` before the commit."""
        self._endings.setdefault(name, work)

    def after_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` after the commit, under the lock."""
        self._hooks.setdefault(name, work)

    def take_hooks(self) -> list[Callable[[], None]]:
        """Return what is to run after the commit, and forget it.

        A hook may know this transaction: a circle that would hold all rows of the group until the collector comes.
        """
        hooks, self._hooks = [*self._hooks.values()], {}
        return hooks

    def do(self, work: Work) -> None:
        """Do one work. Its exception takes back that work alone and is kept for its caller.

        Raises:
            StoreUnavailable: the whole group must be given up.
        """
        memo, rows, hooks, endings = self.memo.copy(), len(self._rows), len(self._hooks), len(self._endings)
        self._is_guarded = False
        work.error = None  # of a group that did not stand
        try:
            work.result = work.call(self)
        except StoreUnavailable:
            raise
        except BaseException as error:  # handed to whoever asked for the work
            work.error = error
            if self._is_guarded:
                self._run("ROLLBACK TO work", ())
            self.memo = memo
            for name in list(self._hooks)[hooks:]:  # they only ever come to be more
                del self._hooks[name]
            for name in list(self._endings)[endings:]:
                del self._endings[name]
            del self._rows[rows:]
        if self._is_guarded:
            self._run("RELEASE work", ())
        self._is_guarded = True

    def finish(self) -> None:
        """Do what was put off, and insert the plain rows."""
        endings, self._endings = self._endings, {}  # they may know this transaction, as hooks may
        for work in endings.values():
            work()
        rows_of: dict[Insert, list[Sequence[object]]] = {}
        for insert, row in self._rows:
            rows_of.setdefault(insert, []).append(row)
        for insert, rows in rows_of.items():
            if insert.is_fresh:
                self.fresh_rows[insert.table] = len(rows)
            if len(rows) == 1:
                self._run(_insert_sql(insert, 1), rows[0])
                continue
            begin = 0
            for size in pieces(len(rows), _INSERT_ROWS):
                self._insert(insert, rows[begin : begin + size])
                begin += size

    def _insert(self, insert: Insert, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows by one statement, which is given once what they have in common."""
        columns = [*zip(*rows, strict=True)]
        alike = _count_alike(insert, columns) if len(rows) > 1 else 0
        parts = rows
        if alike:
            shared = _shared(insert, alike)
            parts = [column[:1] if is_shared else column for column, is_shared in zip(columns, shared, strict=True)]
        self._run(_insert_sql(insert, len(rows), alike), [*chain.from_iterable(parts)])


def _count_alike(insert: Insert, columns: Sequence[tuple[object, ...]]) -> int:
    """Return how many of the sets `insert.alike`, from the first on, have one value a column."""
    for number, places in enumerate(_places(insert)):
        for place in places:
            column = columns[place]
            if column.count(column[0]) < len(column):
                return number
    return len(insert.alike)


@cache
def _places(insert: Insert) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(insert.columns.index(name) for name in names) for names in insert.alike)


@cache
def _shared(insert: Insert, alike: int) -> tuple[bool, ...]:
    shared = frozenset().union(*insert.alike[:alike])
    return tuple(name in shared for name in insert.columns)


_insert_sql = cache(insert_sql)
