"""Groups of works, each one transaction of the one connection that writes, under the lock. Knows no queue, no thread.

Theory of operation. SQLite before 3.51.3 can damage a WAL database when two connections write or checkpoint at once,
and an archive runs on whatever SQLite the host has. So whoever writes holds a flock (`filelock`), and makes checkpoints
under that lock too, but for those that go on while others commit (`checkpoints`); every other connection is read-only.
`:memory:` is one connection under one lock.
"""

import os
import threading
from collections.abc import Callable, Sequence

from gateway.errors import GatewayError, SetupError
from gateway.log import Log
from gateway.store.checkpoints import Checkpoints
from gateway.store.database import StoreUnavailable
from gateway.store.driver import MEMORY, Busy, Connection, Error, Writable
from gateway.store.filelock import FileLock
from gateway.store.place import APPLICATION_ID, Identity, Place, address
from gateway.store.upkeep import Upkeep
from gateway.store.works import Work

_MAGIC = b"SQLite format 3\0"


class Commits:
    """What a writer commits to: see `works.Base`.

    lock: who holds it may write. place: where the file lies. before_sync: see `Database.at_sync`. identity: of the
    file that was made for a group of processes, see `Place`.
    """

    def __init__(self, path: str, log: Log, identity: Identity | None = None) -> None:
        self._path = path
        self._is_memory = path == MEMORY
        self._log = log
        self.place = place = Place(path, magic=_MAGIC, identity=identity)
        self.lock: FileLock | threading.RLock = (
            threading.RLock() if self._is_memory else FileLock(path + ".lock", check=place.check)
        )
        self._checkpoints = None if self._is_memory else Checkpoints(self.place, log)
        self.before_sync: Callable[[], Callable[[], None] | None] = _nothing
        self._writable: Writable | None = None
        self._upkeep: Upkeep
        # How many commits did not wait for the disk, and up to which one it has them. The log may hold what an earlier
        # process left in it.
        self._unsynced, self._synced = 1, 0
        self._faults = self._mended = 0  # of syncs, and up to which one a commit that waited for the disk came after it
        self._is_carried = False
        self._is_closed = False

    def open(self) -> None:
        """Make or open the file, see to it that it is ours, before the first byte is written, and connect to it.

        Raises:
            OSError, StoreUnavailable, driver.Error: it cannot be used. SetupError: it is another program's.
        """
        try:
            if not self._is_memory:
                self.place.prepare()
            with self.lock:
                try:
                    self._check(self._connected())
                except BaseException:
                    self._drop()  # under the lock, since closing may make a checkpoint
                    raise
        except BaseException:
            self.place.close()
            raise

    def connection(self) -> Connection:
        """Return the connection, to read by where there is only one. For whoever holds the lock.

        Raises:
            StoreUnavailable: the database is closed.
        """
        return self._connected().connection

    def end(self, timeout_seconds: float) -> bool:
        """Have the thread that carries over the log end, and tell whether it has. Nobody commits any more."""
        return self._checkpoints is None or self._checkpoints.end(timeout_seconds)

    def close(self) -> None:
        """Bring all to where it belongs, and close the connection, after `end`."""
        self._is_closed = True
        try:
            with self.lock:
                self._close()
        except (StoreUnavailable, OSError) as error:
            self._log.error("store_close_failed", error=error)
        self._writable = None
        if isinstance(self.lock, FileLock):
            self.lock.close()
        self.place.close()

    def commit(self, works: Sequence[Work], is_durable: bool) -> None:
        """Do a group of works in one transaction. See `works.Base`."""
        try:
            with self.lock:
                self._commit(works, is_durable=is_durable or self._is_unsafe(), is_patient=True)
        except OSError as error:
            raise StoreUnavailable("The database's lock file cannot be used.", retry_after_seconds=5) from error

    def renew(self) -> None:
        """Go on with another connection if this one has changed rows: it keeps a statement and pages of all it did.

        Raises:
            StoreUnavailable: there is none.
        """
        with self.lock:
            before = self._writable
            if self._is_memory or before is None or not before.changes:
                return
            self._writable = None
            try:
                # The last connection to close would carry over the log and wait for the disk: this one is open by then.
                self._connected().run("SELECT COUNT(*) FROM sqlite_master").fetchone()
            finally:
                before.close()

    def change(self, work: Work) -> None:
        """Do a work that may have to sort every row there is, in one transaction that waits for the disk.

        For who has just opened the database: nobody else writes by this connection yet.

        Raises:
            StoreUnavailable: nothing of it stands.
        """
        if self._writable is None or self._is_memory:
            self.commit((work,), is_durable=True)
            return
        with self._writable.sorting_in(os.path.dirname(os.path.abspath(self._path))):
            self.commit((work,), is_durable=True)

    def commit_here(self, works: Sequence[Work]) -> bool:
        """Do a group of works in one transaction if nothing has to be waited for. See `works.Base`."""
        if self._writable is None or self._is_unsafe():
            return False
        try:
            if not self.lock.acquire(blocking=False):
                return False
            try:
                if self._is_carried or self._upkeep.is_carried:
                    return False  # the next commit begins the log anew, and SQLite waits for the disk then
                self._commit(works, is_durable=False, is_patient=False)
            except Busy:
                return False
            finally:
                self.lock.release()
        except OSError as error:
            raise StoreUnavailable("The database's lock file cannot be used.", retry_after_seconds=5) from error
        return True

    def at_due(self, call: Callable[[], None]) -> None:
        """Say what is called when the thread that carries over the log has done its part. See `works.Base`."""
        if self._checkpoints is not None:
            self._checkpoints.when_ready = call

    def is_due(self) -> bool:
        """Tell whether `tidy` has something to do. See `works.Base`."""
        return self._upkeep.is_due(is_pause=False)

    def tidy(self, is_pause: bool) -> None:
        """Do what nobody waits for. See `works.Base`."""
        if self._is_closed or not self._upkeep.is_due(is_pause=is_pause):
            return
        try:
            with self.lock:
                try:
                    if self._writable is not None:
                        self._is_carried |= self._upkeep.run(is_pause=is_pause)
                    elif self._checkpoints is not None and self._checkpoints.is_ready:
                        self._checkpoints.carry(lambda: None)  # by whichever process can: this one may not write again
                except BaseException:
                    self._drop()
                    raise
        except (GatewayError, Error, OSError) as error:  # nobody waits for it, and the thread must not end
            self._log.error("store_tidy_failed", error=error)

    def sync(self) -> None:
        """Bring to the disk what was committed. See `works.Base`."""
        if self._is_memory:
            return
        try:
            note = self._sync()
            with self.lock:
                self._do(note)
        except (StoreUnavailable, OSError) as error:
            self._faults += 1
            self._log.error("store_sync_failed", error=error)

    def _is_unsafe(self) -> bool:
        """Tell whether the disk has refused something, and no commit that waited for it has succeeded since."""
        return self._faults > self._mended

    def _sync_before(self) -> None:
        """Bring to the disk what was committed before a group that waits for it: SQLite does so only if that writes.

        Raises:
            StoreUnavailable: the disk has not taken it.
        """
        try:
            self._sync()
        except OSError as error:
            self._faults += 1
            raise StoreUnavailable("The disk does not take the database's log.", retry_after_seconds=5) from error

    def _sync(self) -> Callable[[], None] | None:
        """Bring the log to the disk, whoever writes meanwhile, and return what is to be noted of it.

        Raises:
            OSError: the disk has not taken it.
        """
        count, note = self._unsynced, self.before_sync()
        try:
            descriptor = os.open(self.place.wal_path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has the second alone
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            pass  # nothing was ever written
        self._synced = max(self._synced, count)
        return note

    def _commit(self, works: Sequence[Work], *, is_durable: bool, is_patient: bool) -> None:
        if not self._is_memory:
            # Before a connection is made: SQLite removes the WAL of an empty file that has taken the place.
            self.place.check()
        if is_durable and self._synced < self._unsynced and not self._is_memory:
            self._sync_before()
        writable, faults = self._connected(), self._faults
        try:
            with writable.transaction(is_durable=is_durable, is_patient=is_patient) as tx:
                tx.do(works)
                tx.finish()
                self._upkeep.mark()
        except StoreUnavailable as error:
            if is_patient or not isinstance(error, Busy):
                self._drop()
            raise
        self._is_carried = False
        self._upkeep.note(tx)
        for hook in tx.take_hooks():
            self._do(hook)
        if is_durable:
            self._mended = faults
            self._do(self.before_sync())
        else:
            self._unsynced += 1

    def _do(self, work: Callable[[], None] | None) -> None:
        """Do what goes with a commit: that stands, whatever comes of it."""
        try:
            if work is not None:
                work()
        except OSError as error:
            self._log.error("store_after_commit_failed", error=error)

    def _connected(self) -> Writable:
        if self._is_closed:
            raise StoreUnavailable("The database is closed.")
        if self._writable is None:
            self._writable = Writable(MEMORY if self._is_memory else address(self._path, "rw"))
            self._upkeep = Upkeep(self._writable, self._checkpoints)
        return self._writable

    def _close(self) -> None:
        if self._writable is not None:
            if not self._is_memory:
                self._upkeep.end()
                self._do(self.before_sync())
            self._writable.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def _drop(self) -> None:
        if self._writable is not None and not self._is_memory:
            writable, self._writable = self._writable, None
            writable.close()

    def _check(self, writable: Writable) -> None:
        """See to it that this is our own database, before the first byte is written."""
        tables = writable.run("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        owner = writable.run("PRAGMA application_id").fetchone()[0]
        if owner != APPLICATION_ID:
            if tables or owner:
                raise SetupError(f"The file {self._path} is the database of another program: choose another path.")
            writable.run(f"PRAGMA application_id = {APPLICATION_ID}")
        if self._is_memory:
            return
        mode = writable.run("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise SetupError(f"The file system of {self._path} cannot hold the database (no WAL): use a local disk.")


def _nothing() -> None:
    """Do nothing before the disk has what was committed."""
