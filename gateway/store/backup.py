"""Copies of a whole database: taken while it is used, and put in the place of another. The only place that moves it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import SetupError
from gateway.store.database import Database, Transaction
from gateway.store.filelock import FileLock
from gateway.store.generation import Generation
from gateway.store.migrations import LAST_NUMBER, MIGRATIONS
from gateway.wire import write_time

COPY_INTO = "VACUUM INTO :path"
IS_QUERY_ONLY = "PRAGMA query_only"
ALLOW_WRITING = "PRAGMA query_only = OFF"  # into the copy; the database itself is opened read-only
FORBID_WRITING = "PRAGMA query_only = ON"
CHECK = "PRAGMA quick_check(1)"
HAS_SCHEMA = "SELECT COUNT(*) AS number FROM sqlite_master WHERE name = 'schema_migrations'"
VERSION = "SELECT sqlite_version() AS version"
_LEAST_VERSION = (3, 27)
# SQLite holds a shared lock on this byte of the -shm file for as long as a process has the database open in WAL mode
# (UNIX_SHM_DMS in os_unix.c, the same since WAL exists).
_OPEN_BYTE = 128


def copy_database(db: Database, target: str) -> None:
    """Write a consistent, compact copy of `db`, as of now, into a new file that only its owner may read. Blocks.

    Readers and writers go on meanwhile.

    Raises:
        FileExistsError: there is such a file. SetupError: this SQLite is too old. StoreUnavailable: the disk is full.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def work(tx: Transaction) -> None:
        version = str(tx.query(VERSION)[0]["version"])
        if tuple(map(int, version.split(".")[:2])) < _LEAST_VERSION:
            raise SetupError(f"SQLite {version} cannot copy a database that is in use: it takes 3.27 or newer.")
        is_query_only = bool(tx.query(IS_QUERY_ONLY)[0]["query_only"])
        tx.execute(ALLOW_WRITING)
        try:
            tx.execute(COPY_INTO, {"path": target})
        finally:
            if is_query_only:
                tx.execute(FORBID_WRITING)

    try:
        db.read_now(work)
        sync(target)
    except BaseException:
        os.unlink(target)
        raise


def copy_before_migration(db: Database, path: str, now_at: int) -> str | None:
    """Copy the database at `path` beside it if its schema is about to change; return the copy's path. Blocks.

    Raises:
        OSError, SetupError, StoreUnavailable: there is no copy, so the schema must stay as it is.
    """
    have = db.read_now(schema_number)
    if not 0 < have < MIGRATIONS[-1].number:
        return None
    stamp = write_time(now_at).replace("-", "").replace(":", "")
    target = f"{path}.schema-{have}-{stamp}"
    copy_database(db, target)
    return target


def schema_number(tx: Transaction) -> int:
    """Return the schema version of the database, 0 of an empty one."""
    if not tx.query(HAS_SCHEMA)[0]["number"]:
        return 0
    return int(tx.query(LAST_NUMBER)[0]["number"])


def is_whole(tx: Transaction) -> bool:
    """Tell whether SQLite finds nothing wrong with the database."""
    rows = tx.query(CHECK)
    return len(rows) == 1 and rows[0]["quick_check"] == "ok"


@contextmanager
def held(path: str) -> Iterator[None]:
    """Keep every other process from opening the database at `path` meanwhile.

    Raises:
        SetupError: a process has it open.
        OSError: the folder cannot be written.
    """
    lock = FileLock(path + ".lock")
    with lock:
        descriptor = -1
        try:
            descriptor = os.open(path + "-shm", os.O_RDWR | os.O_CLOEXEC)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _OPEN_BYTE)
        except FileNotFoundError:
            pass  # nobody has it open: the file is there as long as anybody has
        except (BlockingIOError, PermissionError) as error:
            os.close(descriptor)
            raise SetupError(
                f"A gateway has {path} open: stop it first, then try again. Nothing was changed."
            ) from error
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)
    lock.close()


def put_in_place(new: str, path: str, aside: str) -> None:
    """Make the closed database `new` the one at `path`, and keep what was there under the name `aside`. Call it `held`.

    `new` must lie on the same file system and brings its own `.head`. Cut off in the middle it leaves the old database
    or the new one; the file `.head` then tells of events that are missing, until it is done again.

    Raises:
        OSError: a file cannot be moved.
    """
    if os.path.exists(path):
        if os.path.exists(path + ".head"):
            shutil.copy2(path + ".head", aside + ".head")
        try:
            os.link(path, aside)
        except OSError:  # a file system without hard links
            shutil.copy2(path, aside)
        # The log of the old database must not meet the new one.
        for ending in ("-wal", "-shm"):
            if os.path.exists(path + ending):
                os.replace(path + ending, aside + ending)
    os.replace(new, path)
    os.replace(new + ".head", path + ".head")
    generation = Generation(path + ".generation")
    generation.bump()
    generation.close()
    _give_to_owner_of_folder(path)
    sync(os.path.dirname(os.path.abspath(path)))


def _give_to_owner_of_folder(path: str) -> None:
    """Let the gateway's own user open what root has restored for it."""
    folder = os.path.dirname(os.path.abspath(path))
    owner = os.stat(folder)
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for name in os.listdir(folder):
        if name.startswith(os.path.basename(path)):
            os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid, follow_symlinks=False)


def sync(path: str) -> None:
    """Wait until the disk has a file or folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
