"""Every SQL statement about leases: what one process at a time may do."""

from gateway.store.database import Transaction

HELD = "SELECT holder, until_at FROM leases WHERE name = :name"
TAKE = """
    INSERT INTO leases (name, holder, until_at) VALUES (:name, :holder, :until_at)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
        WHERE leases.holder = excluded.holder OR leases.until_at <= :now_at OR leases.until_at > :latest_at
"""


class LeaseRepository:
    """The table of leases."""

    def is_held(self, tx: Transaction, name: str, holder: str, *, now_at: int, until_at: int) -> bool | None:
        """Tell whether a lease is the holder's, or somebody else's; None when it is time to `take` it."""
        rows = tx.query(HELD, {"name": name})
        if not rows:
            return None
        held_until_at = int(rows[0]["until_at"])
        if rows[0]["holder"] == holder:
            return True if until_at - (until_at - now_at) // 3 < held_until_at <= until_at else None
        return False if now_at < held_until_at <= _latest(now_at, until_at) else None

    def take(self, tx: Transaction, name: str, holder: str, *, now_at: int, until_at: int) -> bool:
        """Take or renew a lease; tell whether it was had. One that ends later than any should is of a wrong clock."""
        params = {"name": name, "holder": holder, "now_at": now_at, "until_at": until_at}
        return tx.execute(TAKE, params | {"latest_at": _latest(now_at, until_at)}) == 1


def _latest(now_at: int, until_at: int) -> int:
    return now_at + 10 * (until_at - now_at)
