"""Store sign-in sessions and failed sign-ins. The tables hold digests and never a token or a password."""

from dataclasses import dataclass

from gateway.domain.paging import Page
from gateway.domain.users import MAX_SESSION_LIMIT, SESSION_IDLE_MS, Session, SessionFilter, SignedIn
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import Table
from gateway.store.tables import USERS

_USER = "(SELECT lower(username) FROM users WHERE users.id = sessions.user_id)"
SORTS = {"user": _USER, "created": "created_at", "last_seen": "last_seen_at", "expires": "expires_at"}
SESSIONS = Table("sessions", Session, sorts=SORTS, page_limit=MAX_SESSION_LIMIT)
BY_DIGEST = "WHERE digest = :digest"
_IS_LIVE = "expires_at > :now_at AND last_seen_at > :idle_since"
MARK_SEEN = "UPDATE sessions SET last_seen_at = :now_at WHERE id = :id AND last_seen_at < :now_at"
END_OF_USER = "DELETE FROM sessions WHERE user_id = :user_id AND id <> :but_id"


class SessionRepository:
    """The table of sessions. Every request looks its session up, so that a sign-out holds at once and everywhere."""

    def insert(self, tx: Transaction, session: Session) -> None:
        """Insert a session, and delete those that have expired."""
        tx.execute("DELETE FROM sessions WHERE expires_at <= :now_at", {"now_at": session.created_at})
        SESSIONS.insert(tx, session)

    def by_digest(self, tx: Transaction, digest: str) -> SignedIn | None:
        return _signed_in(tx, SESSIONS.one(tx, BY_DIGEST, digest=digest))

    def by_id(self, tx: Transaction, session_id: str) -> SignedIn | None:
        return _signed_in(tx, SESSIONS.by_id(tx, session_id))

    def page(self, tx: Transaction, wanted: SessionFilter, *, now_at: int) -> Page[SignedIn]:
        where = Where()
        where.add(_IS_LIVE, now_at=now_at, idle_since=now_at - SESSION_IDLE_MS)
        where.match(wanted, "user_id")
        found = SESSIONS.page(tx, wanted, where)
        signed_in = (_signed_in(tx, session) for session in found.items)
        return Page(tuple(one for one in signed_in if one is not None), found.limit, found.next, found.total)

    def count_live(self, tx: Transaction, *, now_at: int) -> int:
        return SESSIONS.count(tx, f"WHERE {_IS_LIVE}", now_at=now_at, idle_since=now_at - SESSION_IDLE_MS)

    def mark_seen(self, tx: Transaction, session_id: str, *, now_at: int) -> None:
        tx.execute(MARK_SEEN, {"id": session_id, "now_at": now_at})

    def end(self, tx: Transaction, session_id: str) -> bool:
        return SESSIONS.remove(tx, session_id)

    def end_of_user(self, tx: Transaction, user_id: str, *, but_id: str = "") -> int:
        return tx.execute(END_OF_USER, {"user_id": user_id, "but_id": but_id})


def _signed_in(tx: Transaction, session: Session | None) -> SignedIn | None:
    user = None if session is None else USERS.by_id(tx, session.user_id)
    return None if session is None or user is None else SignedIn(session, user)


FORGET_FAILURES = "DELETE FROM sign_in_failures WHERE account = :account AND network = :network"


@dataclass(frozen=True, slots=True)
class SignInOrigin:
    """Who tried to sign in, and from where.

    account: SHA-256 of the name as typed. network: what `network_of` of the throttle returned.
    """

    account: str
    network: str


class SignInFailureRepository(Table[SignInOrigin]):
    """The table of failed sign-ins, each with its time. An attempt counts before its password is checked."""

    def __init__(self) -> None:
        super().__init__("sign_in_failures", SignInOrigin, key="account", extra=("failed_at",))

    def times(
        self, tx: Transaction, network: str, *, account: str | None = None, since: int, limit: int
    ) -> tuple[int, ...]:
        """Return the times of the last failures from a network, of one account or of all, newest first."""
        where = Where()
        where.add("network = :network AND failed_at > :since", network=network, since=since)
        where.add("account = :account", account=account)
        sql = f"SELECT failed_at FROM sign_in_failures{where.sql()} ORDER BY failed_at DESC LIMIT :limit"  # noqa: S608
        return tuple(int(row["failed_at"]) for row in tx.query(sql, where.params | {"limit": limit}))

    def forget(self, tx: Transaction, origin: SignInOrigin) -> None:
        tx.execute(FORGET_FAILURES, {"account": origin.account, "network": origin.network})

    def prune(self, tx: Transaction, *, before: int) -> None:
        tx.execute("DELETE FROM sign_in_failures WHERE failed_at <= :before", {"before": before})
