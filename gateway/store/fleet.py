"""Store the gateways that share this database, their leases, and peers that have databases of their own."""

import json

from gateway.domain.fleet import Heartbeat, Lease, Peer
from gateway.store.database import LeaseLost, Transaction, insert_into
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
TAKE = insert_into("leases", ("name", "holder", "until_at", "number"), key=("name",))
NOTE_RUNNING = insert_into("running_gateways", ("instance_id", "seen_at", "facts"), key=("instance_id",))
RUNNING = "SELECT facts FROM running_gateways WHERE instance_id = :id AND seen_at >= :since"


class InstanceRepository(Table[Heartbeat]):
    """The gateways of this database, each with its last report about itself."""

    def __init__(self) -> None:
        super().__init__("instances", Heartbeat)

    def forget(self, tx: Transaction, *, before: int) -> None:
        tx.execute("DELETE FROM running_gateways WHERE seen_at < :before", {"before": before})
        tx.execute("DELETE FROM instances WHERE last_seen_at < :before", {"before": before})


class LeaseRepository:
    """The table of leases. The holder of a lease is the only process that may do the job of its name.

    The clock of the database decides how long. A lease that ends later than any can comes from a wrong clock, so it may
    be taken.
    """

    def known(self, tx: Transaction, name: str, holder: str, seconds: float) -> Lease | bool:
        """Return the lease if the holder has it, False if another has it, True when it is time to `take` it."""
        found = self._find(tx, name)
        if found is None:
            return True
        lease, left_ms = found
        if lease.holder == holder:
            return lease if round(seconds * 2000 / 3) < left_ms <= round(seconds * 1000) else True
        return not 0 < left_ms <= 10 * seconds * 1000

    def take(self, tx: Transaction, name: str, holder: str, seconds: float) -> Lease | None:
        """Take or renew a lease; None if another has it. The number rises with each take by another holder."""
        if not self.known(tx, name, holder, seconds):
            return None
        found = self._find(tx, name)
        number = 1 if found is None else found[0].number + (found[0].holder != holder)
        until_at = tx.now_at() + round(seconds * 1000)
        tx.execute(TAKE, {"name": name, "holder": holder, "until_at": until_at, "number": number})
        return Lease(name, holder, number)

    def check(self, tx: Transaction, lease: Lease) -> None:
        """Raise LeaseLost if another process has taken the lease since."""
        found = self._find(tx, lease.name)
        if found is None or found[0] != lease:
            raise LeaseLost(f"Another process does {lease.name} now, so this one gives its round up.")

    def _find(self, tx: Transaction, name: str) -> tuple[Lease, int] | None:
        """Return a lease and how many milliseconds it still lasts."""
        rows = tx.query("SELECT holder, until_at, number FROM leases WHERE name = :name", {"name": name})
        return next(((Lease(name, row["holder"], row["number"]), row["until_at"] - tx.now_at()) for row in rows), None)


class RunningRepository:
    """The table of what serving gateways report about their settings, for commands that check them from a shell."""

    def note(self, tx: Transaction, node_id: str, seen_at: int, facts: str) -> None:
        tx.execute(NOTE_RUNNING, {"instance_id": node_id, "seen_at": seen_at, "facts": facts})

    def find(self, tx: Transaction, node_id: str, *, since: int) -> str | None:
        """Return the facts that the gateway of a host has reported since a time, or None when there are none."""
        rows = tx.query(RUNNING, {"id": node_id, "since": since})
        return str(rows[0]["facts"]) if rows else None

    def forget(self, tx: Transaction, node_id: str) -> None:
        tx.execute("DELETE FROM running_gateways WHERE instance_id = :id", {"id": node_id})
