"""Whether the running archive is as its manifest says. Runs, imports and unmarshals nothing of it."""

import hashlib
import json
import zlib
from typing import TYPE_CHECKING

from gateway import bundle

if TYPE_CHECKING:
    from zipfile import ZipFile

MANIFEST = "META/manifest.json"
MOST_BYTES = 256 * 1024 * 1024  # of all members together; a file that says it holds more is no archive of ours


def check_members(archive: "ZipFile") -> tuple[dict[str, str], list[str]]:
    """Return the manifest's hashes, and what does not fit them.

    Raises:
        ValueError, LookupError, TypeError: it is no archive of the gateway.
    """
    names = archive.namelist()
    if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
        raise ValueError("too much")
    hashes: dict[str, str] = json.loads(archive.read(MANIFEST))["sha256"]
    problems = ["a name stands twice"] if len(names) != len(set(names)) else []
    for name in sorted(set(names) - {MANIFEST} | set(hashes)):
        if name not in hashes:
            problems.append(f"added: {name}")
        elif name not in names:
            problems.append(f"missing: {name}")
        elif _sha256(archive, name) != hashes[name]:
            problems.append(f"changed: {name}")
    return hashes, problems


def _sha256(archive: "ZipFile", name: str) -> str:
    """Hash a member piece by piece: read as a whole, the largest would stay in the memory of a process for good."""
    with archive.open(name) as member:
        return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]


def archive_problem() -> str | None:
    """Return what is wrong with the running archive: empty when nothing is, None when this is a checkout."""
    path = bundle.archive_path()
    if path is None:
        return None
    from zipfile import BadZipFile, ZipFile  # slow to import, and every start would pay for it

    try:
        with ZipFile(path) as archive:
            problems = check_members(archive)[1]
    except (BadZipFile, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError, OSError):
        return "the archive on the disk is no whole archive of the gateway any more"
    except zlib.error:
        return "the archive on the disk is damaged"
    return "; ".join(problems[:5])
