"""Run the archive's sources with no chat recorded: what the audit costs is the difference. Only for measuring.

`python unrecorded.py FOLDER serve ...`, with a Python that has anyio, h11 and pyahocorasick. What is written once in a
while, such as that a key was used or an agent was seen, is written here too: what follows would cost more without.
"""

import sys
from collections.abc import Callable
from typing import Any


def main() -> int:
    """Take the records of plain chats away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    from gateway.__main__ import main as run
    from gateway.services.audit import Audit

    commit = Audit.commit
    Audit.note = lambda self, event, row, *, chats: True  # type: ignore[method-assign]

    async def unless_plain(self: Audit, work: Callable[..., Any], *, is_plain: bool = False, **_: Any) -> Any:
        return None if is_plain else await commit(self, work)

    Audit.commit = unless_plain  # type: ignore[method-assign]
    return run()


if __name__ == "__main__":
    sys.exit(main())
