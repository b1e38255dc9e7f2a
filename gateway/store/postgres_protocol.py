"""The client's side of the PostgreSQL protocol 3.0, without I/O: builds what is sent, and reads what is answered.

Each statement is unnamed and travels with its values, and values are text. So a transaction pooler may stand between.
Source: postgresql.org/docs/current/protocol.html.
"""

import functools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gateway.errors import SetupError
from gateway.store.postgres_scram import Scram, refused

SYNC = b"S\0\0\0\4"
TERMINATE = b"X\0\0\0\4"
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
LONGEST_MESSAGE = 256 << 20
_LONGEST_OF_LOGIN = 64 << 10
_NULL = b"\xff\xff\xff\xff"
_DESCRIBE_AND_EXECUTE = b"D\0\0\0\6P\0" + b"E\0\0\0\x09\0\0\0\0\0"
_KEPT = 1024  # statements, and descriptions of their rows
_FIELD = struct.Struct("!IhIhih")
_EXPECTED = {"client_encoding": "UTF8", "server_encoding": "UTF8", "standard_conforming_strings": "on"}


class ServerError(Exception):
    """The server refused a statement or the login.

    code: the SQLSTATE. message: in the server's words, which may quote values, so it is not for logs.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the database server refused: SQLSTATE {code}")
        self.code, self.message = code, message


class ProtocolFault(Exception):
    """The server said what no server says at this point. Nothing it says after that can be trusted."""


class Row:
    """One row: a value by the name of its column or by its index from 0, and all values in order."""

    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Mapping[str, int], values: Sequence[Any]) -> None:
        self._columns, self._values = columns, values

    def __getitem__(self, column: str | int) -> Any:
        return self._values[self._columns[column] if isinstance(column, str) else column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


class Result:
    """What one statement gave. rowcount: rows changed or returned; 0 for a statement that does neither.

    It has the names of a driver's cursor.
    """

    __slots__ = ("columns", "readers", "rowcount", "rows")

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.readers: list[Callable[[bytes], Any]] = []
        self.rows: list[Row] = []
        self.rowcount = 0

    def fetchall(self) -> list[Row]:
        return self.rows


def _read_numeric(raw: bytes) -> int | float:
    return int(raw) if raw.removeprefix(b"-").isdigit() else float(raw)


def _read_bytes(raw: bytes) -> bytes:
    if raw[:2] != b"\\x":
        raise ProtocolFault("bytes that are not hexadecimal: set bytea_output = hex on the server")
    return bytes.fromhex(raw[2:].decode())


_READERS: dict[int, Callable[[bytes], Any]] = {
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((700, 701), float),
    16: b"t".__eq__,
    17: _read_bytes,
    1700: _read_numeric,
}


def _encoded(value: object) -> tuple[int, bytes | None]:
    """Return the OID of a value and the value as text. NULL is None, and the server finds its type."""
    match value:
        case None:
            return 0, None
        case bool():
            return 16, b"t" if value else b"f"
        case int():
            return 20, b"%d" % value
        case float():
            return 701, float.__repr__(value).encode()
        case str():
            return 25, value.encode()
        case bytes():
            return 17, b"\\x" + value.hex().encode()
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent to the database")


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message of a kind that is one letter."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def startup(**parameters: str) -> bytes:
    """Return the first message: `user`, `database` and others, none with a NUL in it."""
    body = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items())
    return struct.pack("!ii", len(body) + 9, 196608) + body + b"\0"


def statement(sql: str, values: Sequence[object]) -> bytes:
    """Return a statement with the values of $1, $2 …: bool, int, float, str, bytes or None.

    Raises:
        TypeError: a value is of another type.
        ValueError: a text holds half a character (UnicodeEncodeError), or the statement a NUL.
    """
    encoded = [_encoded(value) for value in values]
    return _parse(sql, tuple([oid for oid, _ in encoded])) + _bind([raw for _, raw in encoded])


@functools.lru_cache(_KEPT)
def _parse(sql: str, oids: tuple[int, ...]) -> bytes:
    if "\0" in sql:
        raise ValueError("a statement holds a NUL")
    return message(b"P", b"\0%b\0" % sql.encode() + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def _bind(values: Sequence[bytes | None]) -> bytes:
    parts = [b"\0\0\0\0", len(values).to_bytes(2, "big")]
    for raw in values:
        parts += (_NULL,) if raw is None else (len(raw).to_bytes(4, "big"), raw)
    return message(b"B", b"".join(parts) + b"\0\0") + _DESCRIBE_AND_EXECUTE


class Reader:
    """Reads what the server says, however it is cut, from the login on. One Sync is answered at a time.

    scram: proves the password; None where there is none. to_send: what the login has to answer, taken by the caller.
    is_waiting: whether the login, or the answer to a Sync, is not whole yet. error: the first one of this answer.
    status: of the transaction, "I" for none, "T" in one, "E" in one that failed.
    """

    def __init__(self, scram: Scram | None) -> None:
        self._scram = scram
        self._buffer = bytearray()
        self._is_logged_in = self._is_open = False  # is_open: the login is over
        self.to_send = b""
        self.status = ""
        self.expect(0)

    def expect(self, count: int) -> None:
        """Await the results of `count` statements and the answer to their Sync."""
        self._expected = count
        self.results: list[Result] = []
        self.error: ServerError | None = None
        self.is_waiting = True
        self._result = Result()

    def feed(self, data: bytes) -> None:
        """Read what came.

        Raises:
            ServerError: the server refused the login. Later errors are in `error`.
            SetupError: the login or the encoding is none that the gateway accepts.
            ProtocolFault: a length lies, or the message is malformed, unknown or out of turn.
        """
        self._buffer += data
        try:
            for kind, body in self._messages():
                if kind in b"EKNRSA" or not (self._is_open and self.is_waiting):
                    self._read_other(kind, body)
                else:
                    self._read_step(kind, body)
        except (ValueError, LookupError, struct.error):
            raise ProtocolFault("a message that is malformed or out of turn") from None  # it may quote a row

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        """Take the messages that are whole, each with its kind."""
        while len(self._buffer) >= 5:
            length = int.from_bytes(self._buffer[1:5], "big")
            if not 4 <= length <= (LONGEST_MESSAGE if self._is_open else _LONGEST_OF_LOGIN):
                raise ProtocolFault(f"a message of {length} bytes")
            if len(self._buffer) <= length:
                return
            kind, body = self._buffer[0], bytes(self._buffer[5 : 1 + length])
            del self._buffer[: 1 + length]
            yield kind, body

    def _read_row(self, body: bytes) -> None:
        result = self._result
        values: list[Any] = []
        if int.from_bytes(body[:2], "big") != len(result.readers):
            raise ProtocolFault("a row that does not fit its description")
        at = 2
        for read in result.readers:
            size = int.from_bytes(body[at : at + 4], "big")
            at += 4
            if size == 0xFFFFFFFF:
                values.append(None)
            else:
                values.append(read(body[at : at + size]))
                at += size
        if at != len(body):
            raise ProtocolFault("a row whose lengths lie")
        result.rows.append(Row(result.columns, values))

    def _read_step(self, kind: int, body: bytes) -> None:
        """Read a message of the answer to a statement, or that all statements are done."""
        if kind in b"12n":
            return
        if kind == 68:  # D: a row
            self._read_row(body)
        elif kind == 84:  # T
            self._result.columns, self._result.readers = _describe(body)
        elif kind in b"CI":
            last = body[:-1].rpartition(b" ")[2]
            self._result.rowcount = int(last) if last.isdigit() else 0
            self.results.append(self._result)
            self._result = Result()
        elif kind == 90:  # Z
            self._finish(body)
            if self.error is None and len(self.results) != self._expected:
                raise ProtocolFault(f"{len(self.results)} results for {self._expected} statements")
        else:
            raise ProtocolFault(f"an unknown message, {chr(kind)!r}")

    def _finish(self, body: bytes) -> None:
        if body not in (b"I", b"T", b"E"):
            raise ProtocolFault("an unknown state of a transaction")
        self.status, self.is_waiting = body.decode(), False

    def _read_other(self, kind: int, body: bytes) -> None:
        """Read a message that comes at any time, or of the login."""
        if kind == 69:  # E
            fields = {one[:1]: one[1:].decode("utf-8", "replace") for one in body.split(b"\0")}
            error = ServerError(fields.get(b"C", "?"), fields.get(b"M", "?"))
            self.error = self.error or error
            if not self._is_open:
                raise error
        elif kind == 83:  # S: a parameter
            name, value, _ = body.decode().split("\0")
            if _EXPECTED.get(name, value) != value:
                advice = f"Use a database and a role with {_EXPECTED[name]}."
                raise SetupError(f"The database server has {name} = {value}. {advice}", param="database_url")
        elif kind == 82 and not self._is_open:  # R
            self._log_in(int.from_bytes(body[:4], "big"), body[4:])
        elif kind == 90 and self._is_logged_in and not self._is_open:
            self._is_open = True
            self._finish(body)
        elif kind not in b"KNA":  # the key for a cancel request, a notice, a notification
            raise ProtocolFault(f"message {chr(kind)!r} out of turn")

    def _log_in(self, step: int, body: bytes) -> None:
        if step in (10, 11, 12):
            if self._scram is None:
                raise SetupError("The database server asks for a password: give one.", param="database_url")
            answer = self._scram.answer(step, body)
            self.to_send += message(b"p", answer) if answer else b""
        elif step != 0:
            raise refused("asks for the password by cleartext, MD5 or another login that the gateway does not use")
        elif self._scram is not None and not self._scram.is_proved:
            raise refused("let the gateway in without proof that it knows the password")
        else:
            self._is_logged_in = True


@functools.lru_cache(_KEPT)
def _describe(body: bytes) -> tuple[dict[str, int], list[Callable[[bytes], Any]]]:
    """Return the places of the columns by their names, and what reads the value of each."""
    columns: dict[str, int] = {}
    readers: list[Callable[[bytes], Any]] = []
    at = 2
    for number in range(int.from_bytes(body[:2], "big")):
        end = body.index(b"\0", at)
        columns[body[at:end].decode()] = number
        readers.append(_READERS.get(_FIELD.unpack_from(body, end + 1)[2], bytes.decode))
        at = end + 1 + _FIELD.size
    return columns, readers
