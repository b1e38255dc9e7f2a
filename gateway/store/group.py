"""A group of works in one transaction: each can be taken back alone, plain rows go in together. Knows no driver."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Protocol, cast

from gateway.store.database import Insert, Params, Row, StoreUnavailable, pieces
from gateway.store.fresh import alike_places, insert_sql
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
        self._rows: defaultdict[Insert, list[Sequence[object]]] = defaultdict(list)
        self._work: Work | None = None  # that is being done
        self._guarded: Work | None = None  # that has a savepoint
        self._endings: dict[str, tuple[Work | None, Callable[[], None]]] = {}
        self._hooks: dict[str, tuple[Work | None, Callable[[], None]]] = {}
        self.memo: dict[str, Any] = {}
        self.fresh_rows: dict[str, int] = {}

    def execute(self, sql: str, params: Params = {}, /) -> int:  # noqa: B006  # never written to
        """Run one statement and return how many rows it changed."""
        if self._guarded is not self._work:
            # Only a work that changes something at once needs a savepoint; plain rows are taken back by themselves.
            self._run("SAVEPOINT work", ())
            self._guarded = self._work
        return self._run(sql, params).rowcount

    def query(self, sql: str, params: Params = {}, /) -> list[Row]:  # noqa: B006  # never written to
        """Run one SELECT and return all its rows."""
        return cast(list[Row], self._run(sql, params).fetchall())

    def add(self, insert: Insert, row: Sequence[object], /) -> None:
        """Insert a plain row before the commit."""
        self._rows[insert].append(row)

    def before_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` before the commit."""
        self._endings.setdefault(name, (self._work, work))

    def after_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` after the commit, under the lock."""
        self._hooks.setdefault(name, (self._work, work))

    def take_hooks(self) -> list[Callable[[], None]]:
        """Return what is to run after the commit, and forget it.

        A hook may know this transaction: a circle that would hold all rows of the group until the collector comes.
        """
        hooks, self._hooks = self._hooks, {}
        return [hook for _, hook in hooks.values()]

    def do(self, works: Sequence[Work]) -> None:
        """Do the works that are still wanted. An exception takes back its own work alone and is kept for its caller.

        Raises:
            StoreUnavailable: the whole group must be given up.
        """
        for work in works:
            if work.is_abandoned:
                continue
            memo, rows = self.memo.copy(), [*map(len, self._rows.values())]
            self._work, work.error = work, None  # there may be one of a group that did not stand
            try:
                work.result = work.call(self)
            except StoreUnavailable:
                raise
            except BaseException as error:  # handed to whoever asked for the work
                work.error = error
                self._take_back(work, memo, rows)
            if self._guarded is work:
                self._run("RELEASE work", ())
        self._work = self._guarded = None

    def _take_back(self, work: Work, memo: dict[str, Any], rows: Sequence[int]) -> None:
        """Forget a work that has failed. memo: before it. rows: how many there were of each table."""
        if self._guarded is work:
            self._run("ROLLBACK TO work", ())
        self.memo = memo
        for put_off in (self._hooks, self._endings):
            for name in [name for name, (whose, _) in put_off.items() if whose is work]:
                del put_off[name]
        for added, count in zip(self._rows.values(), chain(rows, repeat(0)), strict=False):
            del added[count:]

    def finish(self) -> None:
        """Do what was put off, and insert the plain rows."""
        endings, self._endings = self._endings, {}  # they may know this transaction, as hooks may
        for _, ending in endings.values():
            ending()
        for insert, rows in self._rows.items():
            if insert.is_fresh:
                self.fresh_rows[insert.table] = len(rows)
            begin = 0
            for size in pieces(len(rows), _INSERT_ROWS):
                self._insert(insert, rows[begin : begin + size])
                begin += size

    def _insert(self, insert: Insert, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows by one statement, which is given once what they have in common."""
        if len(rows) == 1:
            self._run(_insert_sql(insert, 1), rows[0])
            return
        columns = [*zip(*rows, strict=True)]
        if alike := _count_alike(insert, rows[0], columns):
            shared, others = _shared_and_others(insert, alike)
            params = [*shared(rows[0]), *chain.from_iterable(others(columns))]
        else:
            params = [*chain.from_iterable(rows)]
        self._run(_insert_sql(insert, len(rows), alike), params)


def _count_alike(insert: Insert, first: Sequence[object], columns: Sequence[tuple[object, ...]]) -> int:
    """Return how many of the sets `insert.alike`, from the first on, have one value a column: that of the first row."""
    rows = len(columns[0])
    for number, pick in enumerate(_sets(insert)):
        if min(map(tuple.count, pick(columns), pick(first))) < rows:
            return number
    return len(insert.alike)


_Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


@cache
def _sets(insert: Insert) -> tuple[_Pick, ...]:
    """Return what picks the columns of each of the sets `insert.alike`."""
    return tuple(_picker([insert.columns.index(name) for name in names]) for names in insert.alike)


@cache
def _shared_and_others(insert: Insert, alike: int) -> tuple[_Pick, _Pick]:
    """Return what picks the columns that so many sets share, and what picks the others."""
    shared, others = alike_places(insert, alike)
    return _picker(shared), _picker(others)


def _picker(places: Sequence[int]) -> _Pick:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)


_insert_sql = cache(insert_sql)
