"""The tables whose statements the mapper writes, at least most of them. Larger tables have a module each."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from gateway.domain.access_list import MAX_ENTRY_LIMIT, AccessEntry, EntryFilter
from gateway.domain.agents import AgentRecord
from gateway.domain.detectors import Detector
from gateway.domain.event_outputs import EventOutput
from gateway.domain.local_rules import LocalRule
from gateway.domain.paging import MAX_INTEGER
from gateway.domain.policies import PolicyRecord, RuleOverride
from gateway.domain.posture import KEPT_RUNS, MAX_RUNS, Check, PosturePoint, TrustAudit
from gateway.domain.prices import Price
from gateway.domain.principals import Role
from gateway.domain.providers import Provider
from gateway.domain.reports import KEPT_REPORTS, MAX_REPORTS, Report, ReportSchedule
from gateway.domain.risk_acceptances import MAX_ACCEPTANCE_LIMIT, AcceptanceScope, RiskAcceptance
from gateway.domain.security_scans import KEPT_SCANS, MAX_SCANS, ScannedItem, SecurityScan
from gateway.domain.users import User
from gateway.shield.detections import Verdict
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.filters import Where, rank_of
from gateway.store.table import AuthorityTable, Codec, PositionedTable, Table, json_records
from gateway.strict_json import json_text

_PRICES = Codec(
    lambda prices: json_text({model: asdict(price) for model, price in prices.items()}),
    lambda text: {model: Price(**price) for model, price in json.loads(text).items()},
)
SCAN_SORTS = {"time": "occurred_at", "verdict": rank_of("verdict", Verdict), "score": "score", "findings": "detections"}
# An entry that never expires stands above all that do.
_EXPIRES = f"COALESCE(expires_at, {MAX_INTEGER})"
ENTRY_SORTS = {"value": "value", "list": "list_name", "type": "entry_type", "hits": "hits", "expires": _EXPIRES}
ADD_HITS = "UPDATE access_entries SET hits = hits + :hits WHERE id = :id"


class AccessRepository(AuthorityTable[AccessEntry]):
    """The access list. It keeps expired entries until somebody removes them."""

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of all entries, oldest first: equal as long as no entry changes."""
        rows = tx.query("SELECT id, version FROM access_entries ORDER BY id")
        return tuple((row["id"], row["version"]) for row in rows)

    def _where(self, wanted: EntryFilter) -> Where:
        return Where().match(wanted, list="list_name = :list", type="entry_type = :type")

    def add_hits(self, tx: Transaction, hits: Mapping[str, int]) -> None:
        for entry_id, count in hits.items():
            tx.execute(ADD_HITS, {"id": entry_id, "hits": count})


_OF_SENDER = (
    "audit_position", "alert_position", "sent", "failed", "dropped", "last_sent_at", "last_error", "last_error_at",
)  # fmt: skip
PROGRESS = Table("event_outputs", EventOutput, changes=_OF_SENDER, raises_version=False)


class EventOutputRepository(Table[EventOutput]):
    """The event outputs. `change` writes the fields of the operator, `progress` those of the sender."""

    def any_enabled(self, tx: Transaction) -> bool:
        return self.count(tx, "WHERE enabled = 1", most=1) > 0

    def progress(self, tx: Transaction, output: EventOutput) -> None:
        PROGRESS.change(tx, output)

    def disable(self, tx: Transaction, output_id: str) -> None:
        """Disable an output whose receiver asked for no more events."""
        tx.execute("UPDATE event_outputs SET enabled = 0, version = version + 1 WHERE id = :id", {"id": output_id})


class LocalRuleRepository(AuthorityTable[LocalRule]):
    """Every version of the stored rules. None is changed or removed."""

    def all(self, tx: Transaction) -> tuple[LocalRule, ...]:
        """Return the newest version of each rule that is not removed, by id."""
        newest = "(SELECT id, MAX(version) FROM local_rules GROUP BY id)"
        return self.many(tx, f"WHERE rule IS NOT NULL AND (id, version) IN {newest} ORDER BY id")

    def by_id(self, tx: Transaction, key: str) -> LocalRule | None:
        newest = next(iter(self.versions(tx, key)), None)
        return newest if newest is not None and newest.rule is not None else None

    def change(self, tx: AuthorityTransaction, record: LocalRule, **extra: object) -> bool:
        self.insert(tx, record, **extra)
        return True

    def versions(self, tx: Transaction, rule_id: str) -> tuple[LocalRule, ...]:
        """Return the versions of a rule, newest first."""
        return self.many(tx, "WHERE id = :id ORDER BY version DESC", id=rule_id)


ACCEPTANCE_SORTS = {"rule": "rule", "covers": rank_of("scope", AcceptanceScope), "until": "until_at"}


class RiskAcceptanceRepository(AuthorityTable[RiskAcceptance]):
    """The risk acceptances. None is removed: a revoked one stays as evidence."""

    def active(self, tx: Transaction, *, now_at: int, is_proposed: bool = False) -> tuple[RiskAcceptance, ...]:
        """Return those that are in force or, with `is_proposed`, those that wait for an approval."""
        rest = "WHERE revoked_at IS NULL AND is_proposed = :is_proposed AND until_at > :now_at ORDER BY id"
        return self.many(tx, rest, now_at=now_at, is_proposed=int(is_proposed))


class UserRepository(AuthorityTable[User]):
    """The users."""

    def by_name(self, tx: Transaction, username: str) -> User | None:
        """Return the user of this name, whatever its case. Names are ASCII, so any other text finds no user."""
        if not username.isascii():
            return None
        return self.one(tx, "WHERE lower(username) = :folded", folded=username.lower())

    def count_active(self, tx: Transaction, role: Role) -> int:
        return self.count(tx, "WHERE role = :role AND disabled_at IS NULL", role=role.value)


