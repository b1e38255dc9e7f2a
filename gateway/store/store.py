"""The repositories together, on one database."""

import hmac
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

import anyio
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.store import tables
from gateway.store.alerts import AlertRepository
from gateway.store.audit import AuditRepository, CheckpointRepository
from gateway.store.budgets import BudgetRepository
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.database_file import Identity
from gateway.store.engine import Database
from gateway.store.fleet import PEERS, InstanceRepository, LeaseRepository, RunningRepository
from gateway.store.followed_authority import FollowedAuthority
from gateway.store.generation import Generation
from gateway.store.headfile import HeadFile
from gateway.store.keyfile import KeyFile
from gateway.store.keys import KeyRepository
from gateway.store.meta import COPYING, INSTANCE_ID, ORIGIN, SEAL_CHECK, MetaRepository
from gateway.store.migrations import MIGRATIONS, migrate, prepare, schema_number
from gateway.store.postgres import PostgresDatabase
from gateway.store.postgres_address import Address
from gateway.store.sessions import SessionRepository, SignInFailureRepository
from gateway.store.sqlite import MEMORY, SqliteDatabase
from gateway.store.traffic import CaptureRepository, TrafficRepository
from gateway.strict_json import write_time

SEAL_KEY = "seal"
SEAL_DIGITS = 16
NODE = "node"
NODE_FILE = "node-id"


class Store:
    """One database, the files beside it, and a repository for each noun in it. Opens files, so it blocks.

    path: of the database, None for memory. db: for transactions over several tables. log: of this process.
    generation: moves with each change of authority. authority: what this process has loaded of it. instance_id: of the
    audit chain, one for the database. node_id: of the gateway of this host; the same unless hosts share the database.
    `open_store` sets both.
    """

    def __init__(self, db: Database, path: str | None, clock: Clock, log: Log) -> None:
        self.db = db
        self.log = log
        self.generation = Generation(path and path + ".generation")
        self.authority = FollowedAuthority(db, self.generation, clock)
        self.headfile = HeadFile(path and path + ".head")
        self.keyfile = KeyFile(path and path + ".provider-keys")
        self.sealfile = KeyFile(path and path + ".seal")
        self.nodefile = KeyFile(path and os.path.join(os.path.dirname(path), NODE_FILE))
        self.instance_id = self.node_id = ""
        self.seal_key = b""  # set by `open_store`
        db.at_sync(self.headfile.write_held)
        self.access_list = tables.ACCESS_LIST
        self.agents = tables.AGENTS
        self.alerts = AlertRepository()
        self.audit = AuditRepository(self.headfile)
        self.budgets = BudgetRepository()
        self.captures = CaptureRepository()
        self.checkpoints = CheckpointRepository()
        self.detectors = tables.DETECTORS
        self.event_outputs = tables.EVENT_OUTPUTS
        self.instances = InstanceRepository()
        self.keys = KeyRepository()
        self.leases = LeaseRepository()
        self.local_rules = tables.LOCAL_RULES
        self.meta = MetaRepository()
        self.peers = PEERS
        self.policies = tables.POLICIES
        self.providers = tables.PROVIDERS
        self.report_schedules = tables.REPORT_SCHEDULES
        self.reports = tables.REPORTS
        self.risk_acceptances = tables.RISK_ACCEPTANCES
        self.rule_overrides = tables.RULE_OVERRIDES
        self.running = RunningRepository()
        self.security_scans = tables.SECURITY_SCANS
        self.sessions = SessionRepository()
        self.sign_in_failures = SignInFailureRepository()
        self.traffic = TrafficRepository()
        self.trust_audits = tables.TRUST_AUDITS
        self.users = tables.USERS

    def seal(self, secret: str) -> str:
        """Return the keyed hash of a secret: equal for equal secrets of this installation, and of no use elsewhere.

        The key lies beside the database, not in it: who has only the database cannot try out what was hashed.
        """
        return hmac.new(self.seal_key, secret.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:SEAL_DIGITS]

    async def aclose(self) -> None:
        """Write what is queued, then close the database. Raises what `Database.aclose` raises."""
        await self.db.aclose()


async def open_store(
    path: str | os.PathLike[str],
    *,
    clock: Clock,
    ids: Ids,
    log: Log,
    identity: Identity | None = None,
    address: Address | None = None,
    seal_key: str | None = None,
) -> Store:
    """Make or open the database at `path`, or in memory when it is ``:memory:``, and bring its schema up to date.

    address: of the PostgreSQL server that has the database; then only what belongs to this host lies at `path`.

    Beside the file lie, with its name before them:

    - ``-wal`` and ``-shm``, ``.lock`` and ``.lock.turn``: the SQLite database's own, and one writer at a time
    - ``.generation``: counts changes of authority
    - ``.head``: the end of the audit chain
    - ``.provider-keys``: keys of providers that were typed in
    - ``.seal``: the key of the hashes of secrets
    - ``.schema-NUMBER-TIME``: a copy of the database from before a change of its schema

    If hosts share the database, ``node-id`` in the same folder holds the id of this host. seal_key: in hexadecimal
    digits; None for the one beside the file, which is made if there is none.

    Raises:
        SetupError: it cannot be used, is no database, another program's or a newer version's. Nothing was overwritten.
    """
    name = os.fspath(path)
    db = await open_database(name, clock=clock, log=log, identity=identity, address=address)
    try:
        with _naming(name, address):
            store = await to_thread.run_sync(Store, db, None if name == MEMORY else name, clock, log)
            store.instance_id, store.node_id = await db.write(_settle(store, ids, seal_key))
    except BaseException:
        await db.aclose()
        raise
    return store


