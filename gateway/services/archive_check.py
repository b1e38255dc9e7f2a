"""Compare an archive on the disk with its own manifest.

The check reads the members as bytes and never runs or imports one, so that it is safe on a hostile file.
"""

import hashlib
import json
import zlib
from zipfile import BadZipFile, ZipFile

MANIFEST = "META/manifest.json"
MOST_BYTES = 256 * 1024 * 1024  # of all members; a larger file is no archive of the gateway
BAD_ARCHIVE = (BadZipFile, zlib.error, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError)
_MOST_PROBLEMS = 5
_PIECE_BYTES = 65_536


def check_members(archive: ZipFile) -> tuple[dict[str, str], list[str]]:
    """Return the hashes in the manifest, and the differences between them and the members.

    Raises:
        BAD_ARCHIVE: the file is damaged or no archive of the gateway.
    """
    if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
        raise ValueError("too much")
    hashes: dict[str, str] = dict(json.loads(archive.read(MANIFEST))["sha256"])
    names = set(archive.namelist())
    problems = ["a name stands twice"] if len(names) != len(archive.infolist()) else []
    for name in sorted(names - {MANIFEST} | set(hashes)):
        if name not in hashes:
            problems.append(f"added: {name}")
        elif name not in names:
            problems.append(f"missing: {name}")
        elif _sha256(archive, name) != hashes[name]:
            problems.append(f"changed: {name}")
    return hashes, problems


def _sha256(archive: ZipFile, name: str) -> str:
    """Hash a member piece by piece: a server would keep the memory that a whole one takes."""
    digest = hashlib.sha256()
    with archive.open(name) as member:
        while piece := member.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def archive_problem(path: str | None) -> str | None:
    """Return the problem of the archive at `path`, "" if there is none. None, as in a checkout, returns None."""
    if path is None:
        return None
    try:
        with ZipFile(path) as archive:
            problems = check_members(archive)[1]
    except zlib.error:
        return "the archive on the disk is damaged"
    except (OSError, *BAD_ARCHIVE):
        return "the archive on the disk is no whole archive of the gateway any more"
    return "; ".join(problems[:_MOST_PROBLEMS])
