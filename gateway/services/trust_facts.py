"""Read the facts of the trust audit from the database and the files of the host. Changes nothing."""

import os
import shutil
import stat
from itertools import islice
from typing import Any

from gateway.domain.alerts import MAX_ALERT_LIMIT, AlertFilter
from gateway.domain.audit import MAX_AUDIT_LIMIT, AuditFilter
from gateway.domain.policies import Capture, ShieldMode
from gateway.domain.posture import DAY_MS
from gateway.domain.principals import Role
from gateway.domain.risk_acceptances import AcceptanceScope
from gateway.domain.trust_audit_facts import RunningGateway
from gateway.services.circuits import PROVIDER_DOWN
from gateway.services.first_start import FILE
from gateway.services.runtime_settings import changed_days
from gateway.services.shield_tests import last_run
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

CAPTURE_DAYS_GOOD = 30
_MAX_FILES = 1000
_WHOLE_SUITE = ("shield_tests::False", "shield_tests::True")
"""Where `services.shield_tests` stores the last runs over all categories, without and with known gaps."""


def stored_facts(store: Store, tx: Transaction, gateway: RunningGateway, now_at: int) -> dict[str, Any]:
    """Return the fields of `Facts` that the database has, by name."""

    def newest_at(action: str | None = None) -> int | None:
        events = store.audit.page(tx, AuditFilter(action=action, limit=1)).items
        return events[0].occurred_at if events else None

    def count(action: str) -> int:
        """Count the events of a day, up to a thousand: more would not change a check."""
        return len(store.audit.times_at(tx, action, since=now_at - DAY_MS, limit=MAX_AUDIT_LIMIT))

    def days(name: str) -> int:
        changed = changed_days(store, tx, f"retention_{name}_days")
        return int(getattr(gateway, f"retention_{name}_days")) if changed is None else changed

    old_critical = AlertFilter(severity=Severity.CRITICAL, scope="active", until=now_at - DAY_MS, limit=MAX_ALERT_LIMIT)
    captures = [policy for policy in store.policies.all(tx) if policy.capture is not Capture.NONE]
    accepted = store.risk_acceptances.active(tx, now_at=now_at)
    outputs = [one for one in store.event_outputs.all(tx) if one.enabled]
    providers = tuple(one for one in store.providers.all(tx) if one.enabled)
    detectors = [one for one in store.detectors.all(tx) if one.enabled]
    down_alerts = AlertFilter(rule=PROVIDER_DOWN, scope="active", limit=MAX_ALERT_LIMIT)
    down = [alert.title for alert in store.alerts.page(tx, down_alerts).items]
    return {
        "keys": [key for key in store.keys.all(tx) if key.revoked_at is None],
        "keys_observed": keys_observed(store, tx, now_at),
        "newest_at": newest_at(),
        "backup_at": newest_at("backup_created"),
        "first_event_at": store.audit.first_at(tx),
        "sign_in_failures": count("sign_in_failed"),
        "key_refusals": count("api_key_refused"),
        "admins": store.users.count_active(tx, Role.ADMIN),
        "old_critical_alerts": len(store.alerts.page(tx, old_critical).items),
        "access_entries": len(store.access_list.versions(tx)),
        "outputs": tuple(one.name for one in outputs),
        "failing_outputs": tuple(one.name for one in outputs if (one.last_error_at or 0) > (one.last_sent_at or 0)),
        "providers": providers,
        "providers_down": tuple(one.name for one in providers if any(one.name in title for title in down)),
        "detectors": len(detectors),
        "open_detectors": tuple(one.name for one in detectors if one.is_open),
        "budgets": store.budgets.count(tx),
        "agents": tuple(
            one
            for _, one in store.agents.positions(tx)
            if one.retired_at is None and one.blocked_at is None and one.origin == store.traffic.origin
        ),
        "broad_acceptances": tuple(one.id for one in accepted if one.scope is AcceptanceScope.RULE),
        "captures_full": tuple(policy.name for policy in captures if policy.capture is Capture.FULL),
        "captures_long": tuple(policy.name for policy in captures if policy.capture_days > CAPTURE_DAYS_GOOD),
        "audit_days": days("audit"),
        "traffic_days": days("traffic"),
        **_suite(store, tx, gateway.rules_digest),
    }


def keys_observed(store: Store, tx: Transaction, now_at: int) -> tuple[str, ...]:
    """Return the prefixes of active keys whose policy lets attacks through."""
    observing = {policy.id for policy in store.policies.all(tx) if policy.mode is ShieldMode.OBSERVE}
    keys = store.keys.all(tx) if observing else ()
    return tuple(key.prefix for key in keys if key.policy in observing and key.status_at(now_at) == "active")


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


def file_facts(folder: str, tls_key: str | None) -> dict[str, Any]:
    """Return the fields of `Facts` about files: None where a file is missing, or where the system has no modes."""
    has_modes = os.name == "posix"
    has_folder = folder != ":memory:" and os.path.isdir(folder)
    return {
        "data_dir_mode": _mode(folder) if has_folder and has_modes else None,
        "open_files": _open_files(folder) if has_folder and has_modes else None,
        "tls_key_mode": _mode(tls_key) if tls_key and has_modes else None,
        "has_first_credentials": has_folder and os.path.exists(os.path.join(folder, FILE)),
        "free_bytes": shutil.disk_usage(folder).free if has_folder else None,
    }


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _open_files(folder: str) -> tuple[str, ...] | None:
    """Return the files in a folder that users other than the owner can use, with their modes; None without files."""
    with os.scandir(folder) as entries:
        files = [entry for entry in islice(entries, _MAX_FILES) if entry.is_file(follow_symlinks=False)]
    modes = {entry.name: _mode(entry.path) or 0 for entry in files}
    return tuple(f"{name} (mode {mode:04o})" for name, mode in sorted(modes.items()) if mode & 0o177) if modes else None
