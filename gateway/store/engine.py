"""What all engines of databases share: one writer, and connections that are kept. Holds no SQL and no driver."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast

import anyio
from anyio import to_thread

from gateway.log import Log
from gateway.store.database import Shape, StoreUnavailable, Transaction
from gateway.store.writer import PendingWrite, Writer

T = TypeVar("T")


class Database(ABC):
    """A store of rows with one writer at a time and any number of readers.

    is_shared: whether gateways on several hosts may use it, each with a data folder of its own.
    An engine also says what a late close waited for, and after which error a connection is not used again. Its
    statement of shapes gives the table and name of each column, and the place in the key, 0 for none.
    """

    is_shared: ClassVar[bool]
    _waits_for: ClassVar[str]
    _breaking: ClassVar[type[StoreUnavailable]] = StoreUnavailable
    _shapes_sql: ClassVar[str]

    def __init__(self, log: Log, *, readers: int, quick_readers: int, wait_seconds: float | None = None) -> None:
        """readers, quick_readers: how many reads of either kind run at once. wait_seconds: as of `Writer`."""
        self._log = log
        self._connection: Any = None  # that writes
        self._idle: deque[Any] = deque()  # connections that read
        self._limiter = anyio.CapacityLimiter(readers)
        self._quick_limiter = anyio.CapacityLimiter(quick_readers)
        self._on_sync: Callable[[], None] = lambda: None
        self._writer = Writer(self._commit, log, wait_seconds=wait_seconds)
        self._state = "new"

    @property
    def is_writable(self) -> bool:
        """Whether the last write succeeded."""
        return not self._writer.has_failed

    async def open(self) -> None:
        """Make or open the database.

        Raises:
            SetupError: it cannot be used; the message says why and what to do. Nothing was overwritten.
        """
        await to_thread.run_sync(self._open)
        self._writer.start()
        self._state = "open"

    async def aclose(self) -> None:
        """Write what is queued, then close. May be called twice.

        Raises:
            StoreUnavailable: the writer still waits for the disk or for another program, so writes may be lost.
        """
        if self._state == "open":
            self._state = "closing"
            with anyio.CancelScope(shield=True):
                has_ended = await to_thread.run_sync(self._close)
            if not has_ended:
                raise StoreUnavailable(
                    f"The {self._waits_for} did not answer in time: not all that was queued is written."
                )

    async def write(self, work: Callable[[Transaction], T], *, is_durable: bool = True) -> T:
        """Run `work` and return its result once it is committed.

        Writes of several callers share a commit. An exception of `work` rolls back that work alone and is raised here.
        If the caller is cancelled, the work is still done.

        Args:
            is_durable: true to return only once the disk has it. If false, every process sees the change and no crash
                of a process undoes it, but a power cut may for the next tenth of a second.

        Raises:
            StoreUnavailable: nothing was written or, after a long wait, nobody knows whether it was.
        """
        return cast(T, await self._writer.write(work, is_durable=is_durable))

    def write_behind(self, work: Callable[[Transaction], object]) -> bool:
        """Queue `work` to be committed within about 50 milliseconds, and return at once.

        Returns whether the queue is half full. A caller that has more to write should then use `write`, and so wait.

        Raises:
            StoreUnavailable: the queue is full or the disk refuses writes. `work` was not taken.
        """
        return self._writer.write_behind(work)

    async def change(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction of its own and wait as long as it takes: for a change of the schema.

        Its temporary files lie beside the database. If the caller is cancelled, it still waits.

        Raises:
            StoreUnavailable: nothing was written.
        """
        write = PendingWrite(work)
        await to_thread.run_sync(self._change, write)
        if write.error is not None:
            raise write.error
        return cast(T, write.result)

    @abstractmethod
    async def read(self, work: Callable[[Transaction], T], *, is_quick: bool = False) -> T:
        """Run `work` on one consistent state, in a worker thread.

        is_quick: a small look-up, which waits for no longer read.

        Raises:
            StoreUnavailable: the database cannot be read.
        """

    def at_sync(self, call: Callable[[], None]) -> None:
        """Run `call` each time that all commits so far are on the disk, while no other process can write."""
        self._on_sync = call

    def shapes(self, tx: Transaction) -> Sequence[Shape]:
        """Return the tables of the schema."""
        columns: dict[str, list[str]] = {}
        keys: dict[str, list[tuple[int, str]]] = {}
        for row in tx.query(self._shapes_sql):
            columns.setdefault(row["table_name"], []).append(row["name"])
            keys.setdefault(row["table_name"], []).append((row["pk"], row["name"]))
        return [Shape(name, columns[name], [one for number, one in sorted(keys[name]) if number]) for name in columns]

    @abstractmethod
    def settle_positions(self, tx: Transaction) -> None:
        """Let positions count on after those of rows that were copied."""

    # In a worker thread; `_commit` in the writer's.

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _commit(self, group: Sequence[PendingWrite], is_durable: bool) -> None: ...

    @abstractmethod
    def _change(self, write: PendingWrite) -> None: ...

    @abstractmethod
    def _connect(self, *, writes: bool) -> Any: ...

    def _close(self) -> bool:
        """Close what can be closed, and return whether the writer has ended. If not, the process is about to end."""
        has_ended = self._writer.end()
        self._state = "closed"
        while self._idle:
            self._idle.pop().close()
        if has_ended:
            self._close_writing()
        return has_ended

    def _close_writing(self) -> None:
        self._drop()

    def _run_calls(self, calls: Iterable[Callable[[], None]]) -> None:
        for call in calls:
            try:
                call()
            except OSError as error:  # the commit stands
                self._log.error("store_after_commit_failed", error=error)

    def _check_open(self) -> None:
        if self._state == "closed":
            raise StoreUnavailable("The database is closed.")

    def _writing(self) -> Any:
        self._check_open()
        if self._connection is None:
            self._connection = self._connect(writes=True)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    @contextmanager
    def _reader(self, *, is_new: bool = False) -> Iterator[Any]:
        """Lend a connection that reads. is_new: one that nobody had before."""
        self._check_open()
        try:
            connection = self._connect(writes=False) if is_new else self._idle.pop()
        except IndexError:
            connection = self._connect(writes=False)
        is_usable = True
        try:
            yield connection
        except self._breaking:
            is_usable = False  # the next one may find a disk that has come back
            raise
        finally:
            if is_usable and self._state != "closed":
                self._keep(connection)
            else:
                connection.close()

    def _keep(self, connection: Any) -> None:
        self._idle.append(connection)
