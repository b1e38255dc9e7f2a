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


def check_members(archive: ZipFile) -> tuple[dict[str, str], list[str]]:
    """Return the hashes in the manifest, and the differences between them and the members.

    Raises:
        BAD_ARCHIVE: the file is damaged or no archive of the gateway.
    """
    if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
        raise ValueError("too much")
    hashes: dict[str, str] = dict(json.loads(archive.read(MANIFEST))["sha256"])
    names = archive.namelist()
    problems = ["a name stands twice"] if len(names) != len(set(names)) else []
    for name in sorted(set(names) - {MANIFEST} | set(hashes)):
        if name not in hashes:
            problems.append(f"added: {name}")
        elif name not in names:
            problems.append(f"missing: {name}")
        elif hashlib.sha256(archive.read(name)).hexdigest() != hashes[name]:
            problems.append(f"changed: {name}")
    return hashes, problems


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
