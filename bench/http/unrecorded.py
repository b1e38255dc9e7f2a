"""Run the archive's sources without the audit of chats: what it costs is the difference. Only for measuring.

`python unrecorded.py FOLDER WHAT serve ...`, with a Python that has anyio, h11 and pyahocorasick. WHAT is `event`:
plain chats have no audit event and wait for no commit, and their rows of traffic are written behind; or `all`: of plain
chats nothing is written. What is written once in a while, such as that a key was used or an agent was seen, is written
here too: what follows would cost more without.
"""

import sys
from typing import Any


def main() -> int:
    """Take the records of plain chats away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    what = sys.argv.pop(1)
    from gateway.__main__ import main as run
    from gateway.services.audit import Audit

    commit, append = Audit.commit, Audit.append

    async def unrecorded(self: Audit, work: Any, *, is_plain: bool = False) -> Any:
        if not is_plain:
            return await commit(self, work)
        if what == "event":
            self._store.db.write_behind(work)
        return None

    def unless_plain(self: Audit, tx: Any, event: Any) -> Any:
        return None if event.action == "chat_completed" else append(self, tx, event)

    Audit.append = unless_plain  # type: ignore[method-assign]
    Audit.commit = unrecorded  # type: ignore[method-assign]
    return run()


if __name__ == "__main__":
    sys.exit(main())
