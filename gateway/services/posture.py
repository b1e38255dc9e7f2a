"""Gather what is so on this host, and let the posture checks and the threat formula judge it. Changes nothing."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import anyio
import anyio.to_thread

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
from gateway.services.runtime_settings import RuntimeSettings
from gateway.services.trust_facts import keys_observed, offline_share, stored_facts
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.shield.examples import run_examples
from gateway.store.database import Transaction
from gateway.store.store import Store

CHAIN_CACHE_SECONDS = 300.0
AUTH_FAILURES = ("api_key_refused", "sign_in_failed", "sign_in_throttled", "session_refused")
FIRST_CREDENTIALS = "first-credentials.txt"
_FILES_LOOKED_AT = 1000
_SAMPLED_RULES = 60


@dataclass(frozen=True, slots=True)
class PostureReport:
    """The two scores, how they come about, and the state of each service.

    posture_score: of the newest trust audit, None before the first: what nobody has checked has no number.
    """

    posture_score: int | None
    threat_score: int
    threat: tuple[ThreatPart, ...]
    services: Mapping[str, str]
    trust_audit: TrustAudit | None


@dataclass(frozen=True, slots=True)
class _FileFacts:
    """What the file system says. Modes are permission bits; None means not there, or no such thing on this system."""

    data_dir_mode: int | None = None
    open_files: tuple[str, ...] | None = None
    tls_key_mode: int | None = None
    has_first_credentials: bool = False
    free_bytes: int | None = None


class Posture:
    """Checks how this gateway is set up and how much it is under attack. Every number of both scores is read here."""

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
        """Run every check once. Return whose settings were judged, an instance or THIS_SHELL, and the checks.

        The audit chain is verified again after five minutes, the rules only once.
        """
        judged = await self._store.db.read(self.running.judged)
        async with self._lock:  # the slow parts are looked at once, however many ask
            chain = await self._verified()
            if self._weak_rules is None:
                self._weak_rules = await anyio.to_thread.run_sync(_weak_rules, self._shield, self._settings.rules)
        weak_rules = self._weak_rules if judged.gateway.rules_digest == self._shield.digest else None
        return judged.settings_of, trust_audits.run(await self._facts(judged.gateway, chain, weak_rules))

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
        """Return both scores as they are now as one point of their course."""
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

    async def _facts(
        self, gateway: RunningGateway, chain: ChainReport | None, weak_rules: tuple[str, ...] | None
    ) -> Facts:
        now_at = self._clock.now_at()
        files = await anyio.to_thread.run_sync(_file_facts, self._settings.data_dir, gateway.tls_key)
        keys = await self._store.db.read(self._store.keys.all)
        stored = await self._store.db.read(lambda tx: stored_facts(self._store, tx, gateway.rules_digest, now_at))
        days = await self._store.db.read(lambda tx: self._retention(tx, gateway))
        problem = await anyio.to_thread.run_sync(archive_problem, gateway.archive)
        newest = await self._audit.page(AuditFilter(limit=1))
        return Facts(
            **{field.name: getattr(gateway.facts, field.name) for field in fields(gateway.facts)},
            now_at=now_at,
            weak_rules=weak_rules,
            keys=[key for key in keys if key.revoked_at is None],
            in_memory=self._settings.data_dir == ":memory:",
            data_dir_mode=files.data_dir_mode,
            open_files=files.open_files,
            tls_key_mode=files.tls_key_mode,
            has_first_credentials=files.has_first_credentials,
            free_bytes=files.free_bytes,
            audit_events=chain.events if chain else None,
            chain_problem=None if chain is None else "" if chain.ok else chain.reason or "the chain is broken",
            newest_at=newest.items[0].occurred_at if newest.items else None,
            archive_problem=problem,
            **stored,
            **days,
        )

    def _activity(self, tx: Transaction, gateway: RunningGateway) -> Activity:
        """Read what the last 24 hours brought. More than the newest 1,000 of a kind would not change the score."""
        now_at = self._clock.now_at()

        def times_at(action: str) -> list[int]:
            return self._store.audit.times_at(tx, action, since=now_at - DAY_MS, limit=MAX_AUDIT_LIMIT)

        alerts = self._store.alerts.page(tx, AlertFilter(scope="active", limit=MAX_ALERT_LIMIT)).items
        return Activity(
            now_at=now_at,
            blocks_at=times_at("shield_scan_block") + times_at("chat_blocked"),
            alerts=[ActiveAlert(alert.severity, alert.last_seen_at) for alert in alerts],
            auth_failures_at=[at for action in AUTH_FAILURES for at in times_at(action)],
            is_bypassed=gateway.facts.shield_mode != ShieldMode.BLOCK.value or self._has_observed(tx),
            budget_breaches_at=self._budget_breaches(tx, now_at),
            offline_share=offline_share(self._store, tx, now_at),
        )

    def _retention(self, tx: Transaction, gateway: RunningGateway) -> dict[str, Any]:
        """Return how long audit events and traffic are kept."""
        settings = replace(
            self._settings,
            retention_audit_days=gateway.retention_audit_days,
            retention_traffic_days=gateway.retention_traffic_days,
        )
        now = RuntimeSettings(store=self._store, audit=self._audit, settings=settings)
        kept = {"audit_days": "retention_audit_days", "traffic_days": "retention_traffic_days"}
        return {name: now.value(tx, setting) for name, setting in kept.items()}

    def _budget_breaches(self, tx: Transaction, now_at: int) -> list[int]:
        wanted = AlertFilter(source=AlertSource.BUDGET, since=now_at - DAY_MS, limit=MAX_ALERT_LIMIT)
        return [alert.last_seen_at for alert in self._store.alerts.page(tx, wanted).items]

    def _has_observed(self, tx: Transaction) -> bool:
        """Tell whether a policy that only observes is in use by a key."""
        return bool(keys_observed(self._store, tx, self._clock.now_at()))


def _weak_rules(shield: Shield, path: str | None) -> tuple[str, ...]:
    """Return the rules one of whose own examples does not hold. path: of the rule file, None for the built-in rules.

    The tests of a release run all examples of the built-in rules. Here a sample of them shows that the shield works on
    this host: to run them all would compile each rule, which takes seconds and memory.
    """
    step = 1 if path else max(1, len(shield.rules) // _SAMPLED_RULES)
    return tuple(dict.fromkeys(failure.rule for failure in run_examples(shield, step=step).failures))


def _file_facts(folder: str, tls_key: str | None) -> _FileFacts:
    """Look at the data folder and the TLS key. Windows has other permissions, so its bits are not judged."""
    has_modes = os.name == "posix"
    tls_key_mode = _mode(tls_key) if tls_key and has_modes else None
    if folder == ":memory:" or not os.path.isdir(folder):
        return _FileFacts(tls_key_mode=tls_key_mode)
    return _FileFacts(
        data_dir_mode=_mode(folder) if has_modes else None,
        open_files=_open_files(folder) if has_modes else None,
        tls_key_mode=tls_key_mode,
        has_first_credentials=os.path.exists(os.path.join(folder, FIRST_CREDENTIALS)),
        free_bytes=_free_bytes(folder),
    )


def _free_bytes(folder: str) -> int:
    """Return what `shutil.disk_usage` has as free, without loading it where the system can be asked."""
    if os.name == "posix":
        told = os.statvfs(folder)
        return told.f_bavail * told.f_frsize
    import shutil

    return shutil.disk_usage(folder).free


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _open_files(folder: str) -> tuple[str, ...] | None:
    """Return the files of a folder that others than their owner may use, with their modes; None without any file."""
    with os.scandir(folder) as entries:
        files = [entry for entry, _ in zip(entries, range(_FILES_LOOKED_AT), strict=False)]
    modes = {entry.name: _mode(entry.path) or 0 for entry in files if entry.is_file(follow_symlinks=False)}
    return tuple(f"{name} (mode {mode:04o})" for name, mode in sorted(modes.items()) if mode & 0o177) if modes else None
