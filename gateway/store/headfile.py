"""The head of the audit chain, in a small file beside the database, so that a truncated chain is detected. No SQL.

The file follows the database, never the other way round: a committed head is held until the disk has it, and then
written. If the file names an event that the database lacks, the file stays as evidence until an operator removes it.
"""

import json
import os

from gateway.domain.audit import ChainHead

_BYTES = 192  # one write of one block, always of the same length


class HeadFile:
    """The last known (instance, seq, hash). If `path` is None, it keeps nothing and finds no fault."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._held: tuple[str, ChainHead] | None = None
        self.is_trusted = path is not None

    def read(self, instance_id: str) -> ChainHead | None:
        """Return what the file says of the chain of `instance_id`, or None if there is no file.

        For a file that is no such record, or of another instance, the head fits no chain.
        """
        if self.path is None:
            return None
        try:
            with open(self.path, "rb") as file:
                raw = file.read(_BYTES)
                # Another process may be writing, so read until two reads agree.
                while raw != (again := os.pread(file.fileno(), _BYTES, 0)):
                    raw = again
        except FileNotFoundError:
            return None
        return _read(raw, instance_id) or ChainHead(2**53, "")

    def hold(self, instance_id: str, head: ChainHead) -> None:
        self._held = instance_id, head

    def write_held(self) -> None:
        """Write the held head, unless the file does not fit the database or names a later event. Raises OSError."""
        if self._held is None or self.path is None or not self.is_trusted:
            return
        instance_id, head = self._held
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0) as file:
            stored = _read(file.read(_BYTES), instance_id)
            if stored is None or stored.seq < head.seq:
                record = json.dumps({"instance_id": instance_id, "seq": head.seq, "hash": head.hash})
                os.pwrite(file.fileno(), record.ljust(_BYTES).encode("ascii"), 0)
        self._held = None


def _read(raw: bytes, instance_id: str) -> ChainHead | None:
    """Return what a record says of the chain of `instance_id`, or None when it is no record of that."""
    try:
        record = json.loads(raw.decode("ascii"))
        if record["instance_id"] == instance_id and type(record["seq"]) is int:
            return ChainHead(record["seq"], str(record["hash"]))
    except (ValueError, LookupError, TypeError):
        pass
    return None
