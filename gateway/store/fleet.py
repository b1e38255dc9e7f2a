"""Every SQL statement about instances and peers."""

import json
from dataclasses import fields

from gateway.domain.fleet import Heartbeat, InstanceStatus, Peer
from gateway.store.database import Row, Transaction

_BEAT = tuple(field.name for field in fields(Heartbeat))
_PEER = tuple("answer" if field.name == "instances" else field.name for field in fields(Peer))
_PEER_NAMES = ", ".join(_PEER)
BEAT = f"""
    INSERT INTO instances ({", ".join(_BEAT)}) VALUES ({", ".join(":" + name for name in _BEAT)})
        ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _BEAT if name != "id")}
"""  # noqa: S608  # our own column names
INSTANCES = f"SELECT {', '.join(_BEAT)} FROM instances ORDER BY id"  # noqa: S608
FORGET = "DELETE FROM instances WHERE last_seen_at < :before"
INSERT_PEER = f"""
    INSERT INTO fleet_peers ({_PEER_NAMES}) VALUES ({", ".join(":" + name for name in _PEER)})
"""  # noqa: S608
PEERS = f"SELECT {_PEER_NAMES} FROM fleet_peers ORDER BY id"  # noqa: S608
NOTE_PEER = """
    UPDATE fleet_peers SET asked_at = :asked_at, answered_at = :answered_at, problem = :problem, answer = :answer
     WHERE id = :id
"""
REMOVE_PEER = "DELETE FROM fleet_peers WHERE id = :id"


class FleetRepository:
    """The tables of instances and peers."""

    def beat(self, tx: Transaction, beat: Heartbeat) -> None:
        """Write what a gateway says of itself in place of what it said before."""
        tx.execute(BEAT, {name: getattr(beat, name) for name in _BEAT})

    def instances(self, tx: Transaction) -> tuple[Heartbeat, ...]:
        """Return all gateways of this database, oldest first."""
        return tuple(_beat(row) for row in tx.query(INSTANCES))

    def forget(self, tx: Transaction, *, before: int) -> int:
        """Delete the gateways that were not heard of since a time; return how many."""
        return tx.execute(FORGET, {"before": before})

    def insert_peer(self, tx: Transaction, peer: Peer) -> None:
        """Insert a peer.

        Raises:
            Conflict: its name is taken.
        """
        tx.execute(INSERT_PEER, _values(peer))

    def peers(self, tx: Transaction) -> tuple[Peer, ...]:
        """Return all peers, oldest first."""
        return tuple(_peer(row) for row in tx.query(PEERS))

    def note_peer(self, tx: Transaction, peer: Peer) -> bool:
        """Write what came of asking a peer; tell whether it is still there."""
        values = _values(peer)
        names = ("id", "asked_at", "answered_at", "problem", "answer")
        return tx.execute(NOTE_PEER, {name: values[name] for name in names}) == 1

    def remove_peer(self, tx: Transaction, peer_id: str) -> None:
        """Delete a peer."""
        tx.execute(REMOVE_PEER, {"id": peer_id})


def _beat(row: Row) -> Heartbeat:
    values = {name: row[name] for name in _BEAT}
    values["status"] = InstanceStatus(values["status"])
    return Heartbeat(**values)


def _values(peer: Peer) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(peer, name) for name in _PEER if name != "answer"}
    values["allow_private"] = int(peer.allow_private)
    values["answer"] = json.dumps(peer.instances, ensure_ascii=False, separators=(",", ":")) if peer.instances else None
    return values


def _peer(row: Row) -> Peer:
    values = {name: row[name] for name in _PEER if name != "answer"}
    values["allow_private"] = bool(values["allow_private"])
    return Peer(**values, instances=tuple(json.loads(row["answer"])) if row["answer"] else ())
