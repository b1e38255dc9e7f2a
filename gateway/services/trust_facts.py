"""Facts of the trust audit that stand in the database. Changes nothing."""

from typing import Any

from gateway.domain.agents import AgentSource
from gateway.domain.alerts import MAX_ALERT_LIMIT, AlertFilter
from gateway.domain.audit import MAX_AUDIT_LIMIT, AuditFilter
from gateway.domain.fleet import STALE_MS
from gateway.domain.policies import Capture, ShieldMode
from gateway.domain.posture import DAY_MS
from gateway.domain.principals import Role
from gateway.domain.risk_acceptances import AcceptanceScope
from gateway.domain.trust_audit_facts import AgentFact, OutputFact, ProviderFact
from gateway.services.circuits import PROVIDER_DOWN
from gateway.services.shield_tests import last_run
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

CAPTURE_DAYS_GOOD = 30
_WHOLE_SUITE = ("shield_tests::False", "shield_tests::True")
"""Where `services.shield_tests` keeps the last runs over all categories, without and with known gaps."""


def stored_facts(store: Store, tx: Transaction, rules_digest: str, now_at: int) -> dict[str, Any]:
    """Return fields of `Facts` by name, as the database has them now. rules_digest: of the rules in use."""
    return {
        "keys_observed": keys_observed(store, tx, now_at),
        "backup_at": _newest(store, tx, "backup_created"),
        "first_event_at": store.audit.first_at(tx),
        "sign_in_failures": _count(store, tx, "sign_in_failed", now_at),
        "key_refusals": _count(store, tx, "api_key_refused", now_at),
        "admins": store.users.count_active(tx, Role.ADMIN),
        "old_critical_alerts": _old_critical(store, tx, now_at),
        "access_entries": len(store.access_list.versions(tx)),
        "outputs": _outputs(store, tx),
        "providers": _providers(store, tx),
        "budgets": store.budgets.count(tx),
        "agents": _agents(store, tx),
        "broad_acceptances": tuple(
            one.id for one in store.risk_acceptances.active(tx, now_at=now_at) if one.scope is AcceptanceScope.RULE
        ),
        **_captures(store, tx),
        **_suite(store, tx, rules_digest),
    }


def _captures(store: Store, tx: Transaction) -> dict[str, Any]:
    policies = [policy for policy in store.policies.all(tx) if policy.capture is not Capture.NONE]
    return {
        "captures_full": tuple(policy.name for policy in policies if policy.capture is Capture.FULL),
        "captures_long": tuple(policy.name for policy in policies if policy.capture_days > CAPTURE_DAYS_GOOD),
    }


def keys_observed(store: Store, tx: Transaction, now_at: int) -> tuple[str, ...]:
    """Return the prefixes of active keys whose policy lets attacks through."""
    observing = {policy.id for policy in store.policies.all(tx) if policy.mode is ShieldMode.OBSERVE}
    keys = store.keys.all(tx) if observing else ()
    return tuple(key.prefix for key in keys if key.policy in observing and key.status(now_at) == "active")


def offline_share(store: Store, tx: Transaction, now_at: int) -> float:
    """Return how much of the fleet was not heard of for five minutes, 0 to 1."""
    beats = store.instances.all(tx)
    return sum(now_at - beat.last_seen_at > STALE_MS for beat in beats) / len(beats) if beats else 0.0


def _newest(store: Store, tx: Transaction, action: str) -> int | None:
    events = store.audit.page(tx, AuditFilter(action=action, limit=1)).items
    return events[0].occurred_at if events else None


def _count(store: Store, tx: Transaction, action: str, now_at: int) -> int:
    """Count events of a day, up to a thousand: more would not change a finding."""
    return len(store.audit.times_at(tx, action, since=now_at - DAY_MS, limit=MAX_AUDIT_LIMIT))


def _old_critical(store: Store, tx: Transaction, now_at: int) -> int:
    wanted = AlertFilter(severity=Severity.CRITICAL, scope="active", until=now_at - DAY_MS, limit=MAX_ALERT_LIMIT)
    return len(store.alerts.page(tx, wanted).items)


def _outputs(store: Store, tx: Transaction) -> tuple[OutputFact, ...]:
    """Return the outputs in use. One fails when the last that is known of it is an error."""
    return tuple(
        OutputFact(one.name, is_failing=(one.last_error_at or 0) > (one.last_sent_at or 0))
        for one in store.event_outputs.all(tx)
        if one.enabled
    )


def _providers(store: Store, tx: Transaction) -> tuple[ProviderFact, ...]:
    wanted = AlertFilter(rule=PROVIDER_DOWN, scope="active", limit=MAX_ALERT_LIMIT)
    down = [alert.title for alert in store.alerts.page(tx, wanted).items]
    return tuple(
        ProviderFact(
            one.name,
            one.base_url or "",
            enabled=one.enabled,
            is_down=any(one.name in title for title in down),
            is_private=one.allow_private,
        )
        for one in store.providers.all(tx)
    )


def _agents(store: Store, tx: Transaction) -> tuple[AgentFact, ...]:
    return tuple(
        AgentFact(one.name, one.tools, is_registered=one.source in (AgentSource.MANUAL, AgentSource.IMPORT))
        for _, one in store.agents.positions(tx)
        if one.retired_at is None and one.blocked_at is None and one.origin == store.traffic.origin
    )


def _suite(store: Store, tx: Transaction, rules_digest: str) -> dict[str, Any]:
    runs = [run for name in _WHOLE_SUITE if (run := last_run(store, tx, name))]
    if not runs:
        return {}
    run = max(runs, key=lambda run: run.ran_at)
    return {
        "suite_at": run.ran_at,
        "suite_failures": len(run.report.failures),
        "suite_is_stale": run.rules_digest != rules_digest,
        "unexercised": len(run.report.unexercised),
    }
