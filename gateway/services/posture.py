"""Run the posture checks and compute the posture and threat scores. Changes nothing.

This module gathers the facts from the host, the running gateway and the database. The checks and formulas are pure
functions in `domain/`.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import anyio
from anyio import to_thread

from gateway.clock import Clock
from gateway.domain import trust_audits
from gateway.domain.alerts import MAX_ALERT_LIMIT, AlertFilter, AlertSource
from gateway.domain.audit import MAX_AUDIT_LIMIT, AuditFilter, ChainReport
from gateway.domain.policies import ShieldMode, ShieldPolicy
from gateway.domain.posture import (
    DAY_MS,
    ActiveAlert,
    Activity,
    Check,
    PosturePoint,
    ThreatPart,
    TrustAudit,
    threat_parts,
    threat_score,
)
from gateway.domain.trust_audit_facts import Facts, RunningGateway
from gateway.errors import GatewayError
from gateway.services.archive_check import archive_problem
from gateway.services.audit import Audit
from gateway.services.health import Health
from gateway.services.running import Running
from gateway.services.runtime_settings import changed_days
from gateway.services.trust_facts import keys_observed, offline_share, stored_facts
from gateway.settings import Settings
from gateway.shield import Shield, data_files
from gateway.shield.data_files import RULES_FILE
from gateway.shield.examples import run_examples
from gateway.store.database import Transaction
from gateway.store.store import Store

CHAIN_CACHE_SECONDS = 300.0
AUTH_FAILURES = ("api_key_refused", "sign_in_failed", "sign_in_throttled", "session_refused")
FIRST_CREDENTIALS = "first-credentials.txt"
_MAX_FILES = 1000


@dataclass(frozen=True, slots=True)
class PostureReport:
    """The two scores, the parts of the threat score, and the state of each service.

    posture_score: the score of the newest trust audit, None before the first one.
    """

    posture_score: int | None
    threat_score: int
    threat: tuple[ThreatPart, ...]
    services: Mapping[str, str]
    trust_audit: TrustAudit | None


class Posture:
    """Checks how this gateway is set up (posture) and how much it is under attack (threat)."""

    def __init__(
        self,
        *,
        settings: Settings,
        shield: Shield,
        store: Store,
        audit: Audit,
        health: Health,
        clock: Clock,
        policy: ShieldPolicy,
        is_shell: bool = False,
    ) -> None:
        self.running = Running(
            settings=settings,
            shield=shield,
            store=store,
            health=health,
            clock=clock,
            policy=policy,
            is_shell=is_shell,
        )
        self._settings = settings
        self._shield = shield
        self._store = store
        self._audit = audit
        self._clock = clock
        self._lock = anyio.Lock()
        self._chain: ChainReport | None = None
        self._chain_seconds = 0.0
        self._weak_rules: tuple[str, ...] | None = None

    async def check(self) -> tuple[str, tuple[Check, ...]]:
        """Run every check once. Return the instance whose settings were checked, or THIS_SHELL, and the checks.

        The audit chain is verified again after five minutes, the rules only once.
        """
        judged = await self._store.db.read(self.running.judged)
        async with self._lock:  # concurrent audits share the slow checks
            chain = await self._verified()
            self_test = await to_thread.run_sync(self._self_test, judged.gateway.rules_digest)
        return judged.settings_of, trust_audits.run(await self._facts(judged.gateway, chain, self_test))

    def report(self, tx: Transaction) -> PostureReport:
        """Return both scores as they are now, without running a check."""
        gateway = self.running.judged(tx).gateway
        activity, latest = self._activity(tx, gateway), self._store.trust_audits.latest(tx)
        return PostureReport(
            posture_score=latest.score if latest else None,
            threat_score=threat_score(activity),
            threat=threat_parts(activity),
            services=gateway.services,
            trust_audit=latest,
        )

    def point(self, tx: Transaction) -> PosturePoint:
        """Return both scores as they are now as one point of their history."""
        report = self.report(tx)
        return PosturePoint(self._clock.now_at(), report.threat_score, report.posture_score)

    async def _verified(self) -> ChainReport | None:
        now_seconds = self._clock.monotonic_seconds()
        if self._chain is None or now_seconds - self._chain_seconds >= CHAIN_CACHE_SECONDS:
            try:
                self._chain = await self._audit.verify()
            except GatewayError:
                return None
            self._chain_seconds = now_seconds
        return self._chain

    def _self_test(self, rules_digest: str) -> dict[str, Any]:
        """Run the rules' own examples, unless the rules are the built-in ones or this process has other rules.

        The tests of a release run all examples of the built-in rules. Here they would compile every regex, which
        takes seconds of CPU and megabytes of memory.
        """
        if rules_digest == hashlib.sha256(data_files.read(RULES_FILE)).hexdigest():
            return {"are_rules_builtin": True, "weak_rules": ()}
        if rules_digest != self._shield.digest:
            return {"weak_rules": None}
        if self._weak_rules is None:
            failures = run_examples(self._shield).failures
            self._weak_rules = tuple(dict.fromkeys(failure.rule for failure in failures))
        return {"weak_rules": self._weak_rules}

    async def _facts(self, gateway: RunningGateway, chain: ChainReport | None, self_test: Mapping[str, Any]) -> Facts:
        now_at = self._clock.now_at()
        keys = await self._store.db.read(self._store.keys.all)
        stored = await self._store.db.read(lambda tx: stored_facts(self._store, tx, gateway.rules_digest, now_at))
        days = await self._store.db.read(lambda tx: self._retention(tx, gateway))
        newest = await self._audit.page(AuditFilter(limit=1))
        return Facts(
            **asdict(gateway.facts),
            now_at=now_at,
            keys=[key for key in keys if key.revoked_at is None],
            in_memory=self._settings.data_dir == ":memory:",
            audit_events=chain.events if chain else None,
            chain_problem=None if chain is None else "" if chain.ok else chain.reason or "the chain is broken",
            newest_at=newest.items[0].occurred_at if newest.items else None,
            archive_problem=await to_thread.run_sync(archive_problem, gateway.archive),
            **await to_thread.run_sync(_file_facts, self._settings.data_dir, gateway.tls_key),
            **self_test,
            **stored,
            **days,
        )

    def _activity(self, tx: Transaction, gateway: RunningGateway) -> Activity:
        """Read the events of the last 24 hours, the newest 1,000 of each kind: more would change no score."""
        now_at = self._clock.now_at()
        since = now_at - DAY_MS

        def times_at(action: str) -> list[int]:
            return self._store.audit.times_at(tx, action, since=since, limit=MAX_AUDIT_LIMIT)

        alerts = self._store.alerts.page(tx, AlertFilter(scope="active", limit=MAX_ALERT_LIMIT)).items
        budget_alerts = AlertFilter(source=AlertSource.BUDGET, since=since, limit=MAX_ALERT_LIMIT)
        is_observing = gateway.facts.shield_mode != ShieldMode.BLOCK.value
        return Activity(
            now_at=now_at,
            blocks_at=times_at("shield_scan_block") + times_at("chat_blocked"),
            alerts=[ActiveAlert(alert.severity, alert.last_seen_at) for alert in alerts],
            auth_failures_at=[at for action in AUTH_FAILURES for at in times_at(action)],
            is_bypassed=is_observing or bool(keys_observed(self._store, tx, now_at)),
            budget_breaches_at=[alert.last_seen_at for alert in self._store.alerts.page(tx, budget_alerts).items],
            offline_share=offline_share(self._store, tx, now_at),
        )

    def _retention(self, tx: Transaction, gateway: RunningGateway) -> dict[str, Any]:
        audit_days = changed_days(self._store, tx, "retention_audit_days")
        traffic_days = changed_days(self._store, tx, "retention_traffic_days")
        return {
            "audit_days": gateway.retention_audit_days if audit_days is None else audit_days,
            "traffic_days": gateway.retention_traffic_days if traffic_days is None else traffic_days,
        }


def _file_facts(folder: str, tls_key: str | None) -> dict[str, Any]:
    """Return the fields of `Facts` about files: None where a file is missing, or where the system has no modes."""
    has_modes = os.name == "posix"
    has_folder = folder != ":memory:" and os.path.isdir(folder)
    return {
        "data_dir_mode": _mode(folder) if has_folder and has_modes else None,
        "open_files": _open_files(folder) if has_folder and has_modes else None,
        "tls_key_mode": _mode(tls_key) if tls_key and has_modes else None,
        "has_first_credentials": has_folder and os.path.exists(os.path.join(folder, FIRST_CREDENTIALS)),
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
