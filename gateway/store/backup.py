"""Copies of a whole database, taken while it is used. Puts none in the place of another: see `exchange`."""

import os

from gateway.errors import SetupError
from gateway.store.database import Database, StoreUnavailable, Transaction
from gateway.store.migrations import LAST_NUMBER, MIGRATIONS
from gateway.strict_json import write_time

COPY_INTO = "VACUUM INTO :path"
IS_QUERY_ONLY = "PRAGMA query_only"
ALLOW_WRITING = "PRAGMA query_only = OFF"  # into the copy; the database itself is opened read-only
FORBID_WRITING = "PRAGMA query_only = ON"
CHECK = "PRAGMA quick_check(1)"
HAS_SCHEMA = "SELECT COUNT(*) AS number FROM sqlite_master WHERE name = 'schema_migrations'"
VERSION = "SELECT sqlite_version() AS version"
_LEAST_VERSION = (3, 27)


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


def drop_needless_copy(db: Database, target: str) -> None:
    """Remove what `copy_before_migration` made, if the schema is as it was: each try would leave another. Blocks."""
    try:
        if db.read_now(schema_number) < MIGRATIONS[-1].number:
            os.unlink(target)
    except (StoreUnavailable, OSError):
        pass  # it is of no harm but for its size


def schema_number(tx: Transaction) -> int:
    """Return the schema version of the database, 0 of an empty one."""
    if not tx.query(HAS_SCHEMA)[0]["number"]:
        return 0
    return int(tx.query(LAST_NUMBER)[0]["number"])


def is_whole(tx: Transaction) -> bool:
    """Tell whether SQLite finds nothing wrong with the database."""
    rows = tx.query(CHECK)
    return len(rows) == 1 and rows[0]["quick_check"] == "ok"


def sync(path: str) -> None:
    """Wait until the disk has a file or folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