class AgentRepository(PositionedTable[AgentRecord]):
    """The agents. `decide` changes what an agent may do; `change` writes the rest, which the gateway has seen."""

    def decide(self, tx: AuthorityTransaction, record: AgentRecord) -> None:
        tx.change(self.update_sql, self.params(record))

    def positions(self, tx: Transaction) -> tuple[tuple[int, AgentRecord], ...]:
        return self.after(tx, 0, limit=MAX_INTEGER)[::-1]

    def by_name(self, tx: Transaction, folded: str) -> AgentRecord | None:
        return self.one(tx, "WHERE folded = :folded", folded=folded)

    def blocked(self, tx: Transaction) -> dict[str, str]:
        rows = tx.query("SELECT id, folded FROM agents WHERE blocked_at IS NOT NULL")
        return {str(row["folded"]): str(row["id"]) for row in rows}


ADVANCE = """
    UPDATE report_schedules SET next_at = :next_at
     WHERE id = :id AND enabled = 1 AND next_at = :due_at AND next_at <= :now_at
"""


class ReportRepository(Table[Report]):
    """The reports, each with its document."""

    def document(self, tx: Transaction, report_id: str) -> tuple[Report, str] | None:
        rows = tx.query(f"SELECT {self.names}, document FROM reports WHERE id = :id", {"id": report_id})  # noqa: S608
        return (self.record(rows[0]), str(rows[0]["document"])) if rows else None


class ReportScheduleRepository(Table[ReportSchedule]):
    """The schedules of reports."""

    def advance(self, tx: Transaction, schedule: ReportSchedule, *, next_at: int, now_at: int) -> bool:
        """Move a schedule to its next time. Return whether it was due and no other process had moved it."""
        values = {"id": schedule.id, "due_at": schedule.next_at, "next_at": next_at, "now_at": now_at}
        return tx.execute(ADVANCE, values) == 1


POINTS = Table("posture_points", PosturePoint, key="occurred_at")


class TrustAuditRepository(Table[TrustAudit]):
    """The tables of trust audits and of points."""

    def latest(self, tx: Transaction) -> TrustAudit | None:
        return self.one(tx, "ORDER BY id DESC LIMIT 1")

    def insert_point(self, tx: Transaction, point: PosturePoint) -> bool:
        return POINTS.insert_new(tx, point)

    def points(self, tx: Transaction, *, since: int) -> tuple[PosturePoint, ...]:
        return POINTS.many(tx, "WHERE occurred_at >= :since ORDER BY occurred_at", since=since)

    def prune_points(self, tx: Transaction, *, before: int) -> int:
        return tx.execute("DELETE FROM posture_points WHERE occurred_at < :before", {"before": before})


_TYPE = {"type": "report_type", "format": "report_format"}
REPORT_SORTS = {**_TYPE, "since": "since_at", "until": "until_at", "created": "created_at", "size": "document_bytes"}
ACCESS_LIST = AccessRepository(
    "access_entries",
    AccessEntry,
    changes=("list_name", "value", "scope", "reason", "expires_at"),
    sorts=ENTRY_SORTS,
    page_limit=MAX_ENTRY_LIMIT,
)
AGENTS = AgentRepository("agents", AgentRecord, raises_version=False, order=("position",))
EVENT_OUTPUTS = EventOutputRepository(
    "event_outputs",
    EventOutput,
    changes=("name", "target", "secret", "kinds", "min_severity", "format", "allow_private", "enabled"),
)
LOCAL_RULES = LocalRuleRepository("local_rules", LocalRule)
POLICIES = AuthorityTable("policies", PolicyRecord)
# The keys of providers are elsewhere: `keyfile` holds those that an operator has typed in.
PROVIDERS = AuthorityTable("providers", Provider, columns={"origin": None}, codecs={"prices": _PRICES})
DETECTORS = AuthorityTable("detectors", Detector, columns={"when": "when_asked"})
REPORT_SCHEDULES = ReportScheduleRepository("report_schedules", ReportSchedule, columns=_TYPE)
REPORTS = ReportRepository(
    "reports", Report, columns=_TYPE, extra=("document",), sorts=REPORT_SORTS, page_limit=MAX_REPORTS, kept=KEPT_REPORTS
)
RISK_ACCEPTANCES = RiskAcceptanceRepository(
    "risk_acceptances",
    RiskAcceptance,
    columns={"key": "key_id", "policy": "policy_id", "request": "request_id"},
    changes=(
        *("reason", "until_at", "revoked_at", "revoked_by"),
        *("is_proposed", "proposed_by", "accepted_at", "accepted_by"),
    ),
    sorts=ACCEPTANCE_SORTS,
    page_limit=MAX_ACCEPTANCE_LIMIT,
)
# None is removed, so that versions keep rising.
RULE_OVERRIDES = AuthorityTable("rule_overrides", RuleOverride, key="rule")
SECURITY_SCANS = Table(
    "security_scans",
    SecurityScan,
    codecs={"items": json_records(ScannedItem)},
    sorts=SCAN_SORTS,
    page_limit=MAX_SCANS,
    kept=KEPT_SCANS,
)
TRUST_AUDITS = TrustAuditRepository(
    "trust_audits", TrustAudit, codecs={"checks": json_records(Check)}, page_limit=MAX_RUNS, kept=KEPT_RUNS
)
USERS = UserRepository("users", User, changes=("role", "disabled_at", "password_hash"))
