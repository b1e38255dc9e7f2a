"""The transaction that changes authority: the tables that decide what a principal may do."""

from gateway.domain.principals import Caller
from gateway.store import meta
from gateway.store.database import Params, Transaction
from gateway.store.generation import Generation


class AuthorityTransaction(Transaction):
    """A transaction that may write tables of authority. Only `Audit.commit_authority` makes one.

    After the commit of a `change`, every process of this database reads authority again at its next request. The
    transaction also increments a count in the database, which every process polls. So they notice the change even if
    this process is killed before it increments the generation, and on other hosts.

    caller: who makes the change. has_changed: whether there was a `change`.
    is_audited: whether an audit event was appended.
    """

    def __init__(self, tx: Transaction, generation: Generation, caller: Caller) -> None:
        super().__init__(tx.run, tx.now_at)
        self.waiting, self.calls, self.memo = tx.waiting, tx.calls, tx.memo
        self.caller = caller
        self._generation = generation
        self.has_changed = self.is_audited = False

    def change(self, sql: str, params: Params) -> int:
        """Run a statement that writes a table of authority and return how many rows it changed."""
        if not self.has_changed:
            self.execute(meta.COUNT, {"name": meta.AUTHORITY})
            self.after_commit(self._generation.bump)
        self.has_changed = True
        return self.execute(sql, params)
