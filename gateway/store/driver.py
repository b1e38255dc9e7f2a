"""The only door to sqlite3: connections that read, the one that writes, and what its errors mean to us."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from gateway.errors import Conflict, InvalidRequest
from gateway.store.database import Params, StoreUnavailable
from gateway.store.group import GroupTransaction

Connection = sqlite3.Connection
Error = sqlite3.Error
OperationalError = sqlite3.OperationalError

MEMORY = ":memory:"
BUSY_SECONDS = 5.0
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNAVAILABLE = _BUSY | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
}
# What a connection keeps of the file it throws away when another one has committed: more of it is only memory.
_SETTINGS = ("temp_store = MEMORY", "trusted_schema = OFF", "wal_autocheckpoint = 0", "cache_size = -500")
# Of a value of none of its types the driver asks what it stands for: without an answer two errors come and go each.
sqlite3.register_adapter(type(None), lambda value: value)


class Busy(StoreUnavailable):
    """Another program writes to the database now."""


class Writable:
    """The one connection that writes. Every method is for whoever holds the lock."""

    def __init__(self, name: str) -> None:
        self._connection = connect(name, "foreign_keys = ON", "secure_delete = ON")
        self._is_durable: bool | None = None
        self._is_patient = True

    @property
    def connection(self) -> Connection:
        """The connection itself, to read by."""
        return self._connection

    @property
    def changes(self) -> int:
        """How many rows it has changed so far. For anybody."""
        return self._connection.total_changes

    def run(self, sql: str, params: Params | Sequence[object] = ()) -> sqlite3.Cursor:
        """Do what `run` does."""
        return run(self._connection, sql, params)

    @contextmanager
    def transaction(self, *, is_durable: bool, is_patient: bool = True) -> Iterator[GroupTransaction]:
        """Commit what is done meanwhile, or nothing of it.

        is_durable: the disk has it then. is_patient: whether to wait for another program that writes, which no other
        process of ours does meanwhile.

        Raises:
            Busy: another program writes. StoreUnavailable: as `run`.
        """
        self.be_patient(is_patient)
        if is_durable is not self._is_durable:
            self.run(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            self._is_durable = is_durable
        self.run("BEGIN IMMEDIATE")
        try:
            yield transaction(self._connection)
            self.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def be_patient(self, is_patient: bool) -> None:
        """Wait for other programs from now on, or do not."""
        if is_patient is not self._is_patient:
            self.run(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000) if is_patient else 0}")
            self._is_patient = is_patient

    @contextmanager
    def sorting_in(self, folder: str) -> Iterator[None]:
        """Have what is sorted meanwhile lie in nameless files of a folder and not in memory, if that can be."""
        with suppress(StoreUnavailable, Error):  # nothing can be made in the folder
            self.run("PRAGMA temp_store_directory = '{}'".format(folder.replace("'", "''")))
            if self.run("PRAGMA temp_store_directory").fetchone() is not None:  # else this SQLite might use any folder
                self.run("PRAGMA temp_store = FILE")
        try:
            yield
        finally:
            with suppress(StoreUnavailable, Error):  # it may be closed by now
                self.run("PRAGMA temp_store = MEMORY")
                self.run("PRAGMA temp_store_directory = ''")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return  # the connection is dropped by who gets the first error


def transaction(connection: Connection) -> GroupTransaction:
    """Return what runs the statements of works by `connection`."""
    return GroupTransaction(partial(run, connection))


def run(connection: Connection, sql: str, params: Params | Sequence[object] = ()) -> sqlite3.Cursor:
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
            kind = Busy if code is not None and code & 0xFF in _BUSY else StoreUnavailable
            raise kind(f"The database cannot be used now: {error}.", retry_after_seconds=5) from error
        raise


def connect(name: str, *settings: str) -> Connection:
    """Open a connection that waits for others and is nobody's thread's own. name: `MEMORY`, or the file's URI.

    Raises:
        StoreUnavailable: it cannot be opened.
    """
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
        for setting in (*_SETTINGS, *settings):
            run(connection, f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection
