"""What this process has loaded of the tables of authority, and when it must load them again. Knows no SQL.

Every request calls `follow` before anything is decided. A change in any process of this host moves the generation, so
the next request loads all again. Requests that come meanwhile wait for the same load. What does not move the generation
moves the count of changes in the database: a process of another host, or one that was killed after its commit. A job
reads the count every `POLL_SECONDS`. If it could not for `FRESH_SECONDS`, the request reads the count itself. Without
an answer the request is refused: nothing is decided by what may be out of date.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

from gateway.clock import Clock
from gateway.domain.access_list import AccessEntry
from gateway.domain.budgets import Budget
from gateway.domain.detectors import Detector
from gateway.domain.local_rules import LocalRule
from gateway.domain.policies import RuleOverride, ShieldPolicy
from gateway.domain.providers import Provider
from gateway.domain.risk_acceptances import RiskAcceptance
from gateway.store import tables
from gateway.store.budgets import BudgetRepository
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.engine import Database
from gateway.store.generation import Generation
from gateway.store.meta import AUTHORITY, MetaRepository

POLL_SECONDS = 0.25
FRESH_SECONDS = 1.0
ANSWER_SECONDS = 5.0
_META, _BUDGETS = MetaRepository(), BudgetRepository()


@dataclass(frozen=True, slots=True, eq=False)
class Authority:
    """One state of the tables of authority. Keys and users are looked up one by one instead.

    generation: of the store, read before the tables. changes: the count of changes in the database, None before the
    first one. policies: by id. blocked: ids of blocked agents by folded name. local_rules: the stored rules.
    """

    generation: int
    changes: str | None
    access_entries: Sequence[AccessEntry]
    acceptances: Sequence[RiskAcceptance]
    blocked: Mapping[str, str]
    budgets: Sequence[Budget]
    detectors: Sequence[Detector]
    local_rules: tuple[LocalRule, ...]
    overrides: Sequence[RuleOverride]
    policies: Mapping[str, ShieldPolicy]
    providers: Sequence[Provider]


class FollowedAuthority:
    """The authority of this process. answer_seconds: the longest that a request waits for the database."""

    def __init__(self, db: Database, generation: Generation, clock: Clock) -> None:
        self._db = db
        self._generation = generation
        self._clock = clock
        self._loaded: Authority | None = None
        self._read_seconds = 0.0
        self._lock = anyio.Lock()
        self.answer_seconds = ANSWER_SECONDS

    @property
    def now(self) -> Authority:
        """What the last `follow` returned, another object after each change. Raises StoreUnavailable before that."""
        if self._loaded is None:
            raise StoreUnavailable("Nothing was read from the database yet.", retry_after_seconds=1)
        return self._loaded

    async def follow(self, fresh_seconds: float = FRESH_SECONDS) -> Authority:
        """Load all again if something has changed. Costs two comparisons if nothing has.

        fresh_seconds: how old the last answer of the database may be.

        Raises:
            StoreUnavailable: the database cannot be read, or it did not answer in time.
        """
        if self._is_current(fresh_seconds):
            return self.now
        with anyio.move_on_after(self.answer_seconds):
            async with self._lock:
                if not self._is_current(fresh_seconds):
                    await self._load()
            return self.now
        raise StoreUnavailable("The database did not answer in time; nothing was decided.", retry_after_seconds=5)

    async def poll(self) -> None:
        """Ask the database for changes. If it does not answer, the next request notices."""
        with suppress(StoreUnavailable):
            await self.follow(fresh_seconds=0.0)

    def _is_current(self, fresh_seconds: float) -> bool:
        loaded = self._loaded
        if loaded is None or loaded.generation != self._generation.value():
            return False
        return self._clock.monotonic_seconds() - self._read_seconds < fresh_seconds

    async def _load(self) -> None:
        """Read what has changed. Generation and time are read first, so that a later change causes another load."""
        known, generation = self._loaded, self._generation.value()
        asked_seconds, now_at = self._clock.monotonic_seconds(), self._clock.now_at()
        loaded = await self._db.read(lambda tx: _read(tx, known, generation, now_at), is_quick=True)
        if known is not None and known.generation == generation and known.changes != loaded.changes:
            self._generation.bump()  # nobody told this host, so tell its other processes
        self._loaded, self._read_seconds = loaded, asked_seconds


def _read(tx: Transaction, known: Authority | None, generation: int, now_at: int) -> Authority:
    """Return `known` if nothing has changed since. An access list without a change is not read again: it may be long.

    An acceptance that ended before `now_at` is left out.
    """
    changes = _META.get(tx, AUTHORITY)
    if known is not None and (known.generation, known.changes) == (generation, changes):
        return known
    entries = () if known is None else known.access_entries
    if tuple((entry.id, entry.version) for entry in entries) != tables.ACCESS_LIST.versions(tx):
        entries = tables.ACCESS_LIST.all(tx)
    return Authority(
        generation=generation,
        changes=changes,
        access_entries=entries,
        acceptances=tables.RISK_ACCEPTANCES.active(tx, now_at=now_at),
        blocked=tables.AGENTS.blocked(tx),
        budgets=_BUDGETS.all(tx),
        detectors=tables.DETECTORS.all(tx),
        local_rules=tables.LOCAL_RULES.all(tx),
        overrides=tables.RULE_OVERRIDES.all(tx),
        policies={record.id: record.shield_policy() for record in tables.POLICIES.all(tx)},
        providers=tables.PROVIDERS.all(tx),
    )
