"""A SQLite file, or memory: one writer, whose commits are in `commits`, and readers that cannot write."""

import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread

from gateway.errors import SetupError
from gateway.log import Log
from gateway.store.commits import Commits
from gateway.store.database import StoreUnavailable, Transaction, UnreadableRow
from gateway.store.driver import MEMORY, Connection, Error, OperationalError, connect, run, transaction
from gateway.store.place import Identity, address
from gateway.store.works import Work
from gateway.store.writer import STOP_SECONDS, Writer

T = TypeVar("T")

_READERS = 4


class SqliteDatabase:
    """A SQLite file, or memory when `path` is ``:memory:``. See `Database` for what the methods promise.

    identity: of the one file that it may be, None to make one where there is none.
    """

    def __init__(self, path: str, *, log: Log, identity: Identity | None = None) -> None:
        self._path = path
        self._log = log
        self._is_memory = path == MEMORY
        self._commits = Commits(path, log, identity)
        self._idle: deque[Connection] = deque()
        self._writer = Writer(self._commits, log)
        self._state = "new"

    async def open(self) -> None:
        """Make or open the database. See `Database.open`."""
        await to_thread.run_sync(self._open)
        self._limiter = anyio.CapacityLimiter(_READERS)
        self._writer.start()
        self._state = "open"

    @property
    def is_writable(self) -> bool:
        """Whether the last write succeeded. See `Database.is_writable`."""
        return not self._writer.has_failed

    async def aclose(self) -> None:
        """Write what is queued, then close. See `Database.aclose`."""
        if self._state == "open":
            self._state = "closing"
            self._writer.end()
            with anyio.CancelScope(shield=True):
                has_ended = await to_thread.run_sync(self._close)
            if not has_ended:
                raise StoreUnavailable("The disk did not answer in time: not all that was queued is written.")

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        is_durable: bool = True,
        is_brief: bool = False,
        is_job: bool = False,
    ) -> Coroutine[Any, Any, T]:
        """Run `work` and return once it is committed. See `Database.write`."""
        return self._writer.write(Work(work, is_durable=is_durable, is_brief=is_brief, is_job=is_job))

    async def change(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` and return once it is committed, however long that takes. See `Database.change`."""
        done = Work(work)
        await to_thread.run_sync(self._change, done)
        if done.error is not None:
            raise done.error
        return cast(T, done.result)

    def write_behind(self, work: Callable[[Transaction], object], *, is_brief: bool = False) -> bool:
        """Queue `work`. See `Database.write_behind`."""
        return self._writer.write_behind(work, is_brief=is_brief)

    def at_sync(self, take: Callable[[], Callable[[], None] | None]) -> None:
        """Say what is done around each way to the disk. See `Database.at_sync`."""
        self._commits.before_sync = take

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one state in a worker thread. See `Database.read`."""
        return await to_thread.run_sync(self._read, work, limiter=self._limiter)

    def read_now(self, work: Callable[[Transaction], T]) -> T:
        """Run a small lookup here. See `Database.read_now`."""
        with self._reader() as connection:
            return work(transaction(connection))

    def _change(self, work: Work) -> None:
        self._commits.change(work)
        self._commits.renew()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self._reader() as connection:
            run(connection, "BEGIN")
            try:
                return work(transaction(connection))
            except OperationalError as error:
                if "decode" not in str(error):
                    raise
                raise UnreadableRow("A row of the database is damaged.") from error
            finally:
                run(connection, "ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[Connection]:
        if self._state == "closed":
            raise StoreUnavailable("The database is closed.")
        if self._is_memory:
            with self._commits.lock:
                yield self._commits.connection()
            return
        try:
            connection = self._idle.pop()
        except IndexError:
            self._commits.place.check()
            connection = connect(address(self._path, "ro"), "query_only = ON")
        try:
            yield connection
        except StoreUnavailable:
            connection.close()  # the next one may see a disk that has come back
            raise
        except BaseException:
            self._give_back(connection)
            raise
        self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._state == "closed":
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _close(self) -> bool:
        """Close what can be, and tell whether the threads have ended: else one of them waits, for the disk or the lock.

        The process is about to end then.
        """
        until_seconds = time.monotonic() + STOP_SECONDS
        has_ended = self._writer.join() and self._commits.end(max(0.0, until_seconds - time.monotonic()))
        self._state = "closed"
        self._close_idle()
        if has_ended:
            self._commits.close()
        return has_ended

    def _open(self) -> None:
        try:
            self._commits.open()
        except OSError as error:
            raise SetupError(
                f"The database {self._path} cannot be used ({error.strerror}): choose a writable data folder, "
                "or :memory: to keep nothing."
            ) from error
        except (StoreUnavailable, Error) as error:
            raise SetupError(f"The database {self._path} cannot be used: {error}") from error
