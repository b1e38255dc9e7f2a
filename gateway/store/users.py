"""Every SQL statement about users."""

from gateway.domain.principals import Role
from gateway.domain.users import User
from gateway.store.database import Row, Transaction

_COLUMNS = "id, username, password_hash, role, created_at, disabled_at"
INSERT = f"""
    INSERT INTO users ({_COLUMNS})
    VALUES (:id, :username, :password_hash, :role, :created_at, :disabled_at)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_COLUMNS} FROM users ORDER BY id"  # noqa: S608
COUNT = "SELECT COUNT(*) AS count FROM users"


class UserRepository:
    """The table of users."""

    def insert(self, tx: Transaction, user: User) -> None:
        """Insert a user whose name nobody has."""
        tx.execute(
            INSERT,
            {
                "id": user.id,
                "username": user.username,
                "password_hash": user.password_hash,
                "role": user.role.value,
                "created_at": user.created_at,
                "disabled_at": user.disabled_at,
            },
        )

    def all(self, tx: Transaction) -> tuple[User, ...]:
        """Return all users, oldest first."""
        return tuple(_user(row) for row in tx.query(ALL))

    def count(self, tx: Transaction) -> int:
        """Return how many users there are, disabled ones included."""
        return int(tx.query(COUNT)[0]["count"])


def _user(row: Row) -> User:
    return User(
        id=row["id"],
        username=row["username"],
        password_hash=row["password_hash"],
        role=Role(row["role"]),
        created_at=row["created_at"],
        disabled_at=row["disabled_at"],
    )
