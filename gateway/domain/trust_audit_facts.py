"""The facts of this host that the trust audit checks. Pure: the services gather them."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.agents import AgentRecord
from gateway.domain.keys import KeyRecord
from gateway.domain.providers import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """The settings and rules of the serving process, without secrets.

    rules_lack: what a custom rule file leaves out, empty when it leaves out nothing.
    """

    host: str
    is_loopback: bool
    has_tls: bool
    rbac_enabled: bool
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    upstream_url: str | None
    is_upstream_local: bool
    shield_mode: str
    unscannable: str
    tool_injection: bool
    block_at: int
    review_at: int
    log_level: str
    is_root: bool
    rules_count: int
    matcher: str
    mcp_enabled: bool
    mcp_key_chars: int
    rules_lack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """The record that a serving gateway keeps for commands on its host.

    settings_of: the id of the gateway, or `this shell` for the facts of a command while no gateway runs. archive: its
    path, None in a checkout. tls_key: the path of the key. services: the state of each.
    """

    settings_of: str
    facts: ProcessFacts
    rules_digest: str
    archive: str | None
    tls_key: str | None
    retention_audit_days: int
    retention_traffic_days: int
    services: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(ProcessFacts):
    """The facts of this host at `now_at`. None means that a fact is unavailable.

    keys: every key that is not revoked. weak_rules: ids of rules that miss their own examples, None if they were
    not tried. *_mode: permission bits. open_files: files in the data folder that other users may access, with their
    modes; None without files. free_bytes: on the file system of the data folder. newest_at: the time of the newest
    audit event. chain_problem: empty when the audit chain verifies. keys_observed: prefixes of active keys whose
    policy only observes. suite_*: the last run of the validation suite; stale: with other rules than now.
    archive_problem: None in a checkout, empty when the archive matches its manifest. sign_in_failures,
    key_refusals: in the last 24 hours. old_critical_alerts: active for more than 24 hours. *_days: retention, 0 for
    ever. broad_acceptances: ids of accepted risks that cover a whole rule. providers, detectors: those enabled.
    providers_down: their names. open_detectors: names of those that let texts pass while they fail. agents: neither
    retired nor blocked. outputs, failing_outputs: names of enabled event outputs.
    captures_full, captures_long: names of policies that store whole texts, or masked texts for more than 30 days.
    are_rules_builtin: the rules come with the gateway.
    """

    now_at: int
    weak_rules: Sequence[str] | None
    keys: Sequence[KeyRecord]
    in_memory: bool
    data_dir_mode: int | None
    open_files: Sequence[str] | None
    tls_key_mode: int | None
    has_first_credentials: bool
    free_bytes: int | None
    audit_events: int | None
    chain_problem: str | None
    newest_at: int | None
    keys_observed: Sequence[str] = ()
    suite_at: int | None = None
    suite_failures: int = 0
    suite_is_stale: bool = False
    unexercised: int | None = None
    archive_problem: str | None = None
    backup_at: int | None = None
    first_event_at: int | None = None
    sign_in_failures: int = 0
    key_refusals: int = 0
    admins: int | None = None
    old_critical_alerts: int = 0
    audit_days: int | None = None
    traffic_days: int | None = None
    captures_full: Sequence[str] = ()
    captures_long: Sequence[str] = ()
    outputs: Sequence[str] = ()
    failing_outputs: Sequence[str] = ()
    access_entries: int | None = None
    providers: Sequence[Provider] | None = None
    providers_down: Sequence[str] = ()
    detectors: int = 0
    open_detectors: Sequence[str] = ()
    budgets: int | None = None
    agents: Sequence[AgentRecord] | None = None
    broad_acceptances: Sequence[str] | None = None
    are_rules_builtin: bool = False
