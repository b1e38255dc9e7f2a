"""The members of an archive of ours on the disk, read piece by piece. Runs and unmarshals nothing of it.

Of zip files it knows what the build writes and nothing else: no comment, no encryption, no file beyond 4 GB. The module
of the standard library knows more, and would bring half a megabyte into each process for one look an hour.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

_PIECE_BYTES = 65_536
_END, _ENTRY, _LOCAL = b"PK\5\6", b"PK\1\2", b"PK\3\4"
_END_BYTES, _ENTRY_BYTES, _LOCAL_BYTES = 22, 46, 30
_IS_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8
_RAW = -15


@dataclass(frozen=True, slots=True)
class _Member:
    name: bytes
    method: int
    packed_bytes: int
    size_bytes: int
    crc: int
    place: int


class Members:
    """A zip file. names: of its members, in order, each as often as it stands there; total_bytes: of them unpacked."""

    __slots__ = ("_file", "_members", "names", "total_bytes")

    def __init__(self, file: BinaryIO) -> None:
        """file: stays the caller's, and open while members are read.

        Raises:
            ValueError: it is none that we would have written.
            OSError: it cannot be read.
        """
        self._file = file
        members = list(_members(file))
        self.names = [member.name.decode("ascii") for member in members]
        self.total_bytes = sum(member.size_bytes for member in members)
        self._members = dict(zip(self.names, members, strict=True))

    def read(self, name: str) -> bytes:
        """Return a member whole. Raises as `pieces`."""
        return b"".join(self.pieces(name))

    def sha256(self, name: str) -> str:
        """Hash a member piece by piece: whole, the largest would stay in a process for good. Raises as `pieces`."""
        whole = sha256()
        for piece in self.pieces(name):
            whole.update(piece)
        return whole.hexdigest()

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes. Of one that says it has fewer than it has, no more than it says and a piece.

        Raises:
            KeyError: there is no such member.
            ValueError, zlib.error: it is not as the directory says.
        """
        member = self._members[name]
        self._file.seek(member.place)
        head = _exactly(self._file, _LOCAL_BYTES)
        if head[:4] != _LOCAL or _exactly(self._file, _number(head, 26, 2)) != member.name:
            raise ValueError("a member is not where it should be")
        self._file.seek(_number(head, 28, 2), 1)
        left, crc = member.size_bytes, 0
        for piece in self._unpacked(member):
            left -= len(piece)
            if left < 0:
                break
            crc = zlib.crc32(piece, crc)
            yield piece
        if left or crc != member.crc:
            raise ValueError("a member has another size or checksum")

    def _unpacked(self, member: _Member) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(_RAW) if member.method == _DEFLATED else None
        left = member.packed_bytes
        while left:
            piece = _exactly(self._file, min(left, _PIECE_BYTES))
            left -= len(piece)
            if unpacker is None:
                yield piece
                continue
            while piece:
                yield unpacker.decompress(piece, _PIECE_BYTES)
                piece = unpacker.unconsumed_tail
        if unpacker is not None:
            yield unpacker.flush()
            if not unpacker.eof:
                raise zlib.error("cut off")


def _members(file: BinaryIO) -> Iterator[_Member]:
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES))
    end = _exactly(file, _END_BYTES)
    begin = size - _END_BYTES - _number(end, 12, 4)
    before = begin - _number(end, 16, 4)  # what stands before all that the offsets count
    if end[:4] != _END or _number(end, 20, 2) or before < 0:
        raise ValueError("it does not end as an archive of ours")
    file.seek(begin)
    directory, place = _exactly(file, _number(end, 12, 4)), 0
    for _ in range(_number(end, 10, 2)):
        entry = directory[place : place + _ENTRY_BYTES]
        behind = place + _ENTRY_BYTES + _number(entry, 28, 2)
        method = _number(entry, 10, 2)
        is_plain = method in (_STORED, _DEFLATED) and not _number(entry, 8, 2) & _IS_ENCRYPTED
        if entry[:4] != _ENTRY or behind > len(directory) or not is_plain:
            raise ValueError("its directory is none of ours")
        name, place = directory[place + _ENTRY_BYTES : behind], behind + _number(entry, 30, 2) + _number(entry, 32, 2)
        crc, packed_bytes, size_bytes = (_number(entry, at, 4) for at in (16, 20, 24))
        yield _Member(name, method, packed_bytes, size_bytes, crc, before + _number(entry, 42, 4))
    if place != len(directory):
        raise ValueError("its directory is longer than it says")


def _exactly(file: BinaryIO, size: int) -> bytes:
    read = file.read(size)
    if len(read) != size:
        raise ValueError("it is cut off")
    return read


def _number(raw: bytes, begin: int, size: int) -> int:
    return int.from_bytes(raw[begin : begin + size], "little")
