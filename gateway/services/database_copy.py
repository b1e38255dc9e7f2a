"""Move a gateway's data from one database to another, of whatever engine, and prove that it is whole."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.store import database_file
from gateway.store.copying import copy_rows
from gateway.store.engine import Database
from gateway.store.postgres_address import Address
from gateway.store.store import Store, open_database

_FILE = "sqlite:"


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy. rows: of each table. events: of the audit chain, which is whole."""

    rows: Mapping[str, int]
    events: int


async def copy_database(
    source: str,
    target: str,
    *,
    password_file: str | None,
    clock: Clock,
    ids: Ids,
    log: Log,
    told: Callable[[str, int], None] = lambda name, rows: None,
) -> Copied:
    """Copy all data. source, target: ``sqlite:/PATH`` or ``postgresql://…``. told: with each table and its rows.

    Nothing of the source changes. A copy that is cut short can be repeated.

    Raises:
        SetupError: an address is wrong, a gateway has the SQLite database open, the target holds other data, or the
            copy differs from its source.
    """
    if source == target:
        raise SetupError("The source and the target are the same database.")
    await to_thread.run_sync(_check_source, _path(source))
    opened = partial(_opened, password_file=password_file, clock=clock, log=log)
    async with opened(source) as old, opened(target) as new:
        rows = await copy_rows(old, new, told)
        report = await Audit(store=Store(new, None, clock, log), clock=clock, ids=ids).verify()
    if not report.ok:
        raise SetupError(f"The rows are copied, but the audit chain in them is broken: {report.reason}.")
    return Copied(rows, report.events)


async def copy_to_file(source: Database, path: str, *, clock: Clock, log: Log) -> None:
    """Write the state of a database into a new SQLite file, for its owner alone."""
    async with aclosing(await open_database(path, clock=clock, log=log)) as target:
        await copy_rows(source, target, lambda name, rows: None)


@asynccontextmanager
async def _opened(url: str, *, password_file: str | None, clock: Clock, log: Log) -> AsyncGenerator[Database]:
    path = _path(url)
    address = None if path else await to_thread.run_sync(partial(Address.parse, url, password_file=password_file))
    db = await open_database(path or "", clock=clock, log=log, address=address)
    try:
        yield db
    finally:
        with anyio.CancelScope(shield=True):
            await db.aclose()


def _check_source(path: str | None) -> None:
    """Refuse a file that is not there, or that a gateway has open."""
    if path is not None:
        if not os.path.isfile(path):
            raise SetupError(f"There is no database at {path}.", param="from")
        with database_file.exclusive(path):
            return


def _path(url: str) -> str | None:
    """Return the path of a SQLite database, None for another one."""
    if not url.startswith(_FILE):
        return None
    path = url.removeprefix(_FILE)
    return path.removeprefix("//") if path.startswith("///") else path
