"""Security scans: run files, prompts, tool descriptions and settings through the shield, and store the findings."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import anyio
import anyio.to_thread

from gateway.domain.principals import Caller
from gateway.domain.security_scans import ItemKind, ScannedItem, SecurityScan, security_scan
from gateway.errors import Conflict, InvalidRequest
from gateway.schema import Bounds
from gateway.services.core import Core
from gateway.services.findings import described
from gateway.services.provider_keys import read_regular
from gateway.services.resource import Resource
from gateway.settings import named
from gateway.shield import Shield
from gateway.shield.detections import Direction
from gateway.shield.scoring import DEFAULT_POLICY, combine
from gateway.store.database import Transaction

MAX_ITEMS = 200
MAX_FILES = 1000
MAX_FILE_BYTES = 4 * 1024 * 1024
_SKIPPED = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"))
_Path = Annotated[
    str, Bounds(1, 1000, promise="^/[^\\u0000]*$"), "Absolute, in a folder that the setting scan_paths lists."
]


@dataclass(frozen=True, slots=True)
class ScanItem:
    """One text to scan."""

    name: Annotated[str, Bounds(1, 200)]
    kind: ItemKind
    text: str


@dataclass(frozen=True, slots=True)
class NewSecurityScan:
    """What to scan. paths: files and folders on the gateway's host, in the folders that the operator allows."""

    items: Annotated[tuple[ScanItem, ...], Bounds(0, MAX_ITEMS)] = ()
    paths: Annotated[tuple[_Path, ...], Bounds(0, 50)] = ()


class SecurityScans(Resource[SecurityScan]):
    """The security scans of this database. The edges check who may run one. scan_paths: the allowed folders."""

    noun, nouns = "security scan", "security scans"

    shield: Shield
    scan_paths: Sequence[str]
    max_text_chars: int

    def __post_init__(self, core: Core) -> None:
        super().__post_init__(core)
        self._folders = tuple(os.path.realpath(path) for path in self.scan_paths)
        self._limiter = anyio.CapacityLimiter(1)  # a run keeps a processor busy

    async def run(self, caller: Caller, wanted: NewSecurityScan) -> SecurityScan:
        """Scan everything and store the result.

        Raises:
            InvalidRequest: there is nothing to scan, a text is too long, or a path is not absolute.
            Conflict: a path is not in an allowed folder. AuditUnavailable: the result was not stored.
        """
        if not wanted.items and not wanted.paths:
            raise InvalidRequest("Say items, paths or both.", param="items")
        for number, item in enumerate(wanted.items):
            if len(item.text) > self.max_text_chars:
                limit = f"{self.max_text_chars} characters, the limit that {named('max_text_chars')} sets"
                raise InvalidRequest(f"A text must be at most {limit}.", param=f"items[{number}].text")
        allowed = [self._allowed(path, number) for number, path in enumerate(wanted.paths)]
        items = await anyio.to_thread.run_sync(self._scan_all, wanted.items, allowed, limiter=self._limiter)
        scan = security_scan(
            self.ids.new("run"), items, occurred_at=self.clock.now_at(), started_by=caller.principal.name
        )
        counted = ("verdict", "scanned", "blocked", "reviewed", "unreadable")
        details = {name: getattr(scan, name) for name in counted} | {"paths": wanted.paths}

        def work(tx: Transaction) -> SecurityScan:
            self.store.security_scans.insert(tx, scan)
            self.audit.append_change(tx, "security_scan_run", caller, "security_scan", scan.id, details=details)
            return scan

        return await self.audit.commit(work)

    def _allowed(self, path: str, number: int) -> str:
        """Return the real path, if it lies in an allowed folder. The error does not reveal whether a file exists."""
        wrong = "A path must be absolute and lie in a folder that GATEWAY_SCAN_PATHS lists."
        if not os.path.isabs(path) or "\0" in path:
            raise InvalidRequest(wrong, param=f"paths[{number}]")
        real = os.path.realpath(path)
        if not any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self._folders):
            raise Conflict(wrong, param=f"paths[{number}]")
        return real

    def _scan_all(self, items: Sequence[ScanItem], paths: Sequence[str]) -> tuple[ScannedItem, ...]:
        found = [self._scan(item.name, item.kind, item.text) for item in items]
        for number, path in enumerate(_files(paths)):
            if number == MAX_FILES:
                found.append(_unreadable(path, f"more than {MAX_FILES} files; this one and the rest were not scanned"))
                break
            found.append(self._scan_file(path))
        return tuple(found)

    def _scan_file(self, path: str) -> ScannedItem:
        try:
            raw = read_regular(path, MAX_FILE_BYTES + 1)
        except OSError as error:
            return _unreadable(path, error.strerror or "cannot be read")
        if len(raw) > MAX_FILE_BYTES:
            return _unreadable(path, f"longer than {MAX_FILE_BYTES >> 20} MiB")
        return self._scan(path, "file", raw.decode("utf-8-sig", "replace"))

    def _scan(self, name: str, kind: ItemKind, text: str) -> ScannedItem:
        """Scan one text. A file or settings may also be sent out, so the outbound rules apply to them too."""
        results = [self.shield.scan(text, Direction.INBOUND)]
        if kind in ("config", "file"):
            results.append(self.shield.scan(text, Direction.OUTBOUND))
        result = combine(results, DEFAULT_POLICY) if len(results) > 1 else results[0]
        detections = tuple(
            {**shown, "name": one.name, "description": one.description, "line": text.count("\n", 0, one.start) + 1}
            for shown, one in zip(described(result.detections), result.detections, strict=False)
        )
        return ScannedItem(
            name=name[:1000],
            kind=kind,
            sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            chars=len(text),
            verdict=result.verdict,
            score=result.score,
            detections=detections,
        )


def _files(paths: Sequence[str]) -> Iterator[str]:
    """Yield the given files, and all files below the given folders in the order of their names. Follows no link."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - _SKIPPED)
            yield from (os.path.join(folder, name) for name in sorted(names))


def _unreadable(path: str, reason: str) -> ScannedItem:
    name = path.encode("utf-8", "replace").decode()[:1000]
    return ScannedItem(name=name, kind="file", sha256=None, chars=0, verdict=None, score=None, error=reason)
