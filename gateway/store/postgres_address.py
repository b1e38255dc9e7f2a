"""The address of a PostgreSQL database: its hosts, login and TLS. No I/O but reading the files it names."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from gateway.errors import SetupError
from gateway.settings import is_loopback

WAIT_SECONDS = 5
_FORM = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?(?P<hosts>[^@/?#]*)"
    r"(?:/(?P<database>[^@/?#]*))?(?:\?(?P<query>[^@#]*))?"
)
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+|/[^:,]*))(?::(?P<port>[0-9]{1,5}))?")
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES = ("sslrootcert", "sslcert", "sslkey")
_PARAMETERS = (*_FILES, "sslmode", "target_session_attrs", "application_name", "connect_timeout", "host", "port")


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a database is, and how to reach it. Its repr has no password.

    hosts: name, IP address or folder of a Unix socket, with the port; tried in this order. sslmode: as libpq has it, or
    "" for TLS where it is offered, always verified. files: of sslrootcert, sslcert and sslkey, those that are given.
    """

    hosts: tuple[tuple[str, int], ...]
    user: str
    database: str
    sslmode: str = ""
    files: dict[str, str] = field(default_factory=dict)
    application_name: str = "gateway"
    connect_seconds: int = WAIT_SECONDS
    password_file: str | None = None
    own_password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, *, password_file: str | None = None) -> "Address":
        """Read `postgresql://user:password@host:port,host:port/database?name=value&…`.

        password_file: its first line is the password, read anew for each connection; it may be a link.

        Raises:
            SetupError: the address is malformed, has an unknown parameter, or is of another host without TLS.
        """
        found = _FORM.fullmatch(url)
        if found is None:
            form = "postgresql://user:password@host:port/database?name=value"
            raise fault(f"has not the form {form}, with %40 for @ and the like in a name or password")
        parts = {name: None if text is None else _decode(text) for name, text in found.groupdict().items()}
        given = _parameters(found["query"] or "")
        if not parts["user"]:
            raise fault("names no user")
        if parts["hosts"] and "host" in given:
            raise fault("names hosts in two places")
        if parts["password"] is not None and password_file is not None:
            raise fault("holds a password, and there is a password file as well: use one of them")
        if given.get("target_session_attrs", "read-write") != "read-write":
            raise fault("may have only target_session_attrs=read-write")
        if given.get("sslmode", "disable") not in _MODES:
            raise fault(f"may have as sslmode only {', '.join(_MODES)}")
        if "sslkey" in given and "sslcert" not in given:
            raise fault("has sslkey but no sslcert")
        seconds = given.get("connect_timeout", str(WAIT_SECONDS))
        if not re.fullmatch("[1-9][0-9]?", seconds, re.ASCII):
            raise fault("needs 1 to 99 seconds as connect_timeout")
        address = cls(
            hosts=_hosts(parts["hosts"] or given.get("host", ""), given.get("port", "5432")),
            user=parts["user"],
            database=parts["database"] or parts["user"],
            sslmode=given.get("sslmode", ""),
            files={name: given[name] for name in _FILES if name in given},
            application_name=given.get("application_name", "gateway"),
            connect_seconds=int(seconds),
            password_file=password_file,
            own_password=parts["password"],
        )
        remote = [host for host, _ in address.hosts if not host.startswith("/") and not is_loopback(host)]
        if address.sslmode == "disable" and remote:
            raise fault(f"has sslmode=disable, but {remote[0]} is another host: leave sslmode out, or use verify-full")
        address.password()
        return address

    def password(self) -> str | None:
        """Return the password, or None where there is none. Raises SetupError: its file cannot be read."""
        if self.password_file is None:
            return self.own_password
        try:
            with open(self.password_file, "rb") as file:
                return file.read(4096).partition(b"\n")[0].rstrip(b"\r").decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or "no UTF-8"
            raise SetupError(f"The file with the password of the database cannot be read ({reason}).") from None

    @property
    def shown(self) -> str:
        """The address without password and parameters."""
        return f"postgresql://{self.user}@{','.join(place(*one) for one in self.hosts)}/{self.database}"


def fault(what: str) -> SetupError:
    """Return the error of an address that cannot be used."""
    return SetupError(f"The address of the database {what}.", param="database_url")


def _decode(text: str) -> str:
    decoded = unquote(text)
    if "\0" in decoded or "\ufffd" in decoded:
        raise fault("holds a NUL or what is no UTF-8")
    return decoded


def _parameters(query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, _, text = part.partition("=")
        if name not in _PARAMETERS:
            raise fault(f"has an unknown parameter, {name!r}. Known are {', '.join(sorted(_PARAMETERS))}")
        if name in given:
            raise fault(f"has {name} twice")
        given[name] = _decode(text)
    return given


def _hosts(text: str, port: str) -> tuple[tuple[str, int], ...]:
    found = [_HOST.fullmatch(one) for one in text.split(",")]
    hosts = tuple((one["six"] or one["name"], int(one["port"] or port)) for one in found if one and port.isdecimal())
    if len(hosts) < len(found) or any(not 0 < number < 65_536 for _, number in hosts):
        raise fault("names no host, or a host or port that is none")  # not shown: it may be part of a password
    return hosts


def place(host: str, port: int) -> str:
    """Return a host and its port as they are written in an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
