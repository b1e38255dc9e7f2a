"""The transaction in which authority changes: the tables that say who may do what. Knows no SQL."""

from gateway.store.database import Params, Transaction
from gateway.store.generation import Generation


class AuthorityTransaction:
    """A transaction that may write tables of authority. Only `Audit.commit_authority` makes one.

    After the commit of a `change`, every process of this database reads authority again at its next request.
    has_changed: whether there was a `change`. is_audited: whether an audit event was appended.
    """

    def __init__(self, tx: Transaction, generation: Generation) -> None:
        self._generation = generation
        self.memo = tx.memo
        self.execute, self.query, self.add = tx.execute, tx.query, tx.add
        self.before_commit, self.after_commit = tx.before_commit, tx.after_commit
        self.has_changed = self.is_audited = False

    def change(self, sql: str, params: Params) -> int:
        """Run a statement that writes a table of authority and return how many rows it changed."""
        self.has_changed = True
        self.after_commit("generation", self._generation.bump)
        return self.execute(sql, params)
