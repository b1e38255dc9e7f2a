"""Numbered changes of the schema, applied in order and never edited. Their SQL is in `migrations/`."""

from gateway import bundle
from gateway.errors import SetupError
from gateway.store.database import Transaction
from gateway.store.meta import OLDEST_SCHEMA, MetaRepository

MAKE_TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number     INTEGER NOT NULL PRIMARY KEY,
        name       TEXT    NOT NULL,
        applied_at BIGINT  NOT NULL
    )
"""
NOTE = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (:number, :name, :applied_at)"
_NAMES = (
    "initial users sessions access_list policies providers budgets risk_acceptances key_limits agents fleet traffic "
    "trust_audits security_scans reports event_outputs rule_overrides captures fresh usual_events alert_sightings "
    "evidence running one_table_each outbound_stream exceptions incidents output_format local_rules secret_sightings "
    "lease_numbers rate_grants detectors"
)
MIGRATIONS = tuple(f"{number:04}_{name}" for number, name in enumerate(_NAMES.split(), 1))
"""The files in `migrations/` by their order, without their endings."""
OLDEST = 32
"""The number of the oldest schema whose programs may run on the newest one: for a rolling upgrade, the last release's.

So a migration only adds what that release can do without. What that release still uses goes in the release after.
"""
_META = MetaRepository()


def prepare(tx: Transaction) -> int:
    """Make the table of migrations if there is none, and return the number of the last one that was applied."""
    tx.execute(MAKE_TABLE)
    return schema_number(tx)


def schema_number(tx: Transaction) -> int:
    """Return the number of the last migration that was applied, 0 of an empty database."""
    return int(tx.query("SELECT COALESCE(MAX(number), 0) AS number FROM schema_migrations")[0]["number"])


def migrate(tx: Transaction, *, now_at: int) -> None:
    """Bring the schema to the newest version after `prepare`.

    Raises SetupError if a newer program made it, unless that program says that this one may run beside it.
    """
    have, newest = schema_number(tx), len(MIGRATIONS)
    if have > newest:
        if int(_META.get(tx, OLDEST_SCHEMA) or have) <= newest:
            return
        raise SetupError(
            f"The database has schema version {have} and this program knows versions up to {newest}: "
            "start the newer program that made it, or restore a backup."
        )
    # In a file, each statement ends with the semicolon of its last line, and no other line ends with one.
    for number, name in enumerate(MIGRATIONS[have:], have + 1):
        for statement in bundle.read(f"gateway/store/migrations/{name}.sql").decode().split(";\n"):
            if statement.strip():
                tx.execute(statement)
        tx.execute(NOTE, {"number": number, "name": name, "applied_at": now_at})
    _META.set(tx, OLDEST_SCHEMA, str(OLDEST))
