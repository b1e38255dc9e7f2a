"""The only door to sqlite3: a file or memory, one writer at a time over all processes, readers that cannot write.

Theory of operation. SQLite before 3.51.3 can damage a WAL database when two connections write or checkpoint at once,
and an archive runs on whatever SQLite the host has. So whoever writes holds a flock (`filelock`), the writer alone
makes checkpoints, under that lock, and every other connection is read-only. `:memory:` is one connection under one
lock.
"""

import os
import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import quote

import anyio
from anyio import to_thread

from gateway.errors import Conflict, GatewayError, InvalidRequest, SetupError
from gateway.log import Log
from gateway.store.database import Params, StoreUnavailable, Transaction, UnreadableRow
from gateway.store.filelock import FileLock
from gateway.store.fresh import settle, settle_table
from gateway.store.group import GroupTransaction
from gateway.store.place import Place
from gateway.store.wal import holds
from gateway.store.writer import Work, Writer

T = TypeVar("T")

MEMORY = ":memory:"
APPLICATION_ID = 0x67777931  # "gwy1", in the header of the file
_MAGIC = b"SQLite format 3\0"
_READERS = 4
_FRESH_ROWS = 256
_CHECKPOINT_CHANGES = 6_000
_CHECKPOINT_GROUPS = 150
_LOOK_GROUPS = 16
_PAUSE_BYTES = 4 * 1024 * 1024
_WAL_BYTES = 48 * 1024 * 1024
_TRUNCATE_BYTES = 64 * 1024 * 1024
_BUSY_SECONDS = 5.0
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
}
# What a connection keeps of the file it throws away when another one has committed: more of it is only memory.
_SETTINGS = ("temp_store = MEMORY", "trusted_schema = OFF", "wal_autocheckpoint = 0", "cache_size = -500")