async def open_database(
    name: str, *, clock: Clock, log: Log, identity: Identity | None = None, address: Address | None = None
) -> Database:
    """Make or open only the database, and bring its schema up to date. Takes and raises what `open_store` does."""
    db: Database
    if address is None:
        db = SqliteDatabase(name, clock=clock, log=log, identity=identity)
    else:
        db = PostgresDatabase(address, log=log)
    await db.open()
    try:
        with _naming(name, address):
            await _bring_up_to_date(db, name, clock, log)
    except BaseException:
        await db.aclose()
        raise
    return db


@contextmanager
def _naming(name: str, address: Address | None) -> Iterator[None]:
    """Turn an error into one that says which database it is about."""
    try:
        yield
    except StoreUnavailable as error:
        raise SetupError(f"{error.message} The database is {address.shown if address else name}.") from error
    except OSError as error:
        raise SetupError(f"A file beside {name} cannot be used ({error.strerror}).") from error


async def _bring_up_to_date(db: Database, name: str, clock: Clock, log: Log) -> None:
    """Apply the migrations that are missing, after a copy of a database that holds something."""
    have = await db.change(prepare)
    if have == len(MIGRATIONS):
        return
    now_at, copy = clock.now_at(), ""
    if name != MEMORY and 0 < have < len(MIGRATIONS) and not db.is_shared:
        copy = f"{name}.schema-{have}-{write_time(now_at).replace('-', '').replace(':', '')}"
        await to_thread.run_sync(cast(SqliteDatabase, db).copy_to, copy)
        log.info("migration_backup", file=copy)
    try:
        await db.change(lambda tx: migrate(tx, now_at=now_at))
    except BaseException:
        # Without a change, each try would leave another copy.
        with anyio.CancelScope(shield=True), suppress(StoreUnavailable, OSError):
            if copy and await db.read(schema_number) < len(MIGRATIONS):
                os.unlink(copy)
        raise


def _settle(store: Store, ids: Ids, seal_key: str | None) -> Callable[[Transaction], tuple[str, str]]:
    """Return the work that gives the database and this host their ids, and compares the end of the chain with its file.

    Of the processes of all hosts, one at a time does it.
    """

    def work(tx: Transaction) -> tuple[str, str]:
        if store.meta.get(tx, COPYING) is not None:
            raise SetupError("A copy into this database was cut short: run `db copy` again.")
        instance_id = store.meta.get(tx, INSTANCE_ID)
        if instance_id is None:
            instance_id = ids.new("ins")
            store.meta.set(tx, INSTANCE_ID, instance_id)
        store.traffic.origin = store.meta.get(tx, ORIGIN) or store.traffic.origin
        _set_seal_key(store, tx, ids, seal_key)
        noted = store.headfile.read(instance_id)
        if noted is not None and store.audit.hash_at(tx, instance_id, noted.seq) != noted.hash:
            store.headfile.is_trusted = False
            store.log.error("audit_chain_cut", file=store.headfile.path, noted_seq=noted.seq)
        else:  # a killed process may have committed more than its file says
            head = store.audit.head(tx, instance_id)
            tx.after_commit(lambda: store.headfile.hold(instance_id, head))
        return instance_id, _node_id(store, ids) if store.db.is_shared else instance_id

    return work


def _node_id(store: Store, ids: Ids) -> str:
    """Return the id of this host, which its first start makes."""
    node_id = store.nodefile.get(NODE)
    if node_id is None:
        node_id = ids.new("ins")
        store.nodefile.put(NODE, node_id)
    return node_id


def _set_seal_key(store: Store, tx: Transaction, ids: Ids, given: str | None) -> None:
    """Set the given key, or that of the file. Raises SetupError if the other hosts of the database have another."""
    key = store.sealfile.get(SEAL_KEY) if given is None else given
    noted = store.meta.get(tx, SEAL_CHECK) if store.db.is_shared else None
    if key is None and noted is None:
        key = ids.random_bytes(32).hex()
        store.sealfile.put(SEAL_KEY, key)
    store.seal_key = bytes.fromhex(key or "")
    check = store.seal(SEAL_CHECK)
    if noted is not None and (key is None or noted != check):
        has = "none" if key is None else "another"
        raise SetupError(
            f"The hosts of one database need the same seal key, and this one has {has}. "
            f"Copy the file *.seal from the data folder of a running host to {store.sealfile.path or 'this host'}. "
            "If that host sets GATEWAY_SEAL_KEY_FILE, copy the file that it names, and set it here as well."
        )
    if store.db.is_shared and noted is None:
        store.meta.set(tx, SEAL_CHECK, check)
