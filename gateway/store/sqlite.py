"""A SQLite file, or memory: the one door to SQLite. One connection writes, and the others only read.

SQLite before 3.51.3 can damage a database in WAL mode when two connections write or checkpoint at once (the WAL-reset
bug, sqlite.org/wal.html), and the gateway runs on whatever SQLite the host has. So every writer holds a lock over all
processes (`filelock`). Checkpoints happen in a commit, so under that lock as well; every other connection is read-only.

A commit with synchronous=NORMAL is seen by every process and survives all of them; with FULL it also waits for the
disk, which then has all commits before it.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import quote

from anyio import to_thread

from gateway.clock import Clock
from gateway.errors import Conflict, InvalidRequest, SetupError
from gateway.log import Log
from gateway.store.database import Params, StoreUnavailable, Transaction, UnreadableRow
from gateway.store.database_file import DatabaseFile, Identity, in_use
from gateway.store.engine import Database
from gateway.store.filelock import FileLock, sync
from gateway.store.transaction import do_group
from gateway.store.writer import PendingWrite

T = TypeVar("T")

MEMORY = ":memory:"
MAGIC = b"SQLite format 3\0"  # the begin of every database file
BUSY_SECONDS = 5.0
_APPLICATION_ID = 0x67777931  # "gwy1", in the header of the file
_LEAST_BYTES = 512  # of a page, so of any database that holds something
_READERS = 4
_QUICK_READERS = 2
_CHECKPOINT_PAGES = 800
_LOG_BYTES = 8 * 1024 * 1024  # a log that grew because a long read held back checkpoints is truncated to this
_SETTINGS = ("temp_store = MEMORY", "trusted_schema = OFF", "cache_size = -500")
_WRITE_SETTINGS = (
    *_SETTINGS,
    "foreign_keys = ON",
    "secure_delete = ON",
    f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
    f"journal_size_limit = {_LOG_BYTES}",
)
_SHAPES = """
    SELECT sqlite_master.name AS table_name, columns.name, columns.pk
      FROM sqlite_master JOIN pragma_table_info(sqlite_master.name) AS columns
     WHERE sqlite_master.type = 'table' AND sqlite_master.name NOT LIKE 'sqlite%'
