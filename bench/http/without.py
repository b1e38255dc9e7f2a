"""Run the gateway from its sources without a part of its work: the difference is what the part costs.

`python without.py FOLDER WHAT serve ...`, with a Python that has anyio, h11 and pyahocorasick. WHAT is one of:

- `nothing`: the gateway as it is.
- `shield`: no text is scanned, and nothing is found. Any version of the gateway since 06d11f8 can be run so.
- `event`: a plain chat has no audit event and waits for no commit, and its traffic row is written behind.
- `records`: nothing of a plain chat is written. What is written once in a while is, such as that an agent was seen:
  otherwise each later chat would cost more.
"""

import sys
from typing import Any


def main() -> int:
    """Take the part away and run the command."""
    sys.path.insert(0, sys.argv.pop(1))
    what = sys.argv.pop(1)
    if what == "shield":
        _leave_out_shield()
    elif what != "nothing":
        _leave_out_records(is_traffic_kept=what == "event")
    from gateway.__main__ import main as run

    return run()


def _leave_out_shield() -> None:
    from gateway.shield.engine import Shield
    from gateway.shield.scoring import DEFAULT_POLICY, nothing_found

    def scan(self: Shield, text: str, direction: Any, policy: Any = DEFAULT_POLICY) -> Any:
        return nothing_found(policy)

    Shield.scan = scan  # type: ignore[method-assign]


def _leave_out_records(*, is_traffic_kept: bool) -> None:
    from gateway.services.audit import Audit

    commit, append = Audit.commit, Audit.append

    async def unrecorded(self: Audit, work: Any, *, is_plain: bool = False) -> Any:
        if not is_plain:
            return await commit(self, work)
        if is_traffic_kept:
            self._store.db.write_behind(work)
        return None

    def unless_plain(self: Audit, tx: Any, event: Any) -> Any:
        return None if event.action == "chat_completed" else append(self, tx, event)

    Audit.append = unless_plain  # type: ignore[method-assign]
    Audit.commit = unrecorded  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
