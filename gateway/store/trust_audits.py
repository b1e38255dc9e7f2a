"""Every SQL statement about trust audits and about the course of the two scores."""

import json

from gateway.domain.paging import ID_NUMBERS, Page, id_at, position_of, read_cursor, write_cursor
from gateway.domain.posture import Check, CheckStatus, PosturePoint, TrustAudit
from gateway.schema import encode
from gateway.shield.detections import Severity
from gateway.store.database import Row, Transaction
from gateway.store.filters import Where, check_limit

MAX_RUNS = 100
_COLUMNS = "id, occurred_at, started_by, settings_of, score, passed, warned, failed, skipped, checks"
INSERT = f"""
    INSERT INTO trust_audits ({_COLUMNS})
    VALUES (:id, :occurred_at, :started_by, :settings_of, :score, :passed, :warned, :failed, :skipped, :checks)
"""  # noqa: S608  # our own column names
LIST = f"SELECT {_COLUMNS} FROM trust_audits"  # noqa: S608
NEWEST_FIRST = " ORDER BY id DESC LIMIT :limit"
BY_ID = f"SELECT {_COLUMNS} FROM trust_audits WHERE id = :id"  # noqa: S608
PRUNE_RUNS = """
    DELETE FROM trust_audits WHERE id IN (SELECT id FROM trust_audits ORDER BY id DESC LIMIT :many OFFSET :kept)
"""
NOTE = """
    INSERT INTO posture_points (occurred_at, threat_score, posture_score)
    VALUES (:occurred_at, :threat_score, :posture_score)
        ON CONFLICT (occurred_at) DO NOTHING
"""
POINTS = """
    SELECT occurred_at, threat_score, posture_score FROM posture_points
     WHERE occurred_at >= :since ORDER BY occurred_at
"""
PRUNE_POINTS = "DELETE FROM posture_points WHERE occurred_at < :before"


class TrustAuditRepository:
    """The tables of trust audits and of points."""

    def insert(self, tx: Transaction, run: TrustAudit) -> None:
        """Insert a run, and remove what is too old to be kept."""
        values = {
            "id": run.id,
            "occurred_at": run.occurred_at,
            "started_by": run.started_by,
            "settings_of": run.settings_of,
            "score": run.score,
            "passed": run.passed,
            "warned": run.warned,
            "failed": run.failed,
            "skipped": run.skipped,
            "checks": json.dumps([encode(check) for check in run.checks], ensure_ascii=False),
        }
        tx.execute(INSERT, values)
        tx.execute(PRUNE_RUNS, {"many": MAX_RUNS, "kept": 10 * MAX_RUNS})

    def page(self, tx: Transaction, *, limit: int, cursor: str | None) -> Page[TrustAudit]:
        """List runs, newest first.

        Raises:
            InvalidRequest: the limit, or the cursor is of another query.
        """
        query = ("trust_audits",)
        where = Where()
        if cursor is not None:
            where.add("id < :after", after=id_at("run", read_cursor(cursor, query, count=ID_NUMBERS)))
        rows = tx.query(LIST + where.sql() + NEWEST_FIRST, where.params | {"limit": check_limit(limit, MAX_RUNS) + 1})
        runs = tuple(_run(row) for row in rows[:limit])
        following = write_cursor(query, position_of(runs[-1].id)) if len(rows) > limit else None
        return Page(runs, limit, following)

    def by_id(self, tx: Transaction, run_id: str) -> TrustAudit | None:
        """Return one run."""
        rows = tx.query(BY_ID, {"id": run_id})
        return _run(rows[0]) if rows else None

    def latest(self, tx: Transaction) -> TrustAudit | None:
        """Return the newest run, or None before the first."""
        rows = tx.query(LIST + NEWEST_FIRST, {"limit": 1})
        return _run(rows[0]) if rows else None

    def note(self, tx: Transaction, point: PosturePoint) -> bool:
        """Keep one point and tell whether nobody had kept it before."""
        values = {
            "occurred_at": point.occurred_at,
            "threat_score": point.threat_score,
            "posture_score": point.posture_score,
        }
        return tx.execute(NOTE, values) == 1

    def points(self, tx: Transaction, *, since: int) -> tuple[PosturePoint, ...]:
        """Return the points since a time, oldest first."""
        return tuple(
            PosturePoint(row["occurred_at"], row["threat_score"], row["posture_score"])
            for row in tx.query(POINTS, {"since": since})
        )

    def prune_points(self, tx: Transaction, *, before: int) -> int:
        """Remove points from before a time."""
        return tx.execute(PRUNE_POINTS, {"before": before})


def _run(row: Row) -> TrustAudit:
    return TrustAudit(
        id=row["id"],
        occurred_at=row["occurred_at"],
        started_by=row["started_by"],
        settings_of=row["settings_of"],
        score=row["score"],
        passed=row["passed"],
        warned=row["warned"],
        failed=row["failed"],
        skipped=row["skipped"],
        checks=tuple(_check(value) for value in json.loads(row["checks"])),
    )


def _check(value: dict[str, object]) -> Check:
    texts = {name: str(value[name]) for name in ("id", "title", "category", "evidence", "why", "fix")}
    refs = value.get("refs")
    return Check(
        **texts,
        severity=Severity(str(value["severity"])),
        status=CheckStatus(str(value["status"])),
        refs=tuple(str(ref) for ref in refs) if isinstance(refs, list) else (),
    )
