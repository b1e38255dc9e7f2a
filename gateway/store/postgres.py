"""A PostgreSQL database: the one door to its SQL. Any number of gateways on any number of hosts share it.

One of them writes at a time. Each group of writes first locks the one row of `gateway_turn` and keeps it until its
commit. So the audit chain has one order, budgets cannot be overrun, and positions rise in the order of commits, exactly
as in a SQLite file. The lock belongs to the transaction: a process that stops with it loses it after `_IDLE_SECONDS`.

No setting or statement outlives a transaction, so a transaction pooler may stand between. `synchronous_commit` stays
as the server has it, so every commit is as durable as the server promises.

If the link breaks during a commit, nobody knows whether it took place. So each group also writes its number into
`gateway_groups`, and a new link tells.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
from anyio import to_thread

from gateway.clock import Clock, Ids
from gateway.errors import SetupError
from gateway.log import Log
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.engine import Database
from gateway.store.postgres_address import Address
from gateway.store.postgres_link import Link
from gateway.store.postgres_statements import WAIT_SECONDS, Lost, Statements, translated
from gateway.store.transaction import do_group
from gateway.store.writer import PendingWrite

T = TypeVar("T")

_READERS = 2
_READ_SECONDS = 30.0
_QUICK_SECONDS = 2.0
_CALLER_SECONDS = 5.0  # after which a caller whose server is silent gets an error
_PAUSE_SECONDS = 0.5
_CHANGE_SECONDS = 86_400.0
_TURN_SECONDS = 4  # how long a group waits for the turn
_STATEMENT_SECONDS = 5
_IDLE_SECONDS = 3  # after which the server ends a transaction whose process stands still
_SETUP_LOCK = 0x67777931  # of the transaction that makes the tables below, "gwy1"
_SETUP = (
    "CREATE TABLE IF NOT EXISTS gateway_turn (name TEXT NOT NULL PRIMARY KEY)",
    "INSERT INTO gateway_turn (name) VALUES ('writer') ON CONFLICT DO NOTHING",
    """
    CREATE TABLE IF NOT EXISTS gateway_groups (
        process TEXT NOT NULL PRIMARY KEY, number BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL)
    """,
    "DELETE FROM gateway_groups WHERE at < now() - INTERVAL '1 day'",
)
_OF_OTHERS = """
    SELECT COUNT(*) AS count FROM information_schema.tables
     WHERE table_schema = current_schema()
       AND NOT EXISTS (SELECT 1 FROM information_schema.tables
                        WHERE table_schema = current_schema() AND table_name = 'gateway_turn')
"""
_TURN = "SELECT name FROM gateway_turn WHERE name = 'writer' FOR UPDATE"
_COUNT = """
    INSERT INTO gateway_groups (process, number, at) VALUES (:process, :number, now())
        ON CONFLICT (process) DO UPDATE SET number = excluded.number, at = excluded.at
"""
_COUNTED = "SELECT number FROM gateway_groups WHERE process = :process"
_SHAPES = """
    SELECT columns.table_name, columns.column_name AS name, COALESCE(keys.ordinal_position, 0) AS pk
      FROM information_schema.columns AS columns
      LEFT JOIN information_schema.key_column_usage AS keys
        ON keys.constraint_schema = columns.table_schema AND keys.constraint_name LIKE '%\\_pkey'
       AND keys.table_name = columns.table_name AND keys.column_name = columns.column_name
     WHERE columns.table_schema = current_schema() AND columns.table_name NOT LIKE 'gateway\\_%'
     ORDER BY columns.table_name, columns.ordinal_position
