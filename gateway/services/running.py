"""The settings and facts that a serving gateway stores in the database, so that commands on its host can check it."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from gateway import bundle
from gateway.domain.fleet import ONLINE_MS
from gateway.domain.policies import ShieldPolicy
from gateway.domain.trust_audit_facts import ProcessFacts, RunningGateway
from gateway.errors import Conflict, InvalidRequest
from gateway.schema import decode, encode
from gateway.services.health import Health
from gateway.settings import Settings, is_loopback
from gateway.shield import Shield, data_files
from gateway.shield.data_files import RULES_FILE
from gateway.shield.rules import LOCAL
from gateway.store.database import Transaction
from gateway.store.store import Store
from gateway.strict_json import read_json, write_json

THIS_SHELL = "this shell"


@dataclass(kw_only=True, eq=False, repr=False)
class Running:
    """Stores the facts of this process, and finds those of the serving one.

    is_shell: this process is a command that serves nobody, so it checks the gateway that serves.
    """

    settings: Settings
    shield: Shield
    store: Store
    health: Health
    policy: ShieldPolicy
    is_shell: bool = False

    async def save(self) -> None:
        """Store the facts of this process. A serving gateway does so at start, at a reload and with each heartbeat."""
        store = self.store
        text = write_json(encode(self._own(store.node_id, await self.health.checks()))).decode()
        await store.db.write(lambda tx: store.running.note(tx, store.node_id, tx.now_at(), text), is_durable=False)

    async def forget(self) -> None:
        """Remove the stored facts of this host's gateway: it does not serve any more, or not yet."""
        store = self.store
        await store.db.write(lambda tx: store.running.forget(tx, store.node_id), is_durable=False)

    def checked(self, tx: Transaction) -> RunningGateway:
        """Return the gateway to check: the one that serves on this host, else this process."""
        if not self.is_shell:
            return self._own(self.store.node_id, self.health.states())
        stored = self.store.running.find(tx, self.store.node_id, since=tx.now_at() - ONLINE_MS)
        try:
            if stored is not None:
                return decode(RunningGateway, read_json(stored.encode()))
        except InvalidRequest:  # a gateway of another version serves
            pass
        return self._own(THIS_SHELL, self.health.states())

    async def check_rules(self) -> None:
        """Raise Conflict unless this process scans with the rules of the serving gateway."""
        checked = await self.store.db.read(self.checked)
        if checked.rules_digest != self.shield.digest:
            raise Conflict(
                f"The running gateway {checked.settings_of} has other rules than this program, so nothing was scanned. "
                "Start this program with the GATEWAY_RULES of the gateway."
            )

    @cached_property
    def rules_lack(self) -> str:
        """What the configured rules leave out; see the function `rules_lack`."""
        return rules_lack(self.shield, self.settings.rules)

    def _own(self, settings_of: str, services: dict[str, str]) -> RunningGateway:
        settings = self.settings
        return RunningGateway(
            settings_of=settings_of,
            facts=self._facts(),
            rules_digest=self.shield.digest,
            archive=bundle.archive_path(),
            tls_key=settings.tls_key and os.path.abspath(settings.tls_key),
            retention_audit_days=settings.retention_audit_days,
            retention_traffic_days=settings.retention_traffic_days,
            services=services,
        )

    def _facts(self) -> ProcessFacts:
        settings, policy = self.settings, self.policy
        upstream = urlsplit(settings.upstream_url or "")
        as_set = ("host", "rbac_enabled", "allowed_hosts", "trusted_proxies", "log_level", "mcp_enabled")
        return ProcessFacts(
            **{name: getattr(settings, name) for name in as_set},
            is_loopback=is_loopback(settings.host),
            has_tls=settings.tls_cert is not None,
            upstream_url=f"{upstream.scheme}://{upstream.hostname}" if settings.upstream_url else None,
            is_upstream_local=is_loopback(upstream.hostname or ""),
            shield_mode=policy.mode.value,
            unscannable=policy.unscannable.value,
            tool_injection=policy.tool_injection,
            block_at=policy.scoring.block_at,
            review_at=policy.scoring.review_at,
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
            rules_count=len(self.shield.rules),
            rules_lack=self.rules_lack,
            matcher=self.shield.matcher,
            mcp_key_chars=len(settings.mcp_api_key or ""),
        )


def rules_lack(shield: Shield, path: str | None) -> str:
    """Return what a custom rule file leaves out, or an empty text.

    path: of the rule file, None for the built-in rules. A file with half as many rules as the built-in one leaves
    nothing out if it covers each built-in category.
    """
    if path is None:
        return ""
    own = [rule for rule in shield.rules if not rule.id.startswith(LOCAL)]
    builtin = json.loads(data_files.read(RULES_FILE))["rules"]
    missing = sorted({rule["category"] for rule in builtin} - {rule.category for rule in own})
    if 2 * len(own) >= len(builtin) and not missing:
        return ""
    lacks = f", and none of the categories {', '.join(missing)}" if missing else ""
    return f"the rule file has {len(own)} rules in place of the {len(builtin)} built-in ones{lacks}"
