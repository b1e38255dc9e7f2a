"""Copy a whole database while it is used. `database_file` puts one in the place of another."""

import os
from contextlib import suppress

from gateway.store.database import Database, StoreUnavailable
from gateway.store.filelock import sync
from gateway.store.migrations import MIGRATIONS, schema_number
from gateway.strict_json import write_time


def copy_database(db: Database, target: str) -> None:
    """Write a consistent, compact copy of `db` into a new file that only its owner may read. Blocks.

    Raises:
        FileExistsError: there is such a file. StoreUnavailable: the disk is full.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        db.copy_to(target)
        sync(target)
    except BaseException:
        os.unlink(target)
        raise


def copy_before_migration(db: Database, path: str, number: int, now_at: int) -> str:
    """Copy the database at `path`, of schema `number`, beside it, and return the path of the copy. Blocks.

    Raises:
        OSError, StoreUnavailable: there is no copy, so the schema must stay as it is.
    """
    stamp = write_time(now_at).replace("-", "").replace(":", "")
    target = f"{path}.schema-{number}-{stamp}"
    copy_database(db, target)
    return target


def drop_needless_copy(db: Database, target: str) -> None:
    """Remove the copy of `copy_before_migration` if the schema is unchanged: each try would leave another. Blocks."""
    with suppress(StoreUnavailable, OSError):  # a leftover copy only takes space
        if db.read_now(schema_number) < len(MIGRATIONS):
            os.unlink(target)
