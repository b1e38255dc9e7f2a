"""Whether the running archive is as its manifest says. Runs, imports and unmarshals nothing of it."""

import json
import zlib
from collections.abc import Callable, Sequence

from gateway.services.archive_members import Members

MANIFEST = "META/manifest.json"
MOST_BYTES = 256 * 1024 * 1024  # of all members together; a file that says it holds more is no archive of ours


def check_members(
    names: Sequence[str], total_bytes: int, *, read: Callable[[str], bytes], sha256: Callable[[str], str]
) -> tuple[dict[str, str], list[str]]:
    """Return the manifest's hashes, and what does not fit them.

    names: of all members, each as often as it stands there. read, sha256: return a member, and its hash.

    Raises:
        ValueError, LookupError, TypeError: it is no archive of the gateway.
    """
    if total_bytes > MOST_BYTES:
        raise ValueError("too much")
    hashes: dict[str, str] = json.loads(read(MANIFEST))["sha256"]
    problems = ["a name stands twice"] if len(names) != len(set(names)) else []
    for name in sorted(set(names) - {MANIFEST} | set(hashes)):
        if name not in hashes:
            problems.append(f"added: {name}")
        elif name not in names:
            problems.append(f"missing: {name}")
        elif sha256(name) != hashes[name]:
            problems.append(f"changed: {name}")
    return hashes, problems


def archive_problem(path: str | None) -> str | None:
    """Return what is wrong with an archive: empty when nothing is, None without one, as in a checkout."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            found = Members(file)
            problems = check_members(found.names, found.total_bytes, read=found.read, sha256=found.sha256)[1]
    except (LookupError, ValueError, TypeError, OSError):
        return "the archive on the disk is no whole archive of the gateway any more"
    except zlib.error:
        return "the archive on the disk is damaged"
    return "; ".join(problems[:5])
