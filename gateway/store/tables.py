"""The tables whose statements the mapper writes, or nearly all of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from gateway.domain.access_list import MAX_ENTRY_LIMIT, AccessEntry, EntryFilter
from gateway.domain.event_outputs import EventOutput
from gateway.domain.paging import Page
from gateway.domain.policies import PolicyRecord, RuleOverride
from gateway.domain.prices import Price
from gateway.domain.principals import Role
from gateway.domain.providers import Provider
from gateway.domain.risk_acceptances import MAX_ACCEPTANCE_LIMIT, RiskAcceptance
from gateway.domain.security_scans import KEPT_SCANS, MAX_SCANS, ScannedItem, SecurityScan
from gateway.domain.users import User
from gateway.store.database import Transaction
from gateway.store.filters import Where
from gateway.store.table import AuthorityTable, Codec, Table, json_records
from gateway.strict_json import json_text

_PRICES = Codec(
    lambda prices: json_text({model: asdict(price) for model, price in prices.items()}),
    lambda text: {model: Price(**price) for model, price in json.loads(text).items()},
)
POLICIES = AuthorityTable("policies", PolicyRecord)
# The keys of providers are elsewhere: `keyfile` holds those that an operator has typed in.
PROVIDERS = AuthorityTable("providers", Provider, columns={"origin": None}, codecs={"prices": _PRICES})
# None is removed, so that versions keep rising.
RULE_OVERRIDES = AuthorityTable("rule_overrides", RuleOverride, key="rule")
_ITEMS = json_records(ScannedItem)
SECURITY_SCANS = Table("security_scans", SecurityScan, codecs={"items": _ITEMS}, page_limit=MAX_SCANS, kept=KEPT_SCANS)

ADD_HITS = "UPDATE access_entries SET hits = hits + :hits WHERE id = :id"


class AccessRepository(AuthorityTable[AccessEntry]):
    """The access list. It keeps expired entries until somebody removes them."""

    def __init__(self) -> None:
        changes = ("list_name", "value", "scope", "reason", "expires_at")
        super().__init__("access_entries", AccessEntry, changes=changes, page_limit=MAX_ENTRY_LIMIT)

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of all entries, oldest first: equal as long as no entry changes."""
        rows = tx.query("SELECT id, version FROM access_entries ORDER BY id")
        return tuple((row["id"], row["version"]) for row in rows)

    def page(self, tx: Transaction, wanted: EntryFilter) -> Page[AccessEntry]:
        where = Where()
        where.equal(wanted, "list_name", "entry_type")
        return self.read_page(tx, wanted, where)

    def add_hits(self, tx: Transaction, hits: Mapping[str, int]) -> None:
        """Add to the hits of entries, by id. An id without an entry is ignored."""
        for entry_id, count in hits.items():
            tx.execute(ADD_HITS, {"id": entry_id, "hits": count})


PROGRESS = """
    UPDATE event_outputs
       SET audit_position = :audit_position, alert_position = :alert_position, sent = :sent, failed = :failed,
           dropped = :dropped, last_sent_at = :last_sent_at, last_error = :last_error, last_error_at = :last_error_at
     WHERE id = :id
"""


class EventOutputRepository(Table[EventOutput]):
    """The event outputs. `change` writes the fields of the operator, `progress` those of the sender."""

    def __init__(self) -> None:
        changes = ("name", "target", "secret", "kinds", "min_severity", "allow_private", "enabled")
        super().__init__("event_outputs", EventOutput, changes=changes)

    def any_enabled(self, tx: Transaction) -> bool:
        return self.count(tx, "WHERE enabled = 1", most=1) > 0

    def progress(self, tx: Transaction, output: EventOutput) -> None:
        """Write how far the sender has come."""
        tx.execute(PROGRESS, self.params(output))

    def disable(self, tx: Transaction, output_id: str) -> None:
        """Disable an output whose receiver asked for no more events."""
        tx.execute("UPDATE event_outputs SET enabled = 0, version = version + 1 WHERE id = :id", {"id": output_id})


class RiskAcceptanceRepository(AuthorityTable[RiskAcceptance]):
    """The risk acceptances. None is removed: a revoked one stays as evidence."""

    def __init__(self) -> None:
        super().__init__(
            "risk_acceptances",
            RiskAcceptance,
            columns={"key": "key_id"},
            changes=("reason", "until_at", "revoked_at", "revoked_by"),
            page_limit=MAX_ACCEPTANCE_LIMIT,
        )

    def active(self, tx: Transaction, *, now_at: int) -> tuple[RiskAcceptance, ...]:
        """Return the acceptances that hold at `now_at`, oldest first."""
        return self.many(tx, "WHERE revoked_at IS NULL AND until_at > :now_at ORDER BY id", now_at=now_at)


class UserRepository(AuthorityTable[User]):
    """The users."""

    def __init__(self) -> None:
        super().__init__("users", User, changes=("role", "disabled_at", "password_hash"))

    def by_name(self, tx: Transaction, username: str) -> User | None:
        """Return the user of this name, whatever its case. Names are ASCII, so any other text finds no user."""
        if not username.isascii():
            return None
        return self.one(tx, "WHERE lower(username) = :folded", folded=username.lower())

    def count_active(self, tx: Transaction, role: Role) -> int:
        """Count the users of a role who may sign in."""
        return self.count(tx, "WHERE role = :role AND disabled_at IS NULL", role=role.value)
