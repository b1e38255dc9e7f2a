"""Every SQL statement about sign-in sessions. Knows digests, never a token."""

from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.principals import Role
from gateway.domain.sessions import IDLE_MS, MAX_SESSION_LIMIT, Session, SignedIn
from gateway.domain.users import User
from gateway.store.database import Row, Transaction
from gateway.store.filters import check_limit

_COLUMNS = "id, digest, user_id, created_at, last_seen_at, expires_at, ip, user_agent"
_OF_SESSION = ", ".join(f"s.{name}" for name in _COLUMNS.split(", "))
_OF_USER = "u.username, u.password_hash, u.role, u.created_at AS user_created_at, u.disabled_at, u.version"
_JOINED = f"SELECT {_OF_SESSION}, {_OF_USER} FROM sessions s JOIN users u ON u.id = s.user_id"  # noqa: S608
INSERT = f"""
    INSERT INTO sessions ({_COLUMNS})
    VALUES (:id, :digest, :user_id, :created_at, :last_seen_at, :expires_at, :ip, :user_agent)
"""  # noqa: S608  # our own column names
BY_DIGEST = f"{_JOINED} WHERE s.digest = :digest"
BY_ID = f"{_JOINED} WHERE s.id = :id"
PAGE = f"""{_JOINED}
     WHERE s.id < :before AND s.expires_at > :now_at AND s.last_seen_at > :idle_since
       AND s.user_id = COALESCE(:user_id, s.user_id)
     ORDER BY s.id DESC LIMIT :limit
"""
COUNT_LIVE = "SELECT COUNT(*) AS count FROM sessions WHERE expires_at > :now_at AND last_seen_at > :idle_since"
MARK_SEEN = "UPDATE sessions SET last_seen_at = :now_at WHERE id = :id AND last_seen_at < :now_at"
END = "DELETE FROM sessions WHERE id = :id"
END_OF_USER = "DELETE FROM sessions WHERE user_id = :user_id AND id <> :but_id"
PRUNE = "DELETE FROM sessions WHERE expires_at <= :now_at"


class SessionRepository:
    """The table of sessions. Every request looks its session up, so that an end holds at once and everywhere."""

    def insert(self, tx: Transaction, session: Session) -> None:
        """Insert a session, and drop those that are over."""
        tx.execute(PRUNE, {"now_at": session.created_at})
        tx.execute(INSERT, {name: getattr(session, name) for name in _COLUMNS.split(", ")})

    def by_digest(self, tx: Transaction, digest: str) -> SignedIn | None:
        """Return the session of the token with this SHA-256, over or not, and its user."""
        rows = tx.query(BY_DIGEST, {"digest": digest})
        return _signed_in(rows[0]) if rows else None

    def by_id(self, tx: Transaction, session_id: str) -> SignedIn | None:
        """Return the session of this id, over or not, and its user."""
        rows = tx.query(BY_ID, {"id": session_id})
        return _signed_in(rows[0]) if rows else None

    def page(
        self, tx: Transaction, *, now_at: int, user_id: str | None, limit: int, cursor: str | None
    ) -> Page[SignedIn]:
        """Return a part of the sessions that are not over, newest first; of one user, or of all.

        Raises:
            InvalidRequest: the limit or the cursor.
        """
        check_limit(limit, MAX_SESSION_LIMIT)
        query = ("sessions", user_id)
        before = id_at("ses", read_cursor(cursor, query, count=ID_NUMBERS)) if cursor else "ses`"
        values = {"before": before, "now_at": now_at, "idle_since": now_at - IDLE_MS, "user_id": user_id}
        rows = tx.query(PAGE, values | {"limit": limit + 1})
        items = tuple(_signed_in(row) for row in rows[:limit])
        after = write_cursor(query, position_of(items[-1].session.id)) if len(rows) > limit else None
        return Page(items, limit, after)

    def count_live(self, tx: Transaction, *, now_at: int) -> int:
        """Return how many sessions are not over."""
        return int(tx.query(COUNT_LIVE, {"now_at": now_at, "idle_since": now_at - IDLE_MS})[0]["count"])

    def mark_seen(self, tx: Transaction, session_id: str, *, now_at: int) -> None:
        """Note that the session was used."""
        tx.execute(MARK_SEEN, {"id": session_id, "now_at": now_at})

    def end(self, tx: Transaction, session_id: str) -> bool:
        """End one session and tell whether it was there."""
        return tx.execute(END, {"id": session_id}) == 1

    def end_of_user(self, tx: Transaction, user_id: str, *, but_id: str = "") -> int:
        """End the sessions of a user, but for one; return how many there were."""
        return tx.execute(END_OF_USER, {"user_id": user_id, "but_id": but_id})


def _signed_in(row: Row) -> SignedIn:
    session = Session(
        id=row["id"],
        digest=row["digest"],
        user_id=row["user_id"],
        created_at=row["created_at"],
        last_seen_at=row["last_seen_at"],
        expires_at=row["expires_at"],
        ip=row["ip"],
        user_agent=row["user_agent"],
    )
    user = User(
        id=row["user_id"],
        username=row["username"],
        password_hash=row["password_hash"],
        role=Role(row["role"]),
        created_at=row["user_created_at"],
        disabled_at=row["disabled_at"],
        version=row["version"],
    )
    return SignedIn(session, user)