"""
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM,
}  # fmt: skip


class SqliteDatabase(Database):
    """A SQLite file, or memory when `path` is ``:memory:``.

    clock: of the host, which is the database's host. identity: of the one file that it may be, None to make one where
    there is none.
    """

    is_shared = False
    _waits_for = "disk"
    _shapes_sql = _SHAPES

    def __init__(self, path: str, *, clock: Clock, log: Log, identity: Identity | None = None) -> None:
        super().__init__(log, readers=_READERS, quick_readers=_QUICK_READERS)
        self._path = path
        self._now_at = clock.now_at
        self._file = None if path == MEMORY else DatabaseFile(path, identity=identity)
        # Whoever holds it may use the connection that writes. Memory is one connection, which also reads.
        self._lock: FileLock | threading.RLock = FileLock(path + ".lock") if self._file else threading.RLock()
        self._in_use = in_use(path)
        self._is_synced = False  # whether the disk has all commits; an earlier process may have left some

    async def read(self, work: Callable[[Transaction], T], *, is_quick: bool = False) -> T:
        limiter = self._quick_limiter if is_quick else self._limiter
        return await to_thread.run_sync(self._read, work, limiter=limiter)

    def copy_to(self, target: str) -> None:
        """Write a consistent, compact copy into a new file that only its owner may read. Blocks; writers go on.

        Raises:
            FileExistsError: there is such a file. StoreUnavailable: the database cannot be read, or the disk is full.
        """
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with self._reader() as connection:
                _run(connection, "VACUUM INTO :path", {"path": target})
            sync(target)
        except BaseException:
            os.unlink(target)
            raise

    def settle_positions(self, tx: Transaction) -> None:
        """SQLite counts on from the highest."""

    def is_whole(self) -> bool:
        """Check the structure of the whole database and return whether it is sound. Blocks.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        with self._reader() as connection:
            return [tuple(row) for row in _run(connection, "PRAGMA quick_check(1)")] == [("ok",)]

    # Open and close, in a worker thread.

    def _open(self) -> None:
        try:
            if self._file is not None:
                self._file.prepare()
            with self._lock:
                try:
                    if self._file is not None:
                        self._in_use.acquire(shared=True)
                    self._check_owner(self._writing())
                except BaseException:
                    self._drop()  # under the lock, since closing may make a checkpoint
                    self._in_use.close()
                    raise
            # One reader stays open: without any, a writer that is dropped when the disk is full would remove the log.
            with self._reader() as connection:
                _run(connection, "SELECT COUNT(*) FROM sqlite_master").fetchone()
        except OSError as error:
            raise SetupError(
                f"The database {self._path} cannot be used ({error.strerror}): choose a writable data folder, "
                "or :memory: to keep nothing."
            ) from error
        except (StoreUnavailable, sqlite3.Error) as error:
            raise SetupError(f"The database {self._path} cannot be used: {error}") from error

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        """Check that this is our own database, before the first byte is written, and make it one if it is empty."""
        if self._file is not None and 0 < os.path.getsize(self._path) < _LEAST_BYTES:
            raise SetupError(f"The file {self._path} is not a database: choose another path.")
        tables = _run(connection, "SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        owner = _run(connection, "PRAGMA application_id").fetchone()[0]
        if owner != _APPLICATION_ID:
            if tables or owner:
                raise SetupError(f"The file {self._path} is the database of another program: choose another path.")
            _run(connection, f"PRAGMA application_id = {_APPLICATION_ID}")
        if self._file is not None and _run(connection, "PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise SetupError(f"The file system of {self._path} cannot hold the database (no WAL): use a local disk.")

    def _close_writing(self) -> None:
        try:
            with self._held():
                try:
                    if self._connection is not None:
                        _run(self._connection, "PRAGMA wal_checkpoint(PASSIVE)")
                finally:
                    self._drop()
        except StoreUnavailable as error:
            self._log.error("store_close_failed", error=error)
        if isinstance(self._lock, FileLock):
            self._lock.close()
        self._in_use.close()

    # Write, in the writer's thread.

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock, if the file is still there: SQLite would remove the log of another one in its place."""
        try:
            if self._file is not None:
                self._file.check()
            with self._lock:
                yield
        except OSError as error:
            raise StoreUnavailable("The database's lock file cannot be used.", retry_after_seconds=5) from error

    def _commit(self, group: Sequence[PendingWrite], is_durable: bool) -> None:
        with self._held():
            try:
                self._transact(self._writing(), group, is_durable)
            except StoreUnavailable:
                if self._file is not None:
                    self._drop()  # the next connection may find a disk that has come back
                raise

    def _change(self, write: PendingWrite) -> None:
        if self._file is None:
            self._commit((write,), is_durable=True)
            return
        with self._held():
            # A new connection, because a connection keeps the pages and statements of all that it has run.
            connection = self._connect(writes=True)
            try:
                with suppress(StoreUnavailable, sqlite3.Error):  # the folder takes no files: sort in memory
                    folder = os.path.dirname(os.path.abspath(self._path)).replace("'", "''")
                    _run(connection, f"PRAGMA temp_store_directory = '{folder}'")
                    _run(connection, "PRAGMA temp_store = FILE")
                self._transact(connection, (write,), is_durable=True)
            finally:
                with suppress(StoreUnavailable, sqlite3.Error):
                    _run(connection, "PRAGMA temp_store_directory = ''")  # it holds for the whole process
                connection.close()

    def _transact(self, connection: sqlite3.Connection, group: Sequence[PendingWrite], is_durable: bool) -> None:
        _run(connection, f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
        begin = partial(_run, connection, "BEGIN IMMEDIATE")
        begin()
        try:
            tx = do_group(partial(_run, connection), group, begin, self._now_at)
            if is_durable and not self._is_synced:
                # SQLite syncs a commit only if it writes a page: this writes the first, even if it stays the same.
                _run(connection, f"PRAGMA application_id = {_APPLICATION_ID}")
            _run(connection, "COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise
        self._is_synced = is_durable
        self._run_calls((*tx.calls, self._on_sync) if is_durable else tx.calls)

    def _connect(self, *, writes: bool) -> sqlite3.Connection:
        if self._file is None:
            return _connect(MEMORY, *_WRITE_SETTINGS)
        if writes:
            return _connect(_address(self._path, "rw"), *_WRITE_SETTINGS)
        self._file.check()
        return _connect(_address(self._path, "ro"), *_SETTINGS)

    # Read.

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self._reader() as connection:
            _run(connection, "BEGIN")
            try:
                return work(Transaction(partial(_run, connection), self._now_at))
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                raise UnreadableRow("A row of the database is damaged.") from error
            finally:
                _run(connection, "ROLLBACK")

    @contextmanager
    def _reader(self, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
        if self._file is None:
            with self._lock:
                yield self._writing()
        else:
            with super()._reader(is_new=is_new) as connection:
                yield connection


def _run(
    connection: sqlite3.Connection,
    sql: str,
    params: Params | Sequence[Params] = {},  # noqa: B006
) -> sqlite3.Cursor:
    """Execute one statement, once or for each of several rows, and translate every error of the driver."""
    try:
        if isinstance(params, Sequence):
            return connection.executemany(sql, cast(Any, params))
        return connection.execute(sql, cast(Any, params))
    except sqlite3.IntegrityError as error:
        raise Conflict("The record conflicts with one that exists.") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidRequest("A number is too large, or a text holds half a character.") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        is_closed = isinstance(error, sqlite3.ProgrammingError) and code is None and "closed" in str(error)
        if is_closed or (code is not None and code & 0xFF in _UNAVAILABLE):
            raise StoreUnavailable(f"The database cannot be used now: {error}.", retry_after_seconds=5) from error
        raise


def _connect(name: str, *settings: str) -> sqlite3.Connection:
    """Open a connection for any thread that waits for other programs. name: `MEMORY`, or the URI of a file."""
    try:
        connection = sqlite3.connect(
            name,
            uri=name != MEMORY,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The database cannot be opened: {error}.", retry_after_seconds=5) from error
    connection.row_factory = sqlite3.Row
    try:
        for setting in settings:
            _run(connection, f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _address(path: str, mode: str) -> str:
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"
