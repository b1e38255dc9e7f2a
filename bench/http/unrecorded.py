"""Run the archive's sources without the audit of chats: what it costs is the difference. Only for measuring.

`python unrecorded.py FOLDER WHAT serve ...`, with a Python that has anyio, h11 and pyahocorasick. WHAT is `event`:
plain chats have no audit event and wait for no commit, and their rows of traffic are written behind; or `all`: of plain
chats nothing is written. What is written once in a while, such as that a key was used or an agent was seen, is written
here too: what follows would cost more without.
"""

import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.store.plain_chats import PlainChat


def main() -> int:
    """Take the records of plain chats away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    what = sys.argv.pop(1)
    from gateway.__main__ import main as run
    from gateway.services.audit import NOTED, Audit
    from gateway.store.traffic import ROWS

    if not hasattr(Audit, "chat"):
        sys.exit("unrecorded.py: chats are recorded by other means than those that are taken away here")

    def chat(self: Audit, chat: "PlainChat", *, chats: int) -> Awaitable[None]:
        if what == "event":
            self._store.db.write_behind(lambda tx: tx.add(ROWS, chat.values), is_brief=True)
        return NOTED

    Audit.chat = chat  # type: ignore[method-assign]
    return run()


if __name__ == "__main__":
    sys.exit(main())
