"""Find new rows of traffic and alerts for the live feed of the dashboard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.store.database import Transaction

Item = Mapping[str, object]
"""One new row by the names of its columns. Times are Unix milliseconds."""

_OF_TRAFFIC = (
    "id", "occurred_at", "operation", "verdict", "score", "action", "status", "agent", "key_prefix", "model",
)  # fmt: skip
_OF_ALERTS = ("id", "last_seen_at", "severity", "status", "source", "rule", "title", "count")
TRAFFIC = f"""
    SELECT position, {", ".join(_OF_TRAFFIC)}
      FROM traffic WHERE position > :position ORDER BY position DESC LIMIT :limit
"""  # noqa: S608  # our own column names
ALERTS = f"""
    SELECT {", ".join(_OF_ALERTS)}
      FROM alerts WHERE last_seen_at > :last_seen_at ORDER BY last_seen_at LIMIT :limit
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class News:
    """New rows, oldest first, and how far they reach. When there are too many at once, only the newest are there."""

    position: int
    last_seen_at: int
    traffic: Sequence[Item] = ()
    alerts: Sequence[Item] = ()


def news_since(tx: Transaction, seen: News, *, limit: int) -> News:
    """Return the rows after `seen`."""
    traffic = tx.query(TRAFFIC, {"position": seen.position, "limit": limit})
    alerts = tx.query(ALERTS, {"last_seen_at": seen.last_seen_at, "limit": limit})
    return News(
        position=int(traffic[0]["position"]) if traffic else seen.position,
        last_seen_at=int(alerts[-1]["last_seen_at"]) if alerts else seen.last_seen_at,
        traffic=tuple({name: row[name] for name in _OF_TRAFFIC} for row in reversed(traffic)),
        alerts=tuple({name: row[name] for name in _OF_ALERTS} for row in alerts),
    )
