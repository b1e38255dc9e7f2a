"""What a serving gateway keeps in the database of its settings and facts, for commands that judge it from a shell."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from gateway import bundle
from gateway.clock import Clock
from gateway.domain.fleet import ONLINE_MS
from gateway.domain.policies import ShieldPolicy
from gateway.domain.trust_audit_facts import ProcessFacts, RunningGateway
from gateway.errors import Conflict, InvalidRequest
from gateway.schema import decode, encode
from gateway.services.health import Health
from gateway.settings import Settings, is_loopback
from gateway.shield import Shield, data_files
from gateway.shield.data_files import RULES_FILE
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import read_json, write_json

THIS_SHELL = "this shell"


@dataclass(frozen=True, slots=True)
class Judged:
    """A gateway as it is judged. settings_of: the id of the one that serves, or THIS_SHELL when none does."""

    settings_of: str
    gateway: RunningGateway


class Running:
    """Notes what this process is, and finds what the one that serves has noted.

    is_shell: this process is a command and serves nobody, so it judges the one that does.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        shield: Shield,
        store: Store,
        health: Health,
        clock: Clock,
        policy: ShieldPolicy,
        is_shell: bool,
    ) -> None:
        self._settings = settings
        self._shield = shield
        self._store = store
        self._health = health
        self._clock = clock
        self._policy = policy
        self._is_shell = is_shell

    async def note(self) -> None:
        """Write what this process is. One that serves does so at its start, at a reload and with each heartbeat."""
        now_at, text = self._clock.now_at(), write_json(encode(self._own())).decode()
        store = self._store
        await store.db.write(lambda tx: store.running.note(tx, store.instance_id, now_at, text), is_durable=False)

    def judged(self, tx: Transaction) -> Judged:
        """Return the gateway to judge: the one that serves, else this process."""
        if not self._is_shell:
            return Judged(self._store.instance_id, self._own())
        found = self._store.running.newest(tx, since=self._clock.now_at() - ONLINE_MS)
        try:
            return Judged(found[0], decode(RunningGateway, read_json(found[1].encode())))
        except (IndexError, InvalidRequest):  # none, or one of another version
            return Judged(THIS_SHELL, self._own())

    async def check_rules(self) -> None:
        """Check that this process scans as the gateway does that it stands for.

        Raises:
            Conflict: this is a command beside a serving gateway that has other rules.
        """
        judged = await self._store.db.read(self.judged)
        if judged.gateway.rules_digest != self._shield.digest:
            raise Conflict(
                f"The running gateway {judged.settings_of} has other rules than this program, so nothing was scanned. "
                "Start this program with the GATEWAY_RULES of the gateway."
            )

    @cached_property
    def rules_lack(self) -> str:
        """Return what the rules of the settings leave out; see the function of that name."""
        return rules_lack(self._shield, self._settings.rules)

    def _own(self) -> RunningGateway:
        settings = self._settings
        return RunningGateway(
            facts=self._facts(),
            rules_digest=self._shield.digest,
            archive=bundle.archive_path(),
            tls_key=settings.tls_key and os.path.abspath(settings.tls_key),
            retention_audit_days=settings.retention_audit_days,
            retention_traffic_days=settings.retention_traffic_days,
            services=self._health.checks(),
        )

    def _facts(self) -> ProcessFacts:
        settings, policy = self._settings, self._policy
        upstream = urlsplit(settings.upstream_url or "")
        return ProcessFacts(
            host=settings.host,
            is_loopback=is_loopback(settings.host),
            has_tls=settings.tls_cert is not None,
            rbac_enabled=settings.rbac_enabled,
            allowed_hosts=settings.allowed_hosts,
            trusted_proxies=settings.trusted_proxies,
            upstream_url=f"{upstream.scheme}://{upstream.hostname}" if settings.upstream_url else None,
            is_upstream_local=is_loopback(upstream.hostname or ""),
            shield_mode=policy.mode.value,
            unscannable=policy.unscannable.value,
            tool_injection=policy.tool_injection,
            block_at=policy.scoring.block_at,
            review_at=policy.scoring.review_at,
            log_level=settings.log_level,
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
            rules_count=len(self._shield.rules),
            rules_lack=self.rules_lack,
            matcher=self._shield.matcher,
            mcp_enabled=settings.mcp_enabled,
            mcp_key_chars=len(settings.mcp_api_key or ""),
        )


def rules_lack(shield: Shield, path: str | None) -> str:
    """Return what a rule file in place of the built-in one leaves out, empty when it leaves out nothing.

    path: of the file that the rules are from, None for the built-in ones. Half of the rules will do if each of the
    built-in categories has one.
    """
    if path is None:
        return ""
    builtin = json.loads(data_files.read(RULES_FILE))["rules"]
    missing = sorted({rule["category"] for rule in builtin} - {rule.category for rule in shield.rules})
    if 2 * len(shield.rules) >= len(builtin) and not missing:
        return ""
    lacks = f", and none of the categories {', '.join(missing)}" if missing else ""
    return f"the rule file has {len(shield.rules)} rules in place of the {len(builtin)} built-in ones{lacks}"