"""
_SETTLE = "SELECT setval(pg_get_serial_sequence('{0}', 'position'), MAX(position)) FROM {0} HAVING MAX(position) > 0"
_NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now_at"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase(Database):
    """A PostgreSQL database."""

    is_shared = True
    _waits_for = "database"
    _shapes_sql = _SHAPES
    _breaking = Lost

    def __init__(self, address: Address, *, log: Log) -> None:
        super().__init__(log, readers=_READERS, quick_readers=1, wait_seconds=_CALLER_SECONDS)
        self._address = address
        self._clock = Clock()
        self._process = Ids(self._clock).random_bytes(8).hex()
        self._try_at_seconds = 0.0  # not before that, a new link is tried
        self._group = 0  # how many groups this process has begun
        self._doubt: tuple[int, Sequence[PendingWrite]] | None = None  # of which nobody knows whether it is committed
        self._lock = threading.Lock()  # whoever holds it may use the link that writes

    async def read(self, work: Callable[[Transaction], T], *, is_quick: bool = False) -> T:
        if not is_quick:
            return await to_thread.run_sync(self._read, work, False, limiter=self._limiter)
        with anyio.move_on_after(_CALLER_SECONDS):  # and the thread waits on alone
            return await to_thread.run_sync(self._read, work, True, limiter=self._quick_limiter, abandon_on_cancel=True)
        raise StoreUnavailable("The database did not answer in time.", retry_after_seconds=5)

    def settle_positions(self, tx: Transaction) -> None:
        for shape in self.shapes(tx):
            if "position" in shape.key:
                tx.query(_SETTLE.format(shape.name))

    # Open, in a worker thread.

    def _open(self) -> None:
        shown = self._address.shown
        try:
            with self._lock:
                run = Statements(self._writing())
                run("BEGIN")
                run("SELECT pg_advisory_xact_lock(:lock)", {"lock": _SETUP_LOCK})
                if run(_OF_OTHERS).fetchall()[0]["count"]:
                    raise SetupError(f"The database {shown} holds tables of another program: name an empty one.")
                for statement in _SETUP:
                    run(statement)
                run("COMMIT")
        except SetupError:
            self._drop()
            raise
        except StoreUnavailable as error:
            self._drop()
            raise SetupError(f"The database {shown} cannot be used: {error.__cause__ or error}") from error

    # Write, in the writer's thread or, for `change`, in a worker thread.

    def _commit(self, group: Sequence[PendingWrite], is_durable: bool, *, has_time: bool = False) -> None:
        """Commit a group of writes. Its durability is the server's; `is_durable` asks for no less."""
        if not group:
            return  # a sync, and every commit was one
        with self._lock:
            self._group += 1
            try:
                tx = self._transact(group, has_time=has_time)
            except Lost:
                self._drop()
                raise
            except BaseException:
                if self._connection is not None:
                    with suppress(StoreUnavailable):
                        Statements(self._connection)("ROLLBACK")
                raise
        self._run_calls((*tx.calls, self._on_sync))

    def _change(self, write: PendingWrite) -> None:
        self._commit((write,), is_durable=True, has_time=True)

    def _transact(self, group: Sequence[PendingWrite], *, has_time: bool) -> Transaction:
        run = self._begun(has_time)
        self._end_doubt(run)
        tx = do_group(run, group, lambda: self._begin(run, has_time), lambda: self._now_at(run))
        run(_COUNT, {"process": self._process, "number": self._group})
        try:
            run("COMMIT")
        except Lost:
            self._doubt = self._group, group
            self._drop()
            run = self._begun(has_time)
            has_committed = self._end_doubt(run)
            run("ROLLBACK")
            if not has_committed:
                raise
        return tx

    def _end_doubt(self, run: Statements) -> bool:
        """Return whether the commit whose link broke took place. Then its writes are not done a second time.

        The turn is ours again, so the transaction in doubt has ended.
        """
        if self._doubt is None:
            return False
        (number, group), self._doubt = self._doubt, None
        counted = run(_COUNTED, {"process": self._process}).fetchall()
        has_committed = bool(counted) and counted[0]["number"] == number
        for write in group:
            write.is_abandoned = write.is_abandoned or has_committed
        return has_committed

    def _begun(self, has_time: bool) -> Statements:
        """Return a transaction that has its turn. A link that broke while it was idle is replaced."""
        for is_last in (False, True):
            run = Statements(self._writing(), wait_seconds=_CHANGE_SECONDS if has_time else WAIT_SECONDS)
            try:
                self._begin(run, has_time)
                break
            except Lost:
                self._drop()
                if is_last:
                    raise
        return run

    @staticmethod
    def _begin(run: Statements, has_time: bool) -> None:
        turn, idle, statement = (0, 0, 0) if has_time else (_TURN_SECONDS, _IDLE_SECONDS, _STATEMENT_SECONDS)
        run.all(
            "BEGIN",
            f"SET LOCAL lock_timeout = '{turn}s'",
            f"SET LOCAL statement_timeout = '{statement}s'",
            f"SET LOCAL idle_in_transaction_session_timeout = '{idle}s'",
            _TURN,
        )

    def _connect(self, *, writes: bool) -> Link:
        """Connect, unless the last try has just failed: callers that wait for a silent server one by one never end."""
        if self._clock.monotonic_seconds() < self._try_at_seconds:
            raise Lost("The database cannot be reached.", retry_after_seconds=1)
        try:
            with translated():
                return Link(self._address, self._address.password())
        except (StoreUnavailable, SetupError) as error:
            self._try_at_seconds = self._clock.monotonic_seconds() + _PAUSE_SECONDS
            if self._state == "new":
                raise
            self._log.warning("database_unreachable", reason=str(error.__cause__ or error))
            raise Lost("The database cannot be reached.", retry_after_seconds=1) from error

    # Read.

    def _read(self, work: Callable[[Transaction], T], is_quick: bool) -> T:
        wait_seconds = _QUICK_SECONDS if is_quick else _READ_SECONDS
        try:
            return self._read_once(work, wait_seconds)
        except Lost:
            return self._read_once(work, wait_seconds, is_new=True)  # the link may be from before the server's restart

    def _read_once(self, work: Callable[[Transaction], T], wait_seconds: float, *, is_new: bool = False) -> T:
        with self._reader(is_new=is_new) as link:
            run = Statements(link, begin=_READ, wait_seconds=wait_seconds)
            return work(Transaction(run, lambda: self._now_at(run)))

    @staticmethod
    def _now_at(run: Statements) -> int:
        return int(run(_NOW).fetchall()[0]["now_at"])

    def _keep(self, connection: Link) -> None:
        with suppress(StoreUnavailable):
            Statements(connection)("ROLLBACK")
            super()._keep(connection)
