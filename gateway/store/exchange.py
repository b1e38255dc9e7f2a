"""Put one database in the place of another, which no process has open meanwhile. The only file that moves it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import SetupError
from gateway.store.backup import sync
from gateway.store.filelock import FileLock
from gateway.store.generation import Generation

# As long as a process has the database open in WAL mode, SQLite holds a shared lock on this byte of the -shm file
# (UNIX_SHM_DMS in os_unix.c, unchanged since WAL exists).
_OPEN_BYTE = 128


@contextmanager
def held(path: str) -> Iterator[None]:
    """Keep every other process from opening the database at `path` inside the `with` block.

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
            pass  # no process has it open: each of them keeps that file
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
    """Make the closed database `new` the one at `path`, and keep the old one as `aside`. Call it inside `held`.

    `new` must lie on the same file system, with its own `.head`. If this is cut short, the old database or the new one
    is at `path`; the file `.head` may then name events that are missing, until the restore is done again.

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
    """Let the gateway's own user open a database that root has restored."""
    folder = os.path.dirname(os.path.abspath(path))
    owner = os.stat(folder)
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for name in os.listdir(folder):
        if name.startswith(os.path.basename(path)):
            os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid, follow_symlinks=False)
