"""The file of a SQLite database: made for its owner alone, checked before each write, and replaced by a restore."""

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from gateway.errors import SetupError
from gateway.store.database import StoreUnavailable
from gateway.store.filelock import FileLock, LockedFile, sync
from gateway.store.generation import Generation

_RETRY_SECONDS = 5

Identity = tuple[int, int]
"""Which file it is, whatever its name: device and inode."""


class DatabaseFile:
    """A path, and the one file that it may name from `prepare` on.

    identity: of the file that a process of this group has made before. That one is opened, and none is ever made.
    """

    def __init__(self, path: str, *, identity: Identity | None = None) -> None:
        self.path = path
        self._identity = identity

    def prepare(self) -> None:
        """Make the folder (0700) and an empty file (0600) if there is none, and close the file to other users.

        Raises:
            OSError: it cannot be made or changed. StoreUnavailable: it is not the file it has to be.
            SetupError: an earlier build that was killed has left chats beside it, which only that build can commit.
        """
        if self._identity is None:
            if left := glob.glob(glob.escape(self.path) + ".redo-*[0-9]"):
                raise SetupError(
                    f"{min(left)} may hold chats of an earlier build: start that build once, which commits them. "
                    "To do without them, move the file away."
                )
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._identity = _identity(self.path)
        self.check()
        if os.stat(self.path).st_mode & 0o077:
            os.chmod(self.path, 0o600)

    def check(self) -> None:
        """Check that the path still names the file: a database goes on writing into a file that was removed.

        Raises:
            StoreUnavailable: it was removed or replaced.
        """
        try:
            found = _identity(self.path)
        except OSError as error:
            raise StoreUnavailable("The database file is gone.", retry_after_seconds=_RETRY_SECONDS) from error
        if found != self._identity:
            raise StoreUnavailable(
                "The database file was replaced: restart to use the new one.", retry_after_seconds=_RETRY_SECONDS
            )


def identify(path: str) -> Identity:
    """Return which file has this path.

    Raises:
        SetupError: there is none.
    """
    try:
        return _identity(path)
    except OSError as error:
        raise SetupError(f"The database {path} is gone ({error.strerror}).") from error


def _identity(path: str) -> Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def in_use(path: str) -> LockedFile:
    """Return the file whose shared lock each process holds as long as it has the database at `path` open.

    It is the file of the generation, whose contents nobody locks. Take the lock while you hold the writer's lock.
    """
    return LockedFile(path + ".generation")


@contextmanager
def exclusive(path: str) -> Iterator[None]:
    """Keep every other process from opening the database at `path` inside the `with` block.

    Raises:
        SetupError: a process has the database open.
        OSError: the folder cannot be written.
    """
    with closing(FileLock(path + ".lock")) as lock, lock, closing(in_use(path)) as users:
        if not users.acquire(blocking=False):
            raise SetupError(f"A gateway has {path} open: stop it first, then try again. Nothing was changed.")
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
    Generation(path + ".generation").bump()
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
