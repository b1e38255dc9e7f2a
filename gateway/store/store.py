"""The repositories together, on one database."""

import os
from collections.abc import Callable

from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.store.access_list import AccessRepository
from gateway.store.agents import AgentRepository
from gateway.store.alerts import AlertRepository
from gateway.store.audit import AuditRepository
from gateway.store.audit_checkpoints import CheckpointRepository
from gateway.store.backup import copy_before_migration
from gateway.store.budgets import BudgetRepository
from gateway.store.captures import CaptureRepository
from gateway.store.database import Database, StoreUnavailable, Transaction
from gateway.store.event_outputs import EventOutputRepository
from gateway.store.feed import FeedRepository
from gateway.store.fleet import FleetRepository
from gateway.store.generation import Generation
from gateway.store.headfile import HeadFile
from gateway.store.keyfile import KeyFile
from gateway.store.keys import KeyRepository
from gateway.store.leases import LeaseRepository
from gateway.store.meta import MetaRepository
from gateway.store.migrations import migrate
from gateway.store.policies import PolicyRepository
from gateway.store.providers import ProviderRepository
from gateway.store.reports import ReportRepository
from gateway.store.risk_acceptances import RiskAcceptanceRepository
from gateway.store.rule_overrides import RuleOverrideRepository
from gateway.store.security_scans import SecurityScanRepository
from gateway.store.sessions import SessionRepository
from gateway.store.sign_in_failures import SignInFailureRepository
from gateway.store.sqlite import MEMORY, SqliteDatabase
from gateway.store.traffic import TrafficRepository
from gateway.store.trust_audits import TrustAuditRepository
from gateway.store.users import UserRepository


class Store:
    """One database and what is in it.

    db: for transactions over several tables. generation: moves with each change of authority.
    instance_id: under which the audit chain of this database's gateway is written; set by `open_store`.
    """

    def __init__(
        self,
        db: Database,
        *,
        generation: Generation | None = None,
        headfile: HeadFile | None = None,
        keyfile: KeyFile | None = None,
    ) -> None:
        self.db = db
        self.generation = generation or Generation(None)
        self.headfile = headfile or HeadFile(None)
        self.keyfile = keyfile or KeyFile(None)
        self.instance_id = ""
        self.meta = MetaRepository()
        self.keys = KeyRepository(self.generation)
        self.audit = AuditRepository(self.headfile)
        self.alerts = AlertRepository()
        self.agents = AgentRepository(self.generation)
        self.traffic = TrafficRepository()
        self.captures = CaptureRepository()
        self.leases = LeaseRepository()
        self.fleet = FleetRepository()
        self.users = UserRepository()
        self.sessions = SessionRepository()
        self.sign_in_failures = SignInFailureRepository()
        self.policies = PolicyRepository(self.generation)
        self.budgets = BudgetRepository(self.generation)
        self.risk_acceptances = RiskAcceptanceRepository(self.generation)
        self.access_list = AccessRepository(self.generation)
        self.providers = ProviderRepository(self.generation)
        self.trust_audits = TrustAuditRepository()
        self.checkpoints = CheckpointRepository()
        self.reports = ReportRepository()
        self.event_outputs = EventOutputRepository()
        self.security_scans = SecurityScanRepository()
        self.rule_overrides = RuleOverrideRepository(self.generation)
        self.feed = FeedRepository()

    async def aclose(self) -> None:
        """Write what is queued, then close everything."""
        await self.db.aclose()
        self.headfile.close()
        self.generation.close()


async def open_store(path: str | os.PathLike[str], *, clock: Clock, ids: Ids, log: Log) -> Store:
    """Make or open the database at `path`, or in memory when it is ``:memory:``, and bring its schema up to date.

    Beside the file lie, with its name before them: ``-wal`` and ``-shm`` (SQLite's), ``.lock`` and ``.lock.turn`` (one
    writer at a time), ``.generation`` (changes of authority), ``.head`` (the end of the audit chain),
    ``.provider-keys`` (keys of providers that were typed in), and a copy of the database from before each change of its
    schema, ``.schema-NUMBER-TIME``.

    Raises:
        SetupError: it cannot be used, is no database, another program's or a newer version's. Nothing was overwritten.
    """
    name = os.fspath(path)
    db = SqliteDatabase(name, log=log)
    await db.open()
    try:
        if name != MEMORY and (kept := await to_thread.run_sync(copy_before_migration, db, name, clock.now_at())):
            log.info("migration_backup", file=kept)
        await db.write(lambda tx: migrate(tx, now_at=clock.now_at()))
        store = await to_thread.run_sync(_beside, db, None if name == MEMORY else name)
        store.instance_id = await db.write(_settle(store, ids, log))
    except StoreUnavailable as error:
        await db.aclose()
        raise SetupError(f"The database {name} cannot be used: {error.message}") from error
    except OSError as error:
        await db.aclose()
        raise SetupError(f"A file beside {name} cannot be used ({error.strerror}).") from error
    except BaseException:
        await db.aclose()
        raise
    return store


def _beside(db: Database, path: str | None) -> Store:
    if path is None:
        return Store(db)
    return Store(
        db,
        generation=Generation(path + ".generation"),
        headfile=HeadFile(path + ".head"),
        keyfile=KeyFile(path + ".provider-keys"),
    )


def _settle(store: Store, ids: Ids, log: Log) -> Callable[[Transaction], str]:
    """Return the work that gives the database its id and compares the end of its chain with the file beside it."""

    def work(tx: Transaction) -> str:
        instance_id = store.meta.instance_id(tx, ids)
        store.traffic.origin = store.meta.origin(tx)
        noted = store.headfile.read(instance_id)
        if noted is None:
            head = store.audit.head(tx, instance_id)
            tx.after_commit("headfile", lambda is_durable: store.headfile.write(instance_id, head))
        elif store.audit.hash_at(tx, instance_id, noted.seq) != noted.hash:
            store.headfile.is_trusted = False
            log.error("audit_chain_cut", file=store.headfile.path, noted_seq=noted.seq)
        return instance_id

    return work
