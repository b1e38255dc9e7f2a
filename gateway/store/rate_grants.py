"""Rate limits over all hosts that share a database: tokens are granted there and spent here.

A token is spent within `_LASTS_MS` of its grant, and counts against the limit for a minute after that. So no 60 seconds
have more calls than the limit, wherever the calls arrive. The clock of the database decides; this host only measures
how long a token has been here. A host asks for as many tokens as it has lately spent, so a small limit is granted one
by one and reached exactly. Tokens that nobody spent go back with the next question.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import anyio

from gateway.auth.ratelimit import WINDOW_SECONDS, Admission
from gateway.clock import Clock
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.engine import Database

_GRID_MS = 250  # grants of one quarter of a second are one row
_LASTS_MS = 1_000
_COUNTS_MS = round(WINDOW_SECONDS * 1000) + _LASTS_MS + _GRID_MS
_SHARE = 64  # a question asks for no more than this part of the limit
_MOST_KEYS = 10_000
_TRIES = 3

LEFT = "DELETE FROM rate_grants WHERE key_id = :key_id AND at <= :before"
GIVE_BACK = "UPDATE rate_grants SET granted = granted - :unspent WHERE key_id = :key_id AND at = :at"
COUNTED = """
    SELECT COALESCE(SUM(granted), 0) AS granted, COALESCE(MIN(at), 0) AS first_at
      FROM rate_grants WHERE key_id = :key_id AND granted > 0
"""
GRANT = """
    INSERT INTO rate_grants (key_id, at, granted) VALUES (:key_id, :at, :granted)
        ON CONFLICT (key_id, at) DO UPDATE SET granted = rate_grants.granted + excluded.granted
"""
PRUNE = "DELETE FROM rate_grants WHERE at <= :before"


@dataclass(frozen=True, slots=True)
class _Grant:
    """What the database granted. at: by its clock. remaining: what it had left. wait_ms: until the first one lapses."""

    tokens: int = 0
    at: int = 0
    remaining: int = 0
    wait_ms: int = 0


@dataclass(slots=True, eq=False)
class _Purse:
    """The last grant of a key to this process. spent: tokens of it. asked_seconds: by this host's monotonic clock."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    grant: _Grant = _Grant()
    spent: int = 0
    asked_seconds: float = 0.0


class RateGrants:
    """The rate windows of all keys, for the gateways of one database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._purses: dict[str, _Purse] = {}

    async def count(self, key_id: str, limit: int, clock: Clock) -> Admission:
        """Admit a call of `key_id` or not: never more than `limit` in any 60 seconds, over all hosts.

        Raises:
            StoreUnavailable: the database did not answer, or so late that a token had lapsed.
        """
        if key_id not in self._purses and len(self._purses) >= _MOST_KEYS:
            self._purses.clear()  # what was in them lapses
        purse = self._purses.setdefault(key_id, _Purse())
        async with purse.lock:  # one question at a time
            for _ in range(_TRIES):
                now_seconds, grant = clock.monotonic_seconds(), purse.grant
                age_ms = 1000 * (now_seconds - purse.asked_seconds)
                if not grant.tokens and age_ms < grant.wait_ms:
                    wait_seconds = math.ceil((grant.wait_ms - age_ms) / 1000)
                    return Admission(False, limit, 0, wait_seconds, wait_seconds)
                if purse.spent < grant.tokens and age_ms < _LASTS_MS:
                    purse.spent += 1
                    left = grant.remaining + grant.tokens - purse.spent
                    return Admission(True, limit, left, math.ceil(grant.wait_ms / 1000), 0)
                await self._fill(purse, key_id, limit, now_seconds)
        raise StoreUnavailable("The database grants calls too late.", retry_after_seconds=1)

    async def _fill(self, purse: _Purse, key_id: str, limit: int, now_seconds: float) -> None:
        """Ask for as many tokens as were lately spent, and give back the others."""
        last, purse.grant = purse.grant, _Grant()
        wanted, unspent = max(1, min(2 * purse.spent, limit // _SHARE)), max(0, last.tokens - purse.spent)
        work = partial(_ask, key_id, limit, wanted, last.at, unspent)
        purse.grant = await self._db.write(work, is_durable=False)
        purse.spent, purse.asked_seconds = 0, now_seconds


def _ask(key_id: str, limit: int, wanted: int, given_at: int, unspent: int, tx: Transaction) -> _Grant:
    """Give back what was not spent, and take what the limit leaves of `wanted`."""
    now_at = tx.now_at()
    if unspent:
        tx.execute(GIVE_BACK, {"key_id": key_id, "at": given_at, "unspent": unspent})
    tx.execute(LEFT, {"key_id": key_id, "before": now_at - _COUNTS_MS})
    counted = tx.query(COUNTED, {"key_id": key_id})[0]
    left = limit - int(counted["granted"])
    wait_ms = int(counted["first_at"]) + _COUNTS_MS - now_at if counted["granted"] else _COUNTS_MS
    tokens = max(0, min(wanted, left))
    at = now_at - now_at % _GRID_MS
    if tokens:
        tx.execute(GRANT, {"key_id": key_id, "at": at, "granted": tokens})
    return _Grant(tokens, at, max(0, left - tokens), wait_ms)


def prune(tx: Transaction) -> int:
    """Delete the grants that no longer count, of keys that nobody uses, and return how many."""
    return tx.execute(PRUNE, {"before": tx.now_at() - _COUNTS_MS})
