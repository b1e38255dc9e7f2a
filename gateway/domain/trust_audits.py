"""The checks of the trust audit. Pure and read-only: another part gathers the facts.

`trust_audits.json` says of each check what it is about, why it matters and how to fix it. The function of the same
name turns `Facts` into a finding.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway import bundle
from gateway.domain import trust_audit_checks as checks
from gateway.domain.posture import Check, CheckStatus
from gateway.domain.principals import Scope
from gateway.domain.trust_audit_checks import Finding, failed, graded, passed, skipped, warned
from gateway.domain.trust_audit_facts import Facts
from gateway.shield.detections import Severity

_FUNCTIONS: dict[str, Callable[[Facts], Finding]] = {
    "exposure-tls": lambda facts: checks.exposed(
        facts,
        f"HTTPS is served on {facts.host}" if facts.has_tls else "",
        passed(f"only loopback is served ({facts.host})"),
        f"HTTP on {facts.host}",
    ),
    "exposure-rbac": lambda facts: checks.exposed(
        facts,
        "users sign in" if facts.rbac_enabled else "",
        warned("off; only loopback is served"),
        f"off, on {facts.host}",
    ),
    "exposure-hosts": lambda facts: checks.exposed(
        facts, ", ".join(facts.allowed_hosts), skipped("only loopback is served"), "any Host header is served"
    ),
    "exposure-proxies": checks.trusted_proxies,
    "process-root": checks.warns(
        lambda facts: facts.is_root, "the process runs as root", "it runs as an ordinary user"
    ),
    "keys-age": checks.active_keys(
        lambda key, now_at: now_at - key.created_at > checks.KEY_AGE_MS,
        "are older than 90 days",
        "none older than 90 days",
        CheckStatus.FAIL,
    ),
    "keys-expiry": checks.active_keys(lambda key, now_at: key.expires_at is None, "never expire", "each with an end"),
    "keys-unused": checks.active_keys(
        lambda key, now_at: now_at - (key.last_used_at or key.created_at) > checks.UNUSED_MS,
        "were not used for 30 days",
        "each used within 30 days",
    ),
    "keys-broad": checks.active_keys(
        lambda key, now_at: len(set(key.scopes)) == len(Scope), "have every scope", "none with every scope"
    ),
    "keys-limit": checks.active_keys(
        lambda key, now_at: (key.rate_limit or 0) > checks.RATE_LIMIT_HIGH,
        "may call more than 10,000 times a minute",
        "none above 10,000 a minute",
    ),
    "shield-mode": lambda facts: (
        passed("block") if facts.shield_mode == "block" else failed(f"{facts.shield_mode}: attacks are let through")
    ),
    "shield-rules": lambda facts: (
        passed(f"{facts.rules_count} rules") if facts.rules_count else failed("no rule is loaded")
    ),
    "shield-coverage": lambda facts: (
        failed(facts.rules_lack) if facts.rules_lack else passed("the rules leave out no built-in category")
    ),
    "shield-self-test": checks.self_test,
    "shield-matcher": checks.warns(lambda facts: facts.matcher != "native", "the fallback in Python runs", "native"),
    "shield-thresholds": lambda facts: graded(
        f"BLOCK from {facts.block_at}, REVIEW from {facts.review_at}", warns=facts.block_at > 60 or facts.review_at > 25
    ),
    "shield-unscannable": checks.warns(
        lambda facts: facts.unscannable == "allow", "they are forwarded unread", "they are not allowed through"
    ),
    "shield-tools": checks.warns(
        lambda facts: not facts.tool_injection, "off: a poisoned description is not seen", "on"
    ),
    "upstream-tls": checks.upstream_tls,
    "upstream-set": checks.warns(
        lambda facts: facts.upstream_url is None, "the built-in model echo answers", "an upstream is set"
    ),
    "files-data-dir": lambda facts: checks.permissions(facts.data_dir_mode, 0o700),
    "files-database": lambda facts: checks.named(
        facts.open_files,
        "files are open to others",
        "every file is for its owner only",
        "there is no such file",
        CheckStatus.FAIL,
    ),
    "files-tls-key": lambda facts: checks.permissions(facts.tls_key_mode, 0o640),
    "files-first-credentials": checks.warns(
        lambda facts: facts.has_first_credentials, "first-credentials.txt is there", "no such file"
    ),
    "retention-memory": checks.warns(
        lambda facts: facts.in_memory, "the database is in memory", "the database is a file"
    ),
    "retention-logs": checks.warns(lambda facts: facts.log_level == "debug", "debug", "no debug lines"),
    "audit-chain": lambda facts: (
        passed(f"{facts.audit_events} events verify")
        if facts.chain_problem == ""
        else failed(facts.chain_problem or "the audit log could not be read")
    ),
    "clock-sane": checks.clock,
    "disk-space": checks.disk,
    "keys-observed": lambda facts: checks.named(
        list(facts.keys_observed), "keys have a policy that only observes", "none observes"
    ),
    "keys-refused": lambda facts: checks.refusals(
        facts.key_refusals, "kinds of refused calls in 24 hours", many=50, flood=500
    ),
    "access-list": lambda facts: (
        skipped("not counted")
        if facts.access_entries is None
        else passed(f"{facts.access_entries} entries")
        if facts.access_entries
        else warned("it is empty")
    ),
    "users-admins": lambda facts: (
        skipped("nobody signs in")
        if not facts.rbac_enabled or facts.admins is None
        else graded(f"{facts.admins} administrators", warns=not 1 <= facts.admins <= 5)
    ),
    "users-sign-in": lambda facts: checks.refusals(
        facts.sign_in_failures, "failed sign-ins in 24 hours", many=20, flood=200
    ),
    "mcp-key": lambda facts: (
        graded(f"{facts.mcp_key_chars} characters", fails=facts.mcp_key_chars < 24)
        if facts.mcp_enabled
        else skipped("MCP is not served over HTTP")
    ),
    "shield-suite": checks.suite,
    "shield-untested": checks.untested,
    "shield-acceptances": lambda facts: checks.named(
        facts.broad_acceptances, "acceptances cover a whole rule", "none does"
    ),
    "providers-tls": checks.providers_tls,
    "providers-up": lambda facts: checks.named(
        facts.providers_down if facts.providers else None, "providers are down", "all answer", "there is no provider"
    ),
    "detectors-closed": lambda facts: checks.named(
        facts.open_detectors if facts.detectors else None,
        "detectors let texts pass while they fail",
        "none lets a text pass",
        "there is no detector",
        CheckStatus.FAIL,
    ),
    "budgets-set": checks.budgets,
    "agents-tools": checks.agents_tools,
    "agents-known": lambda facts: checks.named(
        [one.name for one in facts.agents if one.source not in checks.REGISTERED] if facts.agents else None,
        "agents were never registered",
        "all are registered",
    ),
    "alerts-waiting": lambda facts: checks.refusals(
        facts.old_critical_alerts, "critical alerts older than a day", many=1, flood=10
    ),
    "retention-audit": lambda facts: checks.days_kept(facts.audit_days, least=365),
    "retention-traffic": lambda facts: checks.days_kept(facts.traffic_days, most=180),
    "retention-capture": checks.captures,
    "backup-age": checks.backup,
    "archive-integrity": lambda facts: (
        skipped("this runs from a checkout")
        if facts.archive_problem is None
        else failed(facts.archive_problem)
        if facts.archive_problem
        else passed("every member is as the manifest says")
    ),
    "outputs-set": lambda facts: (
        passed(f"{len(facts.outputs)} outputs") if facts.outputs else warned("events stay on this host")
    ),
    "outputs-working": lambda facts: checks.named(
        facts.failing_outputs if facts.outputs else None, "outputs fail", "all deliver", "there is no output"
    ),
}


CHECKS: Mapping[str, Mapping[str, Any]] = {
    name: about | {"severity": Severity(about["severity"]), "refs": tuple(about["refs"])}
    for name, about in json.loads(bundle.read("gateway/domain/trust_audits.json")).items()
}
"""The fields of each `Check` that do not depend on facts."""


def run(facts: Facts) -> tuple[Check, ...]:
    """Run every check, in the order of the functions."""
    found = ((name, function(facts)) for name, function in _FUNCTIONS.items())
    return tuple(Check(id=name, status=one.status, evidence=one.evidence, **CHECKS[name]) for name, one in found)
