"""Every SQL statement about users."""

from gateway.domain.principals import Role
from gateway.domain.users import User
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_COLUMNS = "id, username, password_hash, role, created_at, disabled_at, version"
INSERT = f"""
    INSERT INTO users ({_COLUMNS})
    VALUES (:id, :username, :password_hash, :role, :created_at, :disabled_at, :version)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_COLUMNS} FROM users ORDER BY id"  # noqa: S608
BY_ID = f"SELECT {_COLUMNS} FROM users WHERE id = :id"  # noqa: S608
BY_NAME = f"SELECT {_COLUMNS} FROM users WHERE lower(username) = :folded"  # noqa: S608
CHANGE = """
    UPDATE users
       SET role = :role, disabled_at = :disabled_at, password_hash = :password_hash, version = version + 1
     WHERE id = :id
"""
COUNT = "SELECT COUNT(*) AS count FROM users"
COUNT_ACTIVE = "SELECT COUNT(*) AS count FROM users WHERE role = :role AND disabled_at IS NULL"


class UserRepository:
    """The table of users."""

    def insert(self, tx: AuthorityTransaction, user: User) -> None:
        """Insert a user whose name nobody has."""
        tx.change(
            INSERT,
            {
                "id": user.id,
                "username": user.username,
                "password_hash": user.password_hash,
                "role": user.role.value,
                "created_at": user.created_at,
                "disabled_at": user.disabled_at,
                "version": user.version,
            },
        )

    def by_id(self, tx: Transaction, user_id: str) -> User | None:
        """Return the user of this id."""
        rows = tx.query(BY_ID, {"id": user_id})
        return _user(rows[0]) if rows else None

    def by_name(self, tx: Transaction, username: str) -> User | None:
        """Return the user of this name, whatever the case of its letters. Names are ASCII, others find nobody."""
        if not username.isascii():
            return None
        rows = tx.query(BY_NAME, {"folded": username.lower()})
        return _user(rows[0]) if rows else None

    def change(self, tx: AuthorityTransaction, user: User) -> None:
        """Write role, password and whether the user is disabled, and raise the version."""
        tx.change(
            CHANGE,
            {
                "id": user.id,
                "role": user.role.value,
                "disabled_at": user.disabled_at,
                "password_hash": user.password_hash,
            },
        )

    def all(self, tx: Transaction) -> tuple[User, ...]:
        """Return all users, oldest first."""
        return tuple(_user(row) for row in tx.query(ALL))

    def count(self, tx: Transaction) -> int:
        """Return how many users there are, disabled ones included."""
        return int(tx.query(COUNT)[0]["count"])

    def count_active(self, tx: Transaction, role: Role) -> int:
        """Return how many users of a role may sign in."""
        return int(tx.query(COUNT_ACTIVE, {"role": role.value})[0]["count"])


def _user(row: Row) -> User:
    return User(
        id=row["id"],
        username=row["username"],
        password_hash=row["password_hash"],
        role=Role(row["role"]),
        created_at=row["created_at"],
        disabled_at=row["disabled_at"],
        version=row["version"],
    )
