"""Store the gateways that share this database, their leases, and peers that have databases of their own."""

import json

from gateway.domain.fleet import Heartbeat, Peer
from gateway.store.database import Transaction
from gateway.store.table import Codec, Table
from gateway.strict_json import json_text

PEERS = Table(
    "fleet_peers",
    Peer,
    columns={"instances": "answer"},
    codecs={
        "instances": Codec(
            lambda instances: json_text(instances) if instances else None,
            lambda text: tuple(json.loads(text)) if text else (),
        )
    },
    changes=("asked_at", "answered_at", "problem", "instances"),
)
TAKE = """
    INSERT INTO leases (name, holder, until_at) VALUES (:name, :holder, :until_at)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
        WHERE leases.holder = excluded.holder OR leases.until_at <= :now_at OR leases.until_at > :latest_at
"""
NOTE_RUNNING = """
    INSERT INTO running_gateways (instance_id, seen_at, facts) VALUES (:id, :seen_at, :facts)
        ON CONFLICT (instance_id) DO UPDATE SET seen_at = excluded.seen_at, facts = excluded.facts
"""
RUNNING = "SELECT facts FROM running_gateways WHERE instance_id = :id AND seen_at >= :since"


class InstanceRepository(Table[Heartbeat]):
    """The gateways of this database, each with its last report about itself."""

    def __init__(self) -> None:
        super().__init__("instances", Heartbeat)

    def forget(self, tx: Transaction, *, before: int) -> None:
        tx.execute("DELETE FROM running_gateways WHERE seen_at < :before", {"before": before})
        tx.execute("DELETE FROM instances WHERE last_seen_at < :before", {"before": before})


class LeaseRepository:
    """The table of leases. The holder of a lease is the only process that may do the job of its name."""

    def is_held(self, tx: Transaction, name: str, holder: str, *, now_at: int, until_at: int) -> bool | None:
        """Return whether the holder has a lease, or another process has it; None when it is time to `take` it."""
        rows = tx.query("SELECT holder, until_at FROM leases WHERE name = :name", {"name": name})
        if not rows:
            return None
        held_until_at = int(rows[0]["until_at"])
        if rows[0]["holder"] == holder:
            return True if until_at - (until_at - now_at) // 3 < held_until_at <= until_at else None
        return False if now_at < held_until_at <= now_at + 10 * (until_at - now_at) else None

    def take(self, tx: Transaction, name: str, holder: str, *, now_at: int, until_at: int) -> bool:
        """Take or renew a lease and return whether the holder has it now.

        A lease that ends later than any can comes from a wrong clock, so it may be taken.
        """
        params = {"name": name, "holder": holder, "now_at": now_at, "until_at": until_at}
        return tx.execute(TAKE, params | {"latest_at": now_at + 10 * (until_at - now_at)}) == 1


class RunningRepository:
    """The table of what serving gateways report about their settings, for commands that check them from a shell."""

    def note(self, tx: Transaction, node_id: str, seen_at: int, facts: str) -> None:
        tx.execute(NOTE_RUNNING, {"id": node_id, "seen_at": seen_at, "facts": facts})

    def find(self, tx: Transaction, node_id: str, *, since: int) -> str | None:
        """Return the facts that the gateway of a host has reported since a time, or None when there are none."""
        rows = tx.query(RUNNING, {"id": node_id, "since": since})
        return str(rows[0]["facts"]) if rows else None

    def forget(self, tx: Transaction, node_id: str) -> None:
        tx.execute("DELETE FROM running_gateways WHERE instance_id = :id", {"id": node_id})
