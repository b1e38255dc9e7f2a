"""What the repositories and services see of a database, whichever it is. No SQL and no driver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gateway.errors import GatewayError, Overloaded

T = TypeVar("T")
Params = Mapping[str, object]


class StoreUnavailable(Overloaded):
    """The database cannot be read or written now: full, read-only, locked or broken disk, or too much to write."""


class UnreadableRow(GatewayError):
    """A row holds what no text can be: somebody wrote to the file past the program."""

    code = "internal_error"


class Row(Protocol):
    """One row of an answer."""

    def __getitem__(self, column: str, /) -> Any:
        """Return the value of a column."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """A table and the columns of rows that are plain inserts, so that many of them can be one statement.

    Each is one constant, equal to itself alone: it is looked up for every row. is_fresh: its rows are moved there
    later, see `fresh`. alike: sets of columns in which rows that come together often have the same values, those that
    differ least first; the values of as many sets as are alike are given to the database once for all rows.
    """

    table: str
    columns: tuple[str, ...]
    is_fresh: bool = False
    alike: tuple[frozenset[str], ...] = ()


class Transaction(Protocol):
    """One work inside a group of works that are committed together, or one consistent look."""

    memo: dict[str, Any]
    """What works of one group tell each other. Taken back with the work that wrote it. Values are never changed."""

    def execute(self, sql: str, params: Params = ..., /) -> int:
        """Run one statement and return how many rows it changed."""
        ...

    def query(self, sql: str, params: Params = ..., /) -> list[Row]:
        """Run one SELECT and return all its rows. Does not see rows given to `add` in the same group."""
        ...

    def add(self, insert: Insert, row: Sequence[object], /) -> None:
        """Insert a plain row before the commit, together with others of its kind."""
        ...

    def before_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` once when all works of the group are done, before the commit. What it raises is the group's."""
        ...

    def after_commit(self, name: str, work: Callable[[], None], /) -> None:
        """Run `work` once after the commit, while nobody else can write.

        It must not fail: what was committed stands.
        """
        ...


class Database(Protocol):
    """A store of rows with one writer at a time and any number of readers."""

    @property
    def is_writable(self) -> bool:
        """Whether the last write succeeded."""
        ...

    async def open(self) -> None:
        """Make or open the database.

        Raises:
            SetupError: it cannot be used; the message says why and what to do. Nothing was overwritten.
        """
        ...

    async def aclose(self) -> None:
        """Write what is queued, then close. May be called twice.

        Raises:
            StoreUnavailable: a thread still waits for the disk or for another program, so not all may be written.
        """
        ...

    async def write(
        self,
        work: Callable[[Transaction], T],
        *,
        is_durable: bool = True,
        is_brief: bool = False,
        is_job: bool = False,
    ) -> T:
        """Run `work` and return its result once it is committed and on the disk.

        is_durable: false when every process has to see it, but a power cut may undo it: the disk is not waited for, and
        has it a tenth of a second later. is_brief: it takes microseconds, so that the event loop may do it itself.
        is_job: the caller comes once, where others who have their answer come back: no group waits for its like.
        Works of many callers share one commit. An exception of `work` takes back that work alone and is raised here. A
        caller that is cancelled no longer waits; the work is still done.

        Raises:
            StoreUnavailable: nothing was written, or, after a long wait, nobody knows whether it was.
        """
        ...

    async def change(self, work: Callable[[Transaction], T]) -> T:
        """Do what `write` does, however long it takes: for a change of the schema. Not for who is served meanwhile.

        What has to be sorted for it lies in files beside the database.

        A caller that is cancelled waits until it is done.

        Raises:
            StoreUnavailable: nothing was written.
        """
        ...

    def write_behind(self, work: Callable[[Transaction], object], *, is_brief: bool = False) -> bool:
        """Queue `work` to be committed within about 50 milliseconds, and return at once. is_brief: as for `write`.

        Tells whether half of what may wait does: then who comes with more should be kept waiting by a `write`.

        Raises:
            StoreUnavailable: the queue is full or the disk refuses; `work` was not taken.
        """
        ...

    def at_sync(self, take: Callable[[], Callable[[], None] | None]) -> None:
        """Call `take` whenever all that is committed goes to the disk, and what it returns when the disk has it.

        Both while nobody else can write; something may be committed in between.
        """
        ...

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent state, in a worker thread.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        ...

    def read_now(self, work: Callable[[Transaction], T]) -> T:
        """Run a small lookup in the calling thread: microseconds, for what is too short to hand over.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        ...


def pieces(count: int, sizes: tuple[int, ...]) -> Iterator[int]:
    """Cut `count` into pieces of the given sizes, largest first; the last size must be 1."""
    for size in sizes:
        while count >= size:
            yield size
            count -= size
        if not count:
            return
