"""Open the data folder, put the gateway together over it, make it anew on reload, close it all. `parts` knows how."""

import os
import stat
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from gateway import bundle, shield
from gateway.app import Gateway, Lasting
from gateway.clock import SystemClock, SystemIds
from gateway.errors import AuditUnavailable, Overloaded, SetupError
from gateway.log import Log
from gateway.parts import Shared, assemble, make_lasting
from gateway.settings import Settings
from gateway.store.store import open_store

if TYPE_CHECKING:
    from gateway.shield import Shield

DATABASE = "gateway.db"
_LEAST_FREE_BYTES = 1_048_576  # with less, what cannot be written has no room
_UNTIL_RESTART = (
    "host", "port", "workers", "data_dir", "tls_cert", "tls_key", "allowed_hosts", "drain_seconds", "log_level",
    "mcp_enabled", "mcp_port", "mcp_api_key",
)  # fmt: skip


def database_path(settings: Settings) -> str:
    """Return where the database of these settings lies, or ``:memory:``."""
    return settings.data_dir if settings.data_dir == ":memory:" else os.path.join(settings.data_dir, DATABASE)


def load_shield(path: str | None) -> "Shield":
    """Load the rules, given or built in.

    Raises:
        SetupError: the rule file is bad; names the rule, the field and the reason.
    """
    try:
        return shield.load(path)
    except shield.RuleError as error:
        why = error if error.rule or error.field else error.reason
        raise SetupError(f"The rules cannot be used: {why}") from error


def load_early(path: str | None) -> "Shield | None":
    """Load the rules unless they can wait: those of an archive are whole when its file is, and were tried with it.

    Raises:
        SetupError: the rules cannot be used.
    """
    if path is not None or bundle.archive_path() is None:
        return load_shield(path)
    try:
        bundle.read("rules.plans")
    except OSError as error:
        raise SetupError(f"The rules cannot be used: {error.strerror}") from error
    return None


def keep_lasting(old: Settings, new: Settings, log: Log) -> Settings:
    """Return `new` with what cannot change before a restart as it was in `old`, and log the names of what would."""
    kept = {name: getattr(old, name) for name in _UNTIL_RESTART}
    waiting = [name for name, value in kept.items() if getattr(new, name) != value]
    if waiting:
        log.warning("restart_needed", settings=waiting)
    return replace(new, **kept)


class Composition:
    """A gateway that can be made anew over the same store, keys and connections.

    scanner: None to load the rules when somebody first asks for the shield.
    """

    def __init__(self, settings: Settings, scanner: "Shield | None", lasting: Lasting) -> None:
        self._settings = settings
        self._lasting = lasting
        self.gateway = assemble(settings, scanner, lasting)

    def reload(self, settings: Settings) -> Gateway:
        """Make the gateway of other settings and freshly read rules, and return it.

        Address, TLS, data folder and limits of the server stay as they were until a restart. May run in a thread.

        Raises:
            SetupError: the rules cannot be used; the old gateway goes on.
        """
        settings = keep_lasting(self._settings, settings, self.gateway.log)
        self.gateway = assemble(settings, load_shield(settings.rules), self._lasting)
        return self.gateway


@asynccontextmanager
async def open_gateway(settings: Settings, *, log: Log, is_shell: bool = False) -> AsyncGenerator[Gateway]:
    """Yield the gateway of these settings; close everything afterwards. Like `open_composition`."""
    async with open_composition(settings, log=log, is_shell=is_shell) as composition:
        yield composition.gateway


@asynccontextmanager
async def open_composition(
    settings: Settings, *, log: Log, shared: Shared | None = None, is_shell: bool = False
) -> AsyncGenerator[Composition]:
    """Open the data folder, made if need be, and yield the parts put together; close everything afterwards.

    shared: given when this process is one of several workers. is_shell: it is a command, which serves nobody.

    Raises:
        SetupError: the rules, the data folder or the database cannot be used.
    """
    scanner = shared.scanner if shared else load_early(settings.rules)
    async with open_lasting(settings, log=log, shared=shared, is_shell=is_shell) as lasting:
        yield Composition(settings, scanner, lasting)


@asynccontextmanager
async def open_lasting(
    settings: Settings, *, log: Log, shared: Shared | None = None, is_shell: bool = False
) -> AsyncGenerator[Lasting]:
    """Open the data folder, made if need be, and yield the parts that need no rules; close everything afterwards.

    Raises:
        SetupError: the data folder or the database cannot be used.
    """
    with _naming_a_full_disk(settings.data_dir):
        async with _open_lasting(settings, log, shared, is_shell=is_shell) as lasting:
            yield lasting


@asynccontextmanager
async def _open_lasting(
    settings: Settings, log: Log, shared: Shared | None, *, is_shell: bool
) -> AsyncGenerator[Lasting]:
    clock = SystemClock()
    ids = SystemIds(clock)
    identity = shared.database if shared else None
    if identity is None:
        make_data_dir(settings.data_dir)
    store = await open_store(database_path(settings), clock=clock, ids=ids, log=log, identity=identity)
    try:
        lasting = make_lasting(
            store, clock, ids, log, shared=shared, ca_file=settings.upstream_ca_file, is_shell=is_shell
        )
        try:
            yield lasting
        finally:
            with anyio.CancelScope(shield=True):
                if lasting.has("client"):
                    await lasting.client.aclose()
                if lasting.has("refusals"):
                    await lasting.authentication.aclose()
                if lasting.has("access"):
                    lasting.access.flush_hits()
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()


@contextmanager
def _naming_a_full_disk(folder: str) -> Iterator[None]:
    """Say that the disk is full where that is why something could not be opened or recorded.

    Raises:
        SetupError: the disk is full, or what it was.
    """
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
    """Make the data folder, for its owner alone. One that is there is closed to others if it is ours and in use.

    Raises:
        SetupError: it cannot be made or is no folder.
    """
    if path == ":memory:":
        return
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if _is_ours(path):
            os.chmod(path, 0o700)
    except OSError as error:
        raise SetupError(
            f"The data folder {path} cannot be made ({error.strerror}): name another with --data-dir, or :memory:."
        ) from error


def _is_ours(path: str) -> bool:
    """Tell whether a folder is open to others although it is ours, holds our database, and nothing of anybody else."""
    found = os.stat(path)
    if not found.st_mode & 0o077 or found.st_mode & stat.S_ISVTX or not os.path.isfile(os.path.join(path, DATABASE)):
        return False
    owners = {entry.stat(follow_symlinks=False).st_uid for entry in os.scandir(path)}
    return owners | {found.st_uid} == {os.geteuid()}