class SqliteDatabase:
    """A SQLite file, or memory when `path` is ``:memory:``. See `Database` for what the methods promise."""

    def __init__(self, path: str, *, log: Log) -> None:
        self._path = path
        self._is_memory = path == MEMORY
        self._wal_path = os.path.realpath(path) + "-wal"  # beside the file itself, if the path is a link
        self._place = Place(path, magic=_MAGIC)
        self._log = log
        self._lock: AbstractContextManager[object] = threading.RLock() if self._is_memory else FileLock(path + ".lock")
        self._connection: sqlite3.Connection | None = None
        self._is_durable: bool | None = None
        self._changes = self._looked = self._groups = 0
        self._fresh_rows: Counter[str] = Counter()
        self._idle: deque[sqlite3.Connection] = deque()
        self._writer = Writer(self._commit, self._tidy, log)
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
        """Write what is queued, then close."""
        if self._state == "open":
            self._state = "closing"
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close)

    def write(self, work: Callable[[Transaction], T], *, is_durable: bool = True) -> Coroutine[Any, Any, T]:
        """Run `work` and return once it is committed. See `Database.write`."""
        return self._writer.write(work, is_durable=is_durable)

    def write_behind(self, work: Callable[[Transaction], object]) -> None:
        """Queue `work`. See `Database.write_behind`."""
        self._writer.write_behind(work)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one state in a worker thread. See `Database.read`."""
        return await to_thread.run_sync(self._read, work, limiter=self._limiter)

    def read_now(self, work: Callable[[Transaction], T]) -> T:
        """Run a small lookup here. See `Database.read_now`."""
        with self._reader() as connection:
            return work(_transaction(connection))

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self._reader() as connection:
            _run(connection, "BEGIN")
            try:
                return work(_transaction(connection))
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                raise UnreadableRow("A row of the database is damaged.") from error
            finally:
                _run(connection, "ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._state == "closed":
            raise StoreUnavailable("The database is closed.")
        if self._is_memory:
            with self._lock:
                yield self._writable()
            return
        try:
            connection = self._idle.pop()
        except IndexError:
            self._place.check()
            connection = _connect(self._address("ro"), "query_only = ON")
        try:
            yield connection
        except StoreUnavailable:
            connection.close()  # the next one may see a disk that has come back
            raise
        except BaseException:
            self._give_back(connection)
            raise
        self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        self._idle.append(connection)
        if self._state == "closed":
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _writable(self) -> sqlite3.Connection:
        if self._state == "closed":
            raise StoreUnavailable("The database is closed.")
        if self._connection is None:
            self._connection = _connect(self._address("rw"), "foreign_keys = ON", "secure_delete = ON")
            self._is_durable = None
        return self._connection

    def _address(self, mode: str) -> str:
        return MEMORY if self._is_memory else f"file:{quote(os.path.abspath(self._path))}?mode={mode}"

    def _commit(self, works: Sequence[Work], is_durable: bool) -> None:
        """Do a group of works in one transaction: what `Writer` needs."""
        try:
            with self._lock:
                if not self._is_memory:
                    # Before a connection is made: SQLite removes the WAL of an empty file that has taken the place.
                    self._place.check()
                connection = self._writable()
                try:
                    self._commit_locked(connection, works, is_durable)
                except StoreUnavailable:
                    self._drop_writable()
                    raise
        except OSError as error:
            raise StoreUnavailable("The database's lock file cannot be used.", retry_after_seconds=5) from error

    def _commit_locked(self, connection: sqlite3.Connection, works: Sequence[Work], is_durable: bool) -> None:
        with self._transaction(connection, is_durable=is_durable) as tx:
            for work in works:
                if not work.is_abandoned:
                    tx.do(work)
            tx.finish()
        self._fresh_rows.update(tx.fresh_rows)
        for hook in tx.take_hooks():
            try:
                hook(is_durable)
            except OSError as error:
                self._log.error("store_after_commit_failed", error=error)

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection, *, is_durable: bool) -> Iterator[GroupTransaction]:
        """Commit what is done meanwhile, or nothing of it."""
        if is_durable is not self._is_durable:
            _run(connection, f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            self._is_durable = is_durable
        _run(connection, "BEGIN IMMEDIATE")
        try:
            yield _transaction(connection)
            _run(connection, "COMMIT")
        except BaseException:
            _roll_back(connection)
            raise

    def _tidy(self, is_pause: bool) -> None:
        """Move, now and then, fresh rows to where they are indexed, and what was committed from the WAL into the file.

        One thing at a time, since the next group may be waiting. The file waits for a pause; in a busy hour one group
        in some hundred waits for it, or more often when the WAL gets long. Nothing is lost when it fails.
        """
        connection = self._connection
        if connection is None or self._state == "closed":
            return
        self._groups += not is_pause
        table, rows = max(self._fresh_rows.items(), key=itemgetter(1), default=("", 0))
        changes = connection.total_changes
        is_due = may_be_long = False
        if not self._is_memory:
            is_behind = changes - self._changes >= _CHECKPOINT_CHANGES
            is_due = is_behind and (is_pause or self._groups >= _CHECKPOINT_GROUPS)
            may_be_long = changes != self._looked and (is_pause or self._groups % _LOOK_GROUPS == 0)
        if rows < _FRESH_ROWS and not is_due and not may_be_long:
            return
        try:
            with self._lock:
                try:
                    if may_be_long:
                        self._looked = changes
                        is_due = is_due or holds(self._wal_path, _PAUSE_BYTES if is_pause else _WAL_BYTES)
                    if is_due:
                        self._changes, self._groups = changes, 0
                        self._checkpoint(connection)
                    elif rows >= _FRESH_ROWS:
                        del self._fresh_rows[table]
                        with self._transaction(connection, is_durable=False) as tx:
                            settle_table(tx, table)
                except BaseException:
                    self._drop_writable()
                    raise
        except (GatewayError, sqlite3.Error, OSError) as error:  # nobody waits for it, and the thread must not end
            self._log.error("store_tidy_failed", error=error)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Carry over what no reader holds back. A log that a long look has made large is cut once that has ended."""
        if os.stat(self._wal_path).st_size <= _TRUNCATE_BYTES:
            _run(connection, "PRAGMA wal_checkpoint(PASSIVE)")
            return
        _run(connection, "PRAGMA busy_timeout = 0")  # whoever writes would wait for whoever reads
        try:
            _run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            _run(connection, f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1000)}")

    def _drop_writable(self) -> None:
        if self._connection is not None and not self._is_memory:
            connection, self._connection = self._connection, None
            self._changes = self._looked = self._groups = 0
            connection.close()

    def _close(self) -> None:
        has_ended = self._writer.stop()
        self._state = "closed"
        self._close_idle()
        if self._connection is None or not has_ended:
            return  # the thread still waits for the lock that another process holds; the process is about to end
        try:
            with self._lock:
                if not self._is_memory:
                    with self._transaction(self._connection, is_durable=True) as tx:
                        settle(tx)
                    _run(self._connection, "PRAGMA wal_checkpoint(TRUNCATE)")
                self._connection.close()
        except (StoreUnavailable, OSError) as error:
            self._log.error("store_close_failed", error=error)
        self._connection = None
        if isinstance(self._lock, FileLock):
            self._lock.close()

    def _open(self) -> None:
        try:
            if not self._is_memory:
                self._place.prepare()
            with self._lock:
                try:
                    self._check(self._writable())
                except BaseException:
                    self._drop_writable()  # under the lock, since closing may make a checkpoint
                    raise
        except OSError as error:
            raise SetupError(
                f"The database {self._path} cannot be used ({error.strerror}): choose a writable data folder, "
                "or :memory: to keep nothing."
            ) from error
        except (StoreUnavailable, sqlite3.Error) as error:
            raise SetupError(f"The database {self._path} cannot be used: {error}") from error

    def _check(self, connection: sqlite3.Connection) -> None:
        """See to it that this is our own database, before the first byte is written."""
        tables = _run(connection, "SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        owner = _run(connection, "PRAGMA application_id").fetchone()[0]
        if owner != APPLICATION_ID:
            if tables or owner:
                raise SetupError(f"The file {self._path} is the database of another program: choose another path.")
            _run(connection, f"PRAGMA application_id = {APPLICATION_ID}")
        if self._is_memory:
            return
        mode = _run(connection, "PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise SetupError(f"The file system of {self._path} cannot hold the database (no WAL): use a local disk.")


def _transaction(connection: sqlite3.Connection) -> GroupTransaction:
    return GroupTransaction(partial(_run, connection))


def _run(connection: sqlite3.Connection, sql: str, params: Params | Sequence[object] = ()) -> sqlite3.Cursor:
    """Execute one statement; every error of the driver is translated here.

    Raises:
        StoreUnavailable: disk, lock or file. Conflict: a constraint. InvalidRequest: a value SQLite cannot hold.
    """
    try:
        return connection.execute(sql, params)
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


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return  # the connection is dropped by who gets the first error


def _connect(name: str, *settings: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            name,
            uri=name != MEMORY,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The database cannot be opened: {error}.", retry_after_seconds=5) from error
    connection.row_factory = sqlite3.Row
    try:
        for setting in (*_SETTINGS, *settings):
            _run(connection, f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection
