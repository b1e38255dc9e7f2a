"""The repositories together, on one database."""

import glob
import os
from collections.abc import Callable, Mapping

from anyio import to_thread

from gateway.assembly import Assembly
from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.store import (
    access_list,
    agents,
    alerts,
    audit,
    audit_checkpoints,
    budgets,
    captures,
    event_outputs,
    feed,
    fleet,
    keys,
    leases,
    meta,
    old_redo,
    policies,
    providers,
    reports,
    risk_acceptances,
    rule_overrides,
    running,
    security_scans,
    sessions,
    sign_in_failures,
    traffic,
    trust_audits,
    users,
)
from gateway.store.backup import copy_before_migration, drop_needless_copy
from gateway.store.database import Database, StoreUnavailable, Transaction
from gateway.store.driver import MEMORY
from gateway.store.generation import Generation
from gateway.store.headfile import HeadFile
from gateway.store.keyfile import KeyFile
from gateway.store.migrations import migrate
from gateway.store.place import Identity
from gateway.store.sqlite import SqliteDatabase


class Store(Assembly):
    """One database and what is in it, a repository for each noun, made when it is first asked for.

    db: for transactions over several tables. generation: moves with each change of authority.
    instance_id: under which the audit chain of this database's gateway is written; origin: of what it holds, if not
    production. Both are set by `open_store`.
    """

    meta: "meta.MetaRepository"
    keys: "keys.KeyRepository"
    audit: "audit.AuditRepository"
    alerts: "alerts.AlertRepository"
    agents: "agents.AgentRepository"
    traffic: "traffic.TrafficRepository"
    captures: "captures.CaptureRepository"
    leases: "leases.LeaseRepository"
    fleet: "fleet.FleetRepository"
    running: "running.RunningRepository"
    users: "users.UserRepository"
    sessions: "sessions.SessionRepository"
    sign_in_failures: "sign_in_failures.SignInFailureRepository"
    policies: "policies.PolicyRepository"
    budgets: "budgets.BudgetRepository"
    risk_acceptances: "risk_acceptances.RiskAcceptanceRepository"
    access_list: "access_list.AccessRepository"
    providers: "providers.ProviderRepository"
    trust_audits: "trust_audits.TrustAuditRepository"
    checkpoints: "audit_checkpoints.CheckpointRepository"
    reports: "reports.ReportRepository"
    event_outputs: "event_outputs.EventOutputRepository"
    security_scans: "security_scans.SecurityScanRepository"
    rule_overrides: "rule_overrides.RuleOverrideRepository"
    feed: "feed.FeedRepository"

    def __init__(
        self,
        db: Database,
        *,
        generation: Generation | None = None,
        headfile: HeadFile | None = None,
        keyfile: KeyFile | None = None,
    ) -> None:
        super().__init__(_REPOSITORIES, {})
        self.db = db
        self.generation = generation or Generation(None)
        self.headfile = headfile or HeadFile(None)
        self.keyfile = keyfile or KeyFile(None)
        db.at_sync(self.headfile.take)
        self.instance_id = ""
        self.origin: str | None = None

    async def aclose(self) -> None:
        """Write what is queued, then close everything. Raises what `Database.aclose` raises."""
        try:
            await self.db.aclose()
        finally:
            self.headfile.close()
            self.generation.close()


_REPOSITORIES: Mapping[str, Callable[["Store"], object]] = {
    "meta": lambda store: meta.MetaRepository(),
    "keys": lambda store: keys.KeyRepository(),
    "audit": lambda store: audit.AuditRepository(store.headfile),
    "alerts": lambda store: alerts.AlertRepository(),
    "agents": lambda store: agents.AgentRepository(),
    "traffic": lambda store: traffic.TrafficRepository(store.origin),
    "captures": lambda store: captures.CaptureRepository(),
    "leases": lambda store: leases.LeaseRepository(),
    "fleet": lambda store: fleet.FleetRepository(),
    "running": lambda store: running.RunningRepository(),
    "users": lambda store: users.UserRepository(),
    "sessions": lambda store: sessions.SessionRepository(),
    "sign_in_failures": lambda store: sign_in_failures.SignInFailureRepository(),
    "policies": lambda store: policies.PolicyRepository(),
    "budgets": lambda store: budgets.BudgetRepository(),
    "risk_acceptances": lambda store: risk_acceptances.RiskAcceptanceRepository(),
    "access_list": lambda store: access_list.AccessRepository(),
    "providers": lambda store: providers.ProviderRepository(),
    "trust_audits": lambda store: trust_audits.TrustAuditRepository(),
    "checkpoints": lambda store: audit_checkpoints.CheckpointRepository(),
    "reports": lambda store: reports.ReportRepository(),
    "event_outputs": lambda store: event_outputs.EventOutputRepository(),
    "security_scans": lambda store: security_scans.SecurityScanRepository(),
    "rule_overrides": lambda store: rule_overrides.RuleOverrideRepository(),
    "feed": lambda store: feed.FeedRepository(),
}


async def open_store(
    path: str | os.PathLike[str], *, clock: Clock, ids: Ids, log: Log, identity: Identity | None = None
) -> Store:
    """Make or open the database at `path`, or in memory when it is ``:memory:``, and bring its schema up to date.

    Beside the file lie, with its name before them: ``-wal`` and ``-shm`` (SQLite's), ``.lock``, ``.lock.turn`` and
    ``.checkpoint`` (one writer at a time, one that carries over the log), ``.generation`` (changes of authority),
    ``.head`` (the end of the audit chain), ``.provider-keys`` (keys of providers that were typed in), and a
    copy of the database from before each change of its schema, ``.schema-NUMBER-TIME``.

    Raises:
        SetupError: it cannot be used, is no database, another program's or a newer version's. Nothing was overwritten.
    """
    name = os.fspath(path)
    db = SqliteDatabase(name, log=log, identity=identity)
    await db.open()
    kept: str | None = None
    try:
        if name != MEMORY and (kept := await to_thread.run_sync(copy_before_migration, db, name, clock.now_at())):
            log.info("migration_backup", file=kept)
        try:
            await db.change(lambda tx: migrate(tx, now_at=clock.now_at()))
        except BaseException:
            if kept is not None:
                drop_needless_copy(db, kept)
            raise
        store = await to_thread.run_sync(_beside, db, None if name == MEMORY else name)
        store.instance_id = await db.write(_settle(store, ids, log))
        if glob.glob(glob.escape(name) + ".redo-*"):
            who = store.instance_id
            await old_redo.commit_old_redo(db, store.audit, store.traffic, instance_id=who, path=name, log=log)
    except StoreUnavailable as error:
        await db.aclose()
        raise SetupError(f"{error.message} The database is {name}.") from error
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
        store.origin = store.meta.origin(tx)
        noted = store.headfile.read(instance_id)
        if noted is not None and store.audit.hash_at(tx, instance_id, noted.seq) != noted.hash:
            store.headfile.is_trusted = False
            log.error("audit_chain_cut", file=store.headfile.path, noted_seq=noted.seq)
        else:  # a process that was killed may have committed more than it has noted
            head = store.audit.head(tx, instance_id)
            tx.after_commit("headfile", lambda: store.headfile.hold(instance_id, head))
        return instance_id

    return work
