"""The redo log: works that are answered and committed a moment later, so that no end of a process undoes them. No SQL.

Theory of operation. A commit of SQLite for one plain record costs ten times what the record does. So in a busy moment
it is noted in a file of its process's own, by one write, and answered; some tens of records then share one commit, some
20 milliseconds later at most, and the file is emptied. What was written the operating system has, whatever becomes of
the process. Each process holds a lock on its file for as long as it lives: a file that nobody holds is what is left of
one that was killed, and whoever opens the database does again what is noted there and is not in the database.

One record is one line: the CRC-32 of the rest in hex, the name of the record, which tells whether it is in the
database, and the record as JSON. A line that was cut off was never answered.
"""

import contextlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.store.filelock import LockedFile

MOST_BYTES = 2 * 1024 * 1024
"""How much a log holds before it takes no more: as much as some two thousand records."""
ENDING = ".redo-"
_UNREAD = "unread-"
_NUMBER = re.compile("[0-9]{1,4}")
_MOST_LOGS = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    """One record of a log. name: by which the database knows it."""

    name: str
    record: str


class RedoLog:
    """The log of this process for the database at `path`, whose file is there from the first note on.

    With `path` None nothing is ever noted. noted, committed: how many works so far.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else os.path.abspath(path)
        self.noted = 0
        self.committed = 0
        self._has_lost = False
        self._file: LockedFile | None = None
        self._own = ""
        self._bytes = 0

    def append(self, name: str, record: str) -> bool:
        """Note a record and tell so; false when it is full or the file cannot be written."""
        try:
            line = f"{name} {record}".encode()
        except UnicodeEncodeError:  # half a character, which no row can hold either
            return False
        line = b"%08x %b\n" % (zlib.crc32(line), line)
        end = self._bytes + len(line)
        if self._path is None or end > MOST_BYTES:
            return False
        try:
            file = self._file
            if file is None or not self._bytes:
                file = self._opened(self._path)
            if os.pwrite(file.descriptor, line, self._bytes) == len(line):
                self._bytes = end
                self.noted += 1
                return True
            os.ftruncate(file.descriptor, self._bytes)
        except OSError:
            pass  # what was noted before stays; the next note goes to the same place
        return False

    def lose(self) -> None:
        """Count a work as done that cannot be done: the file is kept under another name, for somebody to look at."""
        self._has_lost = True  # first, since another thread may look when all are counted
        self.committed += 1

    def clear(self) -> str | None:
        """Forget what was noted, if all of it is done. Returns under which name it is kept, if some could not be."""
        if self._file is None or not self._bytes or self.noted > self.committed:
            return None
        try:
            if self._has_lost:
                return self._put_aside()
            self._bytes = 0
            os.ftruncate(self._file.descriptor, 0)
        except OSError:
            self._give_up()
        return None

    def close(self) -> str | None:
        """Remove the file, if nothing is left in it; else whoever opens the database next finds it. See `clear`."""
        kept = self.clear()
        try:
            if self._file is not None and not self._bytes and self._file.is_there():
                os.unlink(self._own)
        except OSError:
            pass  # an empty file does no harm
        self._give_up()
        return kept

    def left(self) -> Iterator["Left"]:
        """Yield what processes that have ended left behind, each for as long as nobody else can take it.

        What cannot be read now is left for another time.
        """
        for path in self._files():
            file = LockedFile(path, is_watched=True)
            try:
                if file.acquire(blocking=False):
                    yield Left(path, *_read(file.descriptor))
            except OSError:
                continue
            finally:
                file.close()

    def last_of_others(self) -> list[str]:
        """Return the names of the newest records that other processes have noted and not committed yet."""
        names = []
        for path in self._files():
            if path == self._own:
                continue
            try:
                with open(path, "rb") as file:
                    notes, _ = _read(file.fileno())
            except OSError:
                continue
            if notes:
                names.append(notes[-1].name)
        return names

    def _files(self) -> list[str]:
        """Return the logs of this database, this process's own among them."""
        if self._path is None:
            return []
        folder, name = os.path.split(self._path)
        begin = name + ENDING
        try:
            with os.scandir(folder) as found:
                names = [one.name for one in found if one.name.startswith(begin) and one.is_file(follow_symlinks=False)]
        except OSError:  # the folder is gone, and with it the database, which says so
            return []
        return [os.path.join(folder, one) for one in sorted(names) if _NUMBER.fullmatch(one[len(begin) :])]

    def _opened(self, path: str) -> LockedFile:
        """Return the file, or make and lock the first one that no other process has.

        Raises:
            OSError: there is none that can be made.
        """
        if self._file is not None:
            if self._file.is_there():
                return self._file
            self._give_up()  # somebody has removed it, and nobody would find it
        for number in range(_MOST_LOGS):
            own = f"{path}{ENDING}{number}"
            file = LockedFile(own, is_watched=True)
            try:
                if file.acquire(blocking=False) and not os.fstat(file.descriptor).st_size:
                    self._file, self._own, self._bytes = file, own, 0
                    return file
            finally:
                if file is not self._file:
                    file.close()
        raise FileExistsError

    def _put_aside(self) -> str:
        self._has_lost = False
        try:
            return put_aside(self._own)
        finally:
            self._give_up()

    def _give_up(self) -> None:
        """Let go of the file. What is in it stays for whoever opens the database next."""
        if self._file is not None:
            self._file.close()
        self._file, self._own, self._bytes = None, "", 0


@dataclass(frozen=True, slots=True)
class Left:
    """The log of a process that has ended. is_whole: no line of it is damaged."""

    path: str
    notes: tuple[Note, ...]
    is_whole: bool

    def remove(self) -> None:
        """Remove the file: all of it is committed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def put_aside(path: str) -> str:
    """Keep a log under another name, which is returned: somebody has to look at it.

    Raises:
        OSError: it cannot be renamed.
    """
    begin, number = path.rsplit(ENDING, 1)
    aside = f"{begin}{ENDING}{_UNREAD}{number}"
    again = 0
    while os.path.lexists(aside):
        again += 1
        aside = f"{begin}{ENDING}{_UNREAD}{number}-{again}"
    os.rename(path, aside)
    return aside


def move_logs(path: str, aside: str) -> None:
    """Give the logs of the closed database `path` to the one that is kept at `aside`.

    Raises:
        OSError: a file cannot be moved.
    """
    folder, name = os.path.split(os.path.abspath(path))
    for one in os.listdir(folder):
        if one.startswith(name + ENDING):
            os.replace(os.path.join(folder, one), aside + one[len(name) :])


def _read(descriptor: int) -> tuple[tuple[Note, ...], bool]:
    raw = os.pread(descriptor, 2 * MOST_BYTES, 0)
    lines, notes, is_whole = raw.split(b"\n"), [], True
    lines.pop()  # empty, or cut off
    for line in lines:
        checksum, _, rest = line.partition(b" ")
        name, _, record = rest.partition(b" ")
        try:
            if checksum != b"%08x" % zlib.crc32(rest):
                raise ValueError
            notes.append(Note(name.decode(), record.decode()))
        except ValueError:
            is_whole = False
    return tuple(notes), is_whole
