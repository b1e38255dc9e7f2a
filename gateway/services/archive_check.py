"""Compare the archive on the disk with its own manifest, and raise an alert while they differ.

The check reads the members as bytes, a piece at a time, and never runs or imports one. So it is safe on a hostile file,
and a check in a serving process takes little memory.
"""

import hashlib
import json
import zlib
from zipfile import BadZipFile, ZipFile

import anyio.to_thread

from gateway import bundle
from gateway.domain.alerts import AlertSource
from gateway.services.alerts import Alerts
from gateway.shield.detections import Severity

MANIFEST = "META/manifest.json"
RULE = "archive-changed"
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
    with archive.open(name) as member:
        return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto


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
        return "the archive on the disk is no longer a complete archive of the gateway"
    return "; ".join(problems[:_MOST_PROBLEMS])


async def check_archive(alerts: Alerts) -> None:
    """Raise an alert if the archive of this program was changed; resolve the alert if it matches again.

    A checkout has no manifest and is not checked.
    """
    problem = await anyio.to_thread.run_sync(archive_problem, bundle.archive_path())
    if problem is None:
        return
    await alerts.store.db.write(
        lambda tx: alerts.raise_or_end(
            tx,
            bool(problem),
            source=AlertSource.INTEGRITY,
            rule=RULE,
            severity=Severity.CRITICAL,
            title="The program on the disk was changed",
            description=problem,
            resolution="The archive is as its manifest says.",
            subject=alerts.store.node_id,
            occurred_at=alerts.clock.now_at(),
        )
    )
