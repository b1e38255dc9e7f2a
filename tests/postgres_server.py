"""A PostgreSQL server of the system's own package, in a temporary folder, for one test run.

It refuses to run as root, so root starts it as another user. Text sorts as in a dictionary where the package can do
that: the gateway must ask for the order of bytes wherever it needs it.
"""

import contextlib
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certificates import certificate
from network import Network
from running import Process, environment, free_port, launch

USER = "gateway"
_NEEDED = ("initdb", "postgres", "psql")
_PACKAGES = Path("/usr/lib/postgresql")
_READY = re.compile("database system is ready to accept (read-only )?connections")
_DICTIONARY = ("--locale-provider=icu", "--icu-locale=en-US")  # since version 15
_SETTINGS = {
    "fsync": "off",  # no test cuts the power, and a killed server needs no disk to come back
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "16MB",
}


@dataclass
class PostgresServer:
    """A server that answers on loopback and on a Unix socket, by SCRAM-SHA-256 on both.

    programs: the folder of its programs. folder: of its socket and data. `USER` is its superuser. network: where it also
    answers, with TLS.
    """

    programs: Path
    folder: Path
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    network: Network | None = None

    def make(self, *, copy_of: "PostgresServer | None" = None) -> None:
        """Make the data folder, for the user that the server runs as. copy_of: whose standby it is."""
        if os.geteuid() == 0:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        if copy_of is not None:
            place = f"host=127.0.0.1 port={copy_of.port} user={USER} password={copy_of.password}"
            words = ("--dbname", place, "--pgdata", self.folder / "data", "--write-recovery-conf", "--no-sync")
            self._run("pg_basebackup", "--checkpoint=fast", *words)
            return
        file = self.folder / "password"
        file.write_text(self.password)
        file.chmod(0o644)  # in a folder of 0700
        help_text = subprocess.run([self.programs / "initdb", "--help"], capture_output=True, text=True).stdout
        order = _DICTIONARY if "--locale-provider" in help_text else ()
        words = ("--username", USER, "--pwfile", file, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", *order)
        self._run("initdb", "--pgdata", self.folder / "data", "--no-sync", *words)
        if self.network is not None:
            for made in certificate(self.folder / "data", f"IP:{self.network.address}", "server"):
                os.chown(made, self._user.pw_uid, self._user.pw_gid)
            with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write(f"hostssl all all {self.network.subnet} scram-sha-256\n")

    def start(self) -> None:
        """Start the server, also after `stop` or `kill`, and wait until it answers."""
        secured = (
            {"ssl": "on", "ssl_cert_file": "server.pem", "listen_addresses": f"127.0.0.1,{self.network.address}"}
            if self.network
            else {}
        )
        settings = (
            _SETTINGS | self.settings | secured | {"port": str(self.port), "unix_socket_directories": str(self.folder)}
        )
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), *words]
        self._process: Process = launch(command, **self._other_user)
        try:
            self._process.wait_for(_READY)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and every connection to it, in an orderly way."""
        if self._process.popen.poll() is None:
            self._process.popen.send_signal(signal.SIGINT)
            self._process.popen.wait(30)
        self._process.stop()

    def kill(self) -> None:
        """End the server as a crash does."""
        self._process.popen.kill()
        self._process.stop()

    def query(self, sql: str, *, host: str = "", password: str | None = None, database: str = "postgres") -> str:
        """Return what psql prints of an answer: a line a row, columns apart by "|".

        host: the Unix socket where it is empty.

        Raises:
            subprocess.CalledProcessError: the server refuses; its `stderr` says why.
        """
        login = {"PGPASSWORD": self.password if password is None else password, "PGUSER": USER}
        place = {"PGHOST": host or str(self.folder), "PGPORT": str(self.port), "PGDATABASE": database}
        command: list[str | Path] = [
            self.programs / "psql",
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--command",
            sql,
        ]
        env = environment(**login, **place)
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=60)
        return done.stdout.strip()

    def url(self, name: str = "postgres") -> str:
        """Return the address of one of its databases, on its network if it has one."""
        login = f"postgresql://{USER}:{self.password}"
        if self.network is None:
            return f"{login}@127.0.0.1:{self.port}/{name}"
        certificate = self.folder / "data" / "server.pem"
        return f"{login}@{self.network.address}:{self.port}/{name}?sslmode=verify-full&sslrootcert={certificate}"

    def new_database(self, like: str = "template1") -> str:
        """Make a copy of a database, by default of an empty one, and return its address."""
        name = f"t{secrets.token_hex(6)}"
        self.query(f"CREATE DATABASE {name} TEMPLATE {like}")
        return self.url(name)

    def _run(self, program: str, *words: object) -> None:
        command = [str(self.programs / program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment(), **self._other_user)
        assert done.returncode == 0, done.stderr

    @property
    def _other_user(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    @property
    def _user(self) -> pwd.struct_passwd:
        """Return the user that the package has made for the server, or that of no files."""
        try:
            return pwd.getpwnam("postgres")
        except KeyError:
            return pwd.getpwnam("nobody")


def find_programs() -> Path | None:
    """Return the folder with the programs of the newest version, or None where there is none."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    versions = [one for one in _PACKAGES.glob("*/bin") if one.parent.name.isdecimal()]
    folders += sorted(versions, key=lambda one: int(one.parent.name), reverse=True)
    return next((one for one in folders if all((one / name).exists() for name in _NEEDED)), None)


@contextlib.contextmanager
def served(programs: Path, network: Network | None = None, **settings: str) -> Iterator[PostgresServer]:
    """Run a server as long as the `with` block runs, in a folder whose name is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(programs, Path(folder), settings=settings, network=network)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
