"""Store users."""

from gateway.domain.principals import Role
from gateway.domain.users import User
from gateway.store.database import Transaction
from gateway.store.table import AuthorityTable


class UserRepository(AuthorityTable[User]):
    """The table of users."""

    def __init__(self) -> None:
        super().__init__("users", User, changes=("role", "disabled_at", "password_hash"))

    def by_name(self, tx: Transaction, username: str) -> User | None:
        """Return the user of this name, whatever its case. Names are ASCII, so any other text finds no user."""
        if not username.isascii():
            return None
        return self.one(tx, "WHERE lower(username) = :folded", folded=username.lower())

    def count_active(self, tx: Transaction, role: Role) -> int:
        """Count the users of a role who may sign in."""
        return self.count(tx, "WHERE role = :role AND disabled_at IS NULL", role=role.value)
