"""Open the data folder, put the gateway together over it, make it anew on a reload, and close it all."""

import os
import re
import stat
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import anyio
from anyio import to_thread

from gateway import shield
from gateway.app import Gateway, Lasting, Shared
from gateway.clock import Clock, Ids
from gateway.errors import AuditUnavailable, Overloaded, SetupError
from gateway.http.client import Client
from gateway.log import Log
from gateway.services.provider_keys import read_regular
from gateway.settings import Settings, named
from gateway.shield import Shield
from gateway.store.postgres_address import Address
from gateway.store.store import open_store

DATABASE = "gateway.db"
_LEAST_FREE_BYTES = 1_048_576  # with less, a write that fails fails for want of room
_SEAL_KEY = re.compile(rb'\s*(?:\{"seal": ")?([0-9a-f]{64})(?:"\})?\s*')
_UNTIL_RESTART = (
    "host", "port", "workers", "data_dir", "tls_cert", "tls_key", "allowed_hosts", "drain_seconds", "log_level",
    "mcp_enabled", "mcp_port", "mcp_api_key", "seal_key_file",
)  # fmt: skip


def database_path(settings: Settings) -> str:
    """Return the path of the database, or ``:memory:``."""
    return settings.data_dir if settings.data_dir == ":memory:" else os.path.join(settings.data_dir, DATABASE)


def has_database(settings: Settings) -> bool:
    """Tell whether there is a database: on a server, or in the data folder."""
    if settings.has_server:
        return True
    return settings.data_dir != ":memory:" and os.path.exists(database_path(settings))


def load_shield(path: str | None, extra: Sequence[str] = (), *, is_ready: bool = False) -> Shield:
    """Load the rules of a file, or the built-in ones, and the local rules of the extra files and folders.

    is_ready: make them ready to scan as well.

    Raises:
        SetupError: the rule file is bad; names the rule, the field and the reason.
    """
    try:
        scanner = shield.load(path, extra)
    except shield.RuleError as error:
        why = error if error.rule or error.field else error.reason
        raise SetupError(f"The rules cannot be used: {why}") from error
    if is_ready:
        scanner.ready()
    return scanner


def keep_lasting(old: Settings, new: Settings, log: Log) -> Settings:
    """Return `new` with the old value of every setting that needs a restart, and log the names of those that differ."""
    kept = {name: getattr(old, name) for name in _UNTIL_RESTART}
    waiting = [name for name, value in kept.items() if getattr(new, name) != value]
    if waiting:
        log.warning("restart_needed", settings=waiting)
    return replace(new, **kept)


def reload(gateway: Gateway, settings: Settings) -> Gateway:
    """Make the gateway of other settings and freshly read rules over the same services. May run in a thread.

    The address, TLS, the data folder and the limits of the server change only with a restart.

    Raises:
        SetupError: the rules cannot be used; the old gateway goes on.
    """
    settings = keep_lasting(gateway.settings, settings, gateway.log)
    scanner = load_shield(settings.rules, settings.rules_extra, is_ready=True)
    new = Gateway(settings, scanner, gateway.lasting, gateway.client)
    new.rules.load()
    return new


@asynccontextmanager
async def open_gateway(
    settings: Settings, *, log: Log, shared: Shared | None = None, is_shell: bool = False
) -> AsyncGenerator[Gateway]:
    """Open the data folder, making it if needed, and yield the whole gateway; close everything afterwards.

    shared: given when this process is one of several workers. is_shell: it is a command, which serves nobody.

    Raises:
        SetupError: the rules, the data folder or the database cannot be used.
    """
    rules = shared.shield if shared else load_shield(settings.rules, settings.rules_extra)
    async with open_lasting(settings, log=log, shared=shared, is_shell=is_shell) as lasting:
        client = Client(ca_file=settings.upstream_ca_file)
        try:
            await lasting.store.authority.follow()
            made = [Gateway(settings, rules, lasting, client)]
            await to_thread.run_sync(made[0].rules.load)
            yield made.pop()  # kept by nobody here once a reload has replaced it
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()


@asynccontextmanager
async def open_lasting(
    settings: Settings, *, log: Log, shared: Shared | None = None, is_shell: bool = False
) -> AsyncGenerator[Lasting]:
    """Open the data folder, making it if needed, and yield the services that need no rules; close them afterwards.

    Raises:
        SetupError: the data folder, the database or the file of its password cannot be used.
    """
    clock = Clock()
    ids = Ids(clock)
    identity = shared.database if shared else None
    with _naming_a_full_disk(settings.data_dir):
        if identity is None:
            make_data_dir(settings.data_dir)
        address = None
        if settings.has_server:
            address = Address.parse(str(settings.database_url), password_file=settings.database_password_file)
        store = await open_store(
            database_path(settings),
            clock=clock,
            ids=ids,
            log=log,
            identity=identity,
            address=address,
            seal_key=read_seal_key(settings.seal_key_file),
        )
        try:
            lasting = Lasting(store, clock, ids, shared=shared, is_shell=is_shell)
            try:
                yield lasting
            finally:
                lasting.authentication.refusals.flush()
                lasting.access.flush_hits()
                if shared is None:
                    lasting.limiter.close()
        finally:
            with anyio.CancelScope(shield=True):
                await store.aclose()


def read_seal_key(path: str | None) -> str | None:
    """Return the key in the file that the settings name: its digits, or a copy of the file in a data folder.

    Raises:
        SetupError: there is no key in it.
    """
    if path is None:
        return None
    try:
        found = _SEAL_KEY.fullmatch(read_regular(os.path.realpath(path), 1000))
    except OSError as error:
        raise SetupError(f"{named('seal_key_file')} cannot be read ({error.strerror}).") from error
    if found is None:
        raise SetupError(
            f"{named('seal_key_file')} has no key. Write 64 hexadecimal digits with `openssl rand -hex 32`, or copy "
            f"{DATABASE}.seal from the data folder of a host."
        )
    return found[1].decode()


@contextmanager
def _naming_a_full_disk(folder: str) -> Iterator[None]:
    """Raise a SetupError that says so if a full disk is why something could not be opened or recorded."""
    try:
        yield
    except (SetupError, AuditUnavailable, Overloaded) as error:
        while folder != ":memory:" and not os.path.isdir(folder):
            folder = os.path.dirname(os.path.abspath(folder))
        room = None if folder == ":memory:" else os.statvfs(folder)
        if room is None or room.f_bavail * room.f_frsize >= _LEAST_FREE_BYTES:
            raise
        free_kb = room.f_bavail * room.f_frsize // 1024
        raise SetupError(
            f"The disk that holds {folder} is full ({free_kb} KB free): free some space. {error.message}"
        ) from error


def make_data_dir(path: str) -> None:
    """Make the data folder, for its owner alone. An existing one that is ours and in use is closed to others.

    Raises:
        SetupError: it cannot be made, or it is not a folder.
    """
    if path == ":memory:":
        return
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if _is_ours_and_open(path):
            os.chmod(path, 0o700)
    except OSError as error:
        raise SetupError(
            f"The data folder {path} cannot be created ({error.strerror}): use --data-dir to set another, or :memory:."
        ) from error


def _is_ours_and_open(path: str) -> bool:
    """Return whether others may enter a folder that is ours, holds our database, and holds nothing of anybody else."""
    found = os.stat(path)
    if not found.st_mode & 0o077 or found.st_mode & stat.S_ISVTX or not os.path.isfile(os.path.join(path, DATABASE)):
        return False
    owners = {entry.stat(follow_symlinks=False).st_uid for entry in os.scandir(path)}
    return owners | {found.st_uid} == {os.geteuid()}
