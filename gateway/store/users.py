"""Store users."""

from gateway.domain.principals import Role
from gateway.domain.users import User
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import AuthorityTable

USERS = AuthorityTable("users", User, changes=("role", "disabled_at", "password_hash"))
BY_NAME = USERS.select("WHERE lower(username) = :folded")


class UserRepository:
    """The table of users."""

    def insert(self, tx: AuthorityTransaction, user: User) -> None:
        """Insert a user with a name that is not taken."""
        USERS.insert(tx, user)

    def by_id(self, tx: Transaction, user_id: str) -> User | None:
        """Return the user of this id."""
        return USERS.find(tx, user_id)

    def by_name(self, tx: Transaction, username: str) -> User | None:
        """Return the user of this name, whatever its case. Names are ASCII, so any other text finds no user."""
        return USERS.one(tx, BY_NAME, folded=username.lower()) if username.isascii() else None

    def change(self, tx: AuthorityTransaction, user: User) -> None:
        """Write role, password and whether the user is disabled, and raise the version."""
        USERS.update(tx, user)

    def all(self, tx: Transaction) -> tuple[User, ...]:
        """Return all users, oldest first."""
        return USERS.all(tx)

    def count(self, tx: Transaction) -> int:
        """Count all users, including disabled ones."""
        return USERS.count(tx)

    def count_active(self, tx: Transaction, role: Role) -> int:
        """Count the users of a role who may sign in."""
        return USERS.count(tx, "WHERE role = :role AND disabled_at IS NULL", role=role.value)
