"""A signed-in user's session: how long it lasts and who acts in it. Knows no cookie."""

from dataclasses import dataclass

from gateway.domain.users import User

ABSOLUTE_MS = 12 * 3_600_000
IDLE_MS = 60 * 60_000
DEFAULT_SESSION_LIMIT = 100
MAX_SESSION_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Session:
    """What is stored of a session. All times in Unix milliseconds.

    digest: SHA-256 of what the browser holds. expires_at: the end, however busy it is. last_seen_at: noted every few
    seconds, so it may be that much behind. ip, user_agent: of the sign-in.
    """

    id: str
    digest: str
    user_id: str
    created_at: int
    last_seen_at: int
    expires_at: int
    ip: str | None = None
    user_agent: str | None = None

    def is_live(self, now_at: int) -> bool:
        """Tell whether the session still counts at `now_at`."""
        return now_at < self.expires_at and now_at < self.last_seen_at + IDLE_MS


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A live session and its user as the record stands now."""

    session: Session
    user: User
