"""Run the archive's sources without the audit of chats: what it costs is the difference. Only for measuring.

`python unrecorded.py FOLDER WHAT serve ...`, with a Python that has anyio, h11 and pyahocorasick. WHAT is `event`:
plain chats have no audit event and wait for no commit, and their rows of traffic are written behind; or `all`: of plain
chats nothing is written. What is written once in a while, such as that a key was used or an agent was seen, is written
here too: what follows would cost more without.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.domain.audit import AuditEvent
    from gateway.domain.traffic import TrafficRow


def main() -> int:
    """Take the records of plain chats away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    what = sys.argv.pop(1)
    from gateway.__main__ import main as run
    from gateway.services.audit import Audit

    commit = Audit.commit

    def note(self: Audit, event: "AuditEvent", row: "TrafficRow", *, chats: int) -> bool:
        if what == "event":
            traffic = self._store.traffic
            self._store.db.write_behind(lambda tx: traffic.insert(tx, row), is_brief=True)
        return True

    async def unless_plain(self: Audit, work: Callable[..., Any], *, is_plain: bool = False, **_: Any) -> Any:
        return None if is_plain else await commit(self, work)

    Audit.note = note  # type: ignore[method-assign]
    Audit.commit = unless_plain  # type: ignore[method-assign]
    return run()


if __name__ == "__main__":
    sys.exit(main())
