"""Numbered changes of the schema, applied in order and never edited. Their SQL is in `migrations/`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway import bundle
from gateway.errors import SetupError
from gateway.store.database import Transaction

MAKE_TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number     INTEGER NOT NULL PRIMARY KEY,
        name       TEXT    NOT NULL,
        applied_at BIGINT  NOT NULL
    )
"""
LAST_NUMBER = "SELECT COALESCE(MAX(number), 0) AS number FROM schema_migrations"
NOTE = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (:number, :name, :applied_at)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. name: of the file in `migrations/`, without its ending."""

    number: int
    name: str


MIGRATIONS = (
    Migration(1, "0001_initial"),
    Migration(2, "0002_users"),
    Migration(3, "0003_sessions"),
    Migration(4, "0004_access_list"),
    Migration(5, "0005_policies"),
    Migration(6, "0006_providers"),
    Migration(7, "0007_budgets"),
    Migration(8, "0008_risk_acceptances"),
    Migration(9, "0009_key_limits"),
    Migration(10, "0010_agents"),
    Migration(11, "0011_fleet"),
    Migration(12, "0012_traffic"),
    Migration(13, "0013_trust_audits"),
    Migration(14, "0014_security_scans"),
    Migration(15, "0015_reports"),
    Migration(16, "0016_event_outputs"),
    Migration(17, "0017_rule_overrides"),
    Migration(18, "0018_captures"),
    Migration(19, "0019_fresh"),
    Migration(20, "0020_usual_events"),
    Migration(21, "0021_alert_sightings"),
    Migration(22, "0022_evidence"),
    Migration(23, "0023_running"),
    Migration(24, "0024_one_table_each"),
)


def prepare(tx: Transaction) -> int:
    """Make the table of migrations if there is none, and return the number of the last one that was applied."""
    tx.execute(MAKE_TABLE)
    return schema_number(tx)


def schema_number(tx: Transaction) -> int:
    """Return the number of the last migration that was applied, 0 of an empty database."""
    return int(tx.query(LAST_NUMBER)[0]["number"])


def migrate(tx: Transaction, *, now_at: int, read: Callable[[str], bytes] = bundle.read) -> None:
    """Bring the schema to the newest version, in a transaction after `prepare`.

    Raises:
        SetupError: the database was made by a newer version.
    """
    have = schema_number(tx)
    newest = MIGRATIONS[-1].number
    if have > newest:
        raise SetupError(
            f"The database has schema version {have} and this program knows versions up to {newest}: "
            "start the newer program that made it, or restore a backup."
        )
    for migration in MIGRATIONS[have:]:
        for statement in statements(read(f"gateway/store/migrations/{migration.name}.sql").decode("utf-8")):
            tx.execute(statement)
        tx.execute(NOTE, {"number": migration.number, "name": migration.name, "applied_at": now_at})


def statements(script: str) -> Iterator[str]:
    """Cut a script at the lines that end with a semicolon. Lines that begin with ``--`` are left out."""
    lines: list[str] = []
    for line in script.splitlines():
        if line.strip().startswith("--") or not (line.strip() or lines):
            continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines).rstrip().removesuffix(";")
            lines = []
    assert not "".join(lines).strip(), "the script ends inside a statement"
