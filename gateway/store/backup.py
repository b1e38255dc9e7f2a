"""Copy a whole database while it is used, and put one in the place of another that no process has open."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from gateway.errors import SetupError
from gateway.store.database import Database, StoreUnavailable
from gateway.store.filelock import FileLock, sync
from gateway.store.generation import Generation
from gateway.store.migrations import MIGRATIONS, schema_number
from gateway.strict_json import write_time

# As long as a process has the database open in WAL mode, SQLite holds a shared lock on this byte of the -shm file
# (UNIX_SHM_DMS in os_unix.c, unchanged since WAL exists).
_OPEN_BYTE = 128


def copy_database(db: Database, target: str) -> None:
    """Write a consistent, compact copy of `db` into a new file that only its owner may read. Blocks.

    Raises:
        FileExistsError: there is such a file. StoreUnavailable: the disk is full.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        db.copy_to(target)
        sync(target)
    except BaseException:
        os.unlink(target)
        raise


def copy_before_migration(db: Database, path: str, number: int, now_at: int) -> str:
    """Copy the database at `path`, of schema `number`, beside it, and return the path of the copy. Blocks.

    Raises:
        OSError, StoreUnavailable: there is no copy, so the schema must stay as it is.
    """
    stamp = write_time(now_at).replace("-", "").replace(":", "")
    target = f"{path}.schema-{number}-{stamp}"
    copy_database(db, target)
    return target


def drop_needless_copy(db: Database, target: str) -> None:
    """Remove what `copy_before_migration` made if the schema is as it was: each try would leave another. Blocks."""
    with suppress(StoreUnavailable, OSError):  # the copy does no harm but for its size
        if db.read_now(schema_number) < len(MIGRATIONS):
            os.unlink(target)


@contextmanager
def exclusive(path: str) -> Iterator[None]:
    """Keep every other process from opening the database at `path` inside the `with` block.

    Raises:
        SetupError: a process has it open.
        OSError: the folder cannot be written.
    """
    lock = FileLock(path + ".lock")
    with closing(lock), lock, ExitStack() as stack:
        with suppress(FileNotFoundError):  # no process has it open: each of them keeps that file
            shm = stack.enter_context(open(path + "-shm", "r+b", buffering=0))
            try:
                fcntl.lockf(shm, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _OPEN_BYTE)
            except (BlockingIOError, PermissionError) as error:
                reason = f"A gateway has {path} open: stop it first, then try again. Nothing was changed."
                raise SetupError(reason) from error
        yield


def put_in_place(new: str, path: str, old: str) -> None:
    """Make the closed database `new` the one at `path`, and keep the old one as `old`. Call it inside `exclusive`.

    `new` must lie on the same file system, with its own `.head`. If this is cut short, the old database or the new one
    is at `path`; the file `.head` may then name events that are missing, until the restore is done again.

    Raises:
        OSError: a file cannot be moved.
    """
    if os.path.exists(path):
        if os.path.exists(path + ".head"):
            shutil.copy2(path + ".head", old + ".head")
        try:
            os.link(path, old)
        except OSError:  # a file system without hard links
            shutil.copy2(path, old)
        # The log of the old database must not meet the new one.
        for ending in ("-wal", "-shm"):
            if os.path.exists(path + ending):
                os.replace(path + ending, old + ending)
    os.replace(new, path)
    os.replace(new + ".head", path + ".head")
    generation = Generation(path + ".generation")
    generation.bump()
    generation.close()
    _give_to_owner_of_folder(path)
    sync(os.path.dirname(os.path.abspath(path)))


def _give_to_owner_of_folder(path: str) -> None:
    """Let the gateway's own user open a database that root has restored."""
    folder = os.path.dirname(os.path.abspath(path))
    owner = os.stat(folder)
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for name in os.listdir(folder):
        if name.startswith(os.path.basename(path)):
            os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid, follow_symlinks=False)
