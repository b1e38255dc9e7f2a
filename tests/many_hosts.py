"""Gateways with data folders of their own on one database, as on several hosts."""

from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock
from gateway.store import store
from gateway.store.sqlite import SqliteDatabase


def share(monkeypatch: pytest.MonkeyPatch, file: Path, clock: Clock) -> None:
    """Let every store that is opened from now on use the database `file`, whose clock is `clock`."""

    class SharedDatabase(SqliteDatabase):
        """A file that has the place of a database server."""

        is_shared = True

        def __init__(self, path: str, **more: Any) -> None:
            super().__init__(str(file), **(more | {"clock": clock}))

    file.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(store, "SqliteDatabase", SharedDatabase)
