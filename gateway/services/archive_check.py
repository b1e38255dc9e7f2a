"""Compare an archive on the disk with its own manifest. Runs, imports and unmarshals nothing of it."""

import hashlib
import json
import zlib
from zipfile import BadZipFile, ZipFile

MANIFEST = "META/manifest.json"
MOST_BYTES = 256 * 1024 * 1024  # of all members together; a file that claims more is not an archive of the gateway
BAD_ARCHIVE = (BadZipFile, zlib.error, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError)
_MOST_PROBLEMS = 5


def check_members(archive: ZipFile) -> tuple[dict[str, str], list[str]]:
    """Return the hashes of the manifest, and each difference between them and the members.

    Raises:
        BAD_ARCHIVE: it is not an archive of the gateway, or it is damaged.
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
    """Return what is wrong with the archive at a path, "" if it is whole, and None without a path, as in a checkout."""
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
