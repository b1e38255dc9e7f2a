"""Read and write the file of a backup: a zip file with two members, or a plain database.

`gateway.db` is the database, which holds API keys and passwords only as hashes. `backup.json` holds the version of the
program, the time, the schema, the end of the audit chain and the SHA-256 of the database. A plain database file, such
as the copy made before a migration, can be restored too.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import IO
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from gateway.errors import SetupError
from gateway.store.filelock import private, sync
from gateway.store.sqlite import MAGIC

FORMAT = 1
ABOUT = "backup.json"
DATABASE = "gateway.db"
_ABOUT_BYTES = 65_536
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class About:
    """The metadata of a backup. made_at: RFC 3339. seq, hash: the last event of its audit chain."""

    format: int
    version: str
    made_at: str
    schema: int
    instance_id: str
    seq: int
    hash: str
    database_bytes: int
    database_sha256: str


def sha256(path: str) -> tuple[str, int]:
    """Return the SHA-256 of a file and its length in bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size


def pack(path: str, database: str, about: About) -> None:
    """Write the new file `path` (0600) and sync it to disk."""
    with open(path, "xb", opener=private) as file, ZipFile(file, "w", ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr(ABOUT, json.dumps(asdict(about), indent=1))
        archive.write(database, DATABASE)
    sync(path)


def unpack(backup: str, target: str) -> About | None:
    """Write the database of a backup to `target`, and return its metadata, or None for a plain database.

    Raises:
        SetupError: the file is damaged, no backup, or of a later format.
    """
    with open(backup, "rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            for ending in ("", "-wal"):  # the newest commits may be only in the write-ahead log
                if os.path.exists(backup + ending):
                    with open(backup + ending, "rb") as source:
                        _write(source, target + ending, limit_bytes=None)
            return None
        return _unzip(backup, file, target)


def _unzip(backup: str, file: IO[bytes], target: str) -> About:
    try:
        with ZipFile(file) as archive:
            about = _read_about(archive)
            with archive.open(DATABASE) as packed:
                _write(packed, target, limit_bytes=about.database_bytes)
    except (BadZipFile, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError) as error:
        raise SetupError(f"{backup} is no whole backup ({type(error).__name__}): take another one.") from error
    if sha256(target) != (about.database_sha256, about.database_bytes):
        raise SetupError(f"{backup} was changed: the database in it is not the one it names. Take another one.")
    return about


def _read_about(archive: ZipFile) -> About:
    if sorted(archive.namelist()) != [ABOUT, DATABASE] or archive.getinfo(ABOUT).file_size > _ABOUT_BYTES:
        raise ValueError("unexpected members")
    raw = json.loads(archive.read(ABOUT))
    if raw["format"] != FORMAT:
        version = str(raw["version"])[:40]
        raise SetupError(f"The backup was made by version {version} in a later form: restore it with that version.")
    values = {name: raw[name] for name in About.__dataclass_fields__}
    numbers = ("format", "schema", "seq", "database_bytes")
    if any(type(value) is not (int if name in numbers else str) for name, value in values.items()):
        raise ValueError("a field of another type")
    return About(**values)


def _write(source: IO[bytes], target: str, *, limit_bytes: int | None) -> None:
    """Copy to a new file (0600). Past the limit, stop: the SHA-256 of the result then does not match."""
    with open(target, "xb", opener=private) as file:
        while piece := source.read(_PIECE_BYTES):
            file.write(piece)
            if limit_bytes is not None and file.tell() > limit_bytes:
                break
    sync(target)
