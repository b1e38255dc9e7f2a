"""Run the archive's sources with nothing recorded: what the audit costs is the difference. Only for measuring.

`python unrecorded.py FOLDER serve ...`, with a Python that has anyio, h11 and pyahocorasick.
"""

import sys


async def nothing_awaited(self: object, *given: object, **named: object) -> None:
    """Stand for a write that is waited for."""


async def as_it_is(self: object, event: object) -> object:
    """Stand for the record of one event."""
    return event


def nothing(self: object, *given: object, **named: object) -> None:
    """Stand for a write that nobody waits for."""


def main() -> int:
    """Take the writes away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    from gateway.__main__ import main as run
    from gateway.services.audit import Audit
    from gateway.store.sqlite import SqliteDatabase

    Audit.commit = nothing_awaited  # type: ignore[method-assign,assignment]
    Audit.record = as_it_is  # type: ignore[method-assign,assignment]
    SqliteDatabase.write_behind = nothing  # type: ignore[method-assign]
    return run()


if __name__ == "__main__":
    sys.exit(main())
