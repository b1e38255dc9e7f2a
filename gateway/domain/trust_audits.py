"""The checks of the trust audit, one row each. Pure and read-only: another part gathers the facts.

A row says what is checked, why it matters and how to fix it. Its `check` function turns `Facts` into a finding.
"""

from gateway.domain import trust_audit_checks as checks
from gateway.domain.posture import Check, CheckStatus
from gateway.domain.principals import Scope
from gateway.domain.trust_audit_checks import Row, failed, graded, passed, skipped, warned
from gateway.domain.trust_audit_facts import Facts
from gateway.shield.detections import Severity

CHECKS: tuple[Row, ...] = (
    Row(
        "exposure-tls", "HTTPS on addresses that others reach", "exposure", Severity.CRITICAL,
        lambda facts: passed(f"HTTPS is served on {facts.host}") if facts.has_tls
        else graded(f"only loopback is served ({facts.host})" if facts.is_loopback else f"HTTP on {facts.host}",
                    fails=not facts.is_loopback),
        why="Everyone on the network path can read API keys and prompts.",
        fix="Set GATEWAY_TLS_CERT and GATEWAY_TLS_KEY, or listen on loopback behind a proxy that ends TLS.",
        refs=("OWASP API8:2023", "CWE-319"),
    ),
    Row(
        "exposure-rbac", "Users sign in to the internal API", "exposure", Severity.CRITICAL,
        lambda facts: passed("users sign in") if facts.rbac_enabled
        else warned("off; only loopback is served") if facts.is_loopback else failed(f"off, on {facts.host}"),
        why="Anyone who can reach the internal API can create keys.",
        fix="Set RBAC_ENABLED=true.",
        refs=("OWASP API5:2023", "CWE-306"),
    ),
    Row(
        "exposure-hosts", "The Host header is checked", "exposure", Severity.MEDIUM,
        lambda facts: passed(", ".join(facts.allowed_hosts)) if facts.allowed_hosts
        else skipped("only loopback is served") if facts.is_loopback else failed("any Host header is served"),
        why="A page on the web can point its own name at this server (DNS rebinding).",
        fix="Set GATEWAY_ALLOWED_HOSTS to the names of this server.",
        refs=("CWE-350",),
    ),
    Row(
        "exposure-proxies", "Only known proxies may name the client", "exposure", Severity.HIGH, checks.trusted_proxies,
        why="Anyone can write any address into X-Forwarded-For, past throttles and access lists.",
        fix="List the networks of your proxies in GATEWAY_TRUSTED_PROXIES.",
        refs=("CWE-348",),
    ),
    Row(
        "process-root", "The process does not run as root", "exposure", Severity.MEDIUM,
        checks.warns(lambda facts: facts.is_root, "the process runs as root", "it runs as an ordinary user"),
        why="An attacker who takes over the gateway would control the whole host.",
        fix="Run it as a user of its own.",
        refs=("CWE-250",),
    ),
    Row(
        "keys-age", "No key is older than 90 days", "keys", Severity.HIGH,
        checks.active_keys(lambda key, now_at: now_at - key.created_at > checks.KEY_AGE_MS, "are older than 90 days",
              "none older than 90 days", CheckStatus.FAIL),
        why="The longer a key lives, the more places it has been copied to.",
        fix="Rotate it: create a new key, move its users, revoke the old one.",
        refs=("NIST SP 800-57", "CWE-324"),
    ),
    Row(
        "keys-expiry", "Every key expires", "keys", Severity.MEDIUM,
        checks.active_keys(lambda key, now_at: key.expires_at is None, "never expire", "each with an end"),
        why="A forgotten key works for ever.",
        fix="Create keys with --expires 90d.",
        refs=("CWE-324",),
    ),
    Row(
        "keys-unused", "Every key is in use", "keys", Severity.LOW,
        checks.active_keys(lambda key, now_at: now_at - (key.last_used_at or key.created_at) > checks.UNUSED_MS,
            "were not used for 30 days", "each used within 30 days"),
        why="Nobody notices the theft of an unused key.",
        fix="Revoke it.",
        refs=("NIST AC-2(3)",),
    ),
    Row(
        "keys-broad", "No key may do everything", "keys", Severity.MEDIUM,
        checks.active_keys(lambda key, now_at: len(set(key.scopes)) == len(Scope), "have every scope",
            "none with every scope"),
        why="Anyone who steals such a key can read the audit log and spend the model budget.",
        fix="Give each integration a key with only the scopes it needs.",
        refs=("NIST AC-6", "CWE-250"),
    ),
    Row(
        "keys-limit", "Rate limits are moderate", "keys", Severity.LOW,
        checks.active_keys(lambda key, now_at: (key.rate_limit or 0) > checks.RATE_LIMIT_HIGH,
            "may call more than 10,000 times a minute",
              "none above 10,000 a minute"),
        why="A rate limit that is never reached stops no abuse.",
        fix="Create the key again with a limit near its real use.",
        refs=("OWASP LLM10:2025", "CWE-770"),
    ),
    Row(
        "shield-mode", "The shield blocks", "shield", Severity.CRITICAL,
        lambda facts: passed("block") if facts.shield_mode == "block"
        else failed(f"{facts.shield_mode}: attacks are let through"),
        why="In observe mode every attack is recorded and then let through.",
        fix="Set GATEWAY_SHIELD_MODE=block.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "shield-rules", "Rules are loaded", "shield", Severity.CRITICAL,
        lambda facts: passed(f"{facts.rules_count} rules") if facts.rules_count
        else failed("no rule is loaded"),
        why="Without rules every text is allowed.",
        fix="Check the rules file with `rules check`, or remove GATEWAY_RULES.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "shield-coverage", "The rules cover what the built-in ones do", "shield", Severity.CRITICAL,
        lambda facts: failed(facts.rules_lack) if facts.rules_lack
        else passed("the rules leave out no built-in category"),
        why="Your own rule file replaces all built-in rules: the shield no longer finds what it leaves out.",
        fix="Remove GATEWAY_RULES, or add your rules to a copy of the built-in rules.json.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "shield-self-test", "Every rule finds its own example", "shield", Severity.CRITICAL, checks.self_test,
        why="A rule that misses its own example protects nobody.",
        fix="Run `rules test` and correct the rules that it names.",
        refs=("NIST SI-6",),
    ),
    Row(
        "shield-matcher", "The native matcher runs", "shield", Severity.LOW,
        checks.warns(lambda facts: facts.matcher != "native", "the fallback in Python runs", "native"),
        why="The fallback in Python finds the same matches, more slowly.",
        fix="Run `doctor` to see why the native matcher was not loaded.",
        refs=("docs/troubleshooting.md",),
    ),
    Row(
        "shield-thresholds", "The thresholds are no weaker than the default", "shield", Severity.MEDIUM,
        lambda facts: graded(
            f"BLOCK from {facts.block_at}, REVIEW from {facts.review_at}",
            warns=facts.block_at > 60 or facts.review_at > 25),
        why="Above 60, a single critical match no longer blocks.",
        fix="Set the thresholds of the policy to 60 and 25 or lower.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "shield-unscannable", "Unscannable parts are not let through", "shield", Severity.MEDIUM,
        checks.warns(lambda facts: facts.unscannable == "allow", "they are forwarded unread",
            "they are not allowed through"),
        why="An image or a file can carry the instruction that the text does not.",
        fix="Set GATEWAY_UNSCANNABLE to review or block.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "shield-tools", "Tool descriptions are scanned", "shield", Severity.MEDIUM,
        checks.warns(lambda facts: not facts.tool_injection, "off: a poisoned description is not seen", "on"),
        why="A poisoned tool description steers the model from inside.",
        fix="Set GATEWAY_TOOL_INJECTION=true.",
        refs=("MITRE ATLAS AML.T0053",),
    ),
    Row(
        "upstream-tls", "The upstream is reached over HTTPS", "providers", Severity.HIGH, checks.upstream_tls,
        why="Everyone on the network path can read prompts and the upstream's key.",
        fix="Use an https:// address in GATEWAY_UPSTREAM_URL.",
        refs=("CWE-319",),
    ),
    Row(
        "upstream-set", "An upstream is configured", "providers", Severity.LOW,
        checks.warns(lambda facts: facts.upstream_url is None, "the built-in model echo answers", "an upstream is set"),
        why="The built-in model only repeats the prompt.",
        fix="Set GATEWAY_UPSTREAM_URL.",
        refs=("docs/howto/providers.md",),
    ),
    Row(
        "files-data-dir", "Only the owner enters the data folder", "files", Severity.HIGH,
        lambda facts: checks.permissions(facts.data_dir_mode, 0o700),
        why="Other users of this host could read the audit log.",
        fix="chmod 700 the data folder.",
        refs=("CWE-732",),
    ),
    Row(
        "files-database", "Only the owner reads the files in the data folder", "files", Severity.HIGH,
        lambda facts: checks.named(facts.open_files, "files are open to others", "every file is for its owner only",
            "there is no such file", CheckStatus.FAIL),
        why="Other users of this host could read or change the records.",
        fix="chmod 600 the files that are named here.",
        refs=("CWE-732",),
    ),
    Row(
        "files-tls-key", "Only the owner reads the TLS key", "files", Severity.HIGH,
        lambda facts: checks.permissions(facts.tls_key_mode, 0o640),
        why="Anyone who reads the key can impersonate this server.",
        fix="chmod 600 the file of GATEWAY_TLS_KEY.",
        refs=("CWE-732",),
    ),
    Row(
        "files-first-credentials", "The first credentials are deleted", "files", Severity.MEDIUM,
        checks.warns(lambda facts: facts.has_first_credentials, "first-credentials.txt is there", "no such file"),
        why="The file holds the first password and a key with every scope.",
        fix="Store them in a password manager, then delete first-credentials.txt.",
        refs=("CWE-522",),
    ),
    Row(
        "retention-memory", "Records outlive the process", "retention", Severity.MEDIUM,
        checks.warns(lambda facts: facts.in_memory, "the database is in memory", "the database is a file"),
        why="When the process ends, the keys, the alerts and the audit log are lost.",
        fix="Set GATEWAY_DATA_DIR to a writable folder.",
        refs=("NIST AU-11",),
    ),
    Row(
        "retention-logs", "The log has no debug lines", "retention", Severity.LOW,
        checks.warns(lambda facts: facts.log_level == "debug", "debug", "no debug lines"),
        why="Debug lines fill the disk and hold more details than an operator needs.",
        fix="Set GATEWAY_LOG_LEVEL=info.",
        refs=("CWE-532",),
    ),
    Row(
        "audit-chain", "The audit chain verifies", "audit", Severity.CRITICAL,
        lambda facts: passed(f"{facts.audit_events} events verify") if facts.chain_problem == ""
        else failed(facts.chain_problem or "the audit log could not be read"),
        why="A broken chain means that records were changed or lost.",
        fix="Run `audit verify`, keep the database as evidence and restore a backup.",
        refs=("NIST AU-9", "NIST AU-10"),
    ),
    Row(
        "clock-sane", "The clock is right", "clock", Severity.MEDIUM, checks.clock,
        why="Expiry, rate limits and the order of events depend on the clock.",
        fix="Run a time service such as chrony.",
        refs=("NIST AU-8",),
    ),
    Row(
        "disk-space", "There is room on the disk", "disk", Severity.HIGH, checks.disk,
        why="When the gateway cannot write the audit log, it refuses requests.",
        fix="Free some space, or move GATEWAY_DATA_DIR.",
        refs=("NIST AU-5",),
    ),
    Row(
        "keys-observed", "Every key's attacks are blocked", "keys", Severity.HIGH,
        lambda facts: checks.named(list(facts.keys_observed), "keys have a policy that only observes", "none observes"),
        why="Attacks with such a key are recorded and then let through.",
        fix="Set the mode of the policy to block, or give the key another policy.",
        refs=("OWASP LLM01:2025",),
    ),
    Row(
        "keys-refused", "Few calls have a bad key", "keys", Severity.MEDIUM,
        lambda facts: checks.refusals(facts.key_refusals, "kinds of refused calls in 24 hours", many=50, flood=500),
        why="Many refusals mean that somebody is guessing keys, or that a revoked key is still in use.",
        fix="Look at the audit log for api_key_refused, and deny the addresses it names.",
        refs=("OWASP API2:2023", "CWE-307"),
    ),
    Row(
        "access-list", "An access list restricts callers", "access", Severity.LOW,
        lambda facts: skipped("not counted") if facts.access_entries is None
        else passed(f"{facts.access_entries} entries") if facts.access_entries else warned("it is empty"),
        why="Without entries every key works from every address and for every model.",
        fix="Allow the networks, models and tools that are needed with `access add`.",
        refs=("NIST AC-3",),
    ),
    Row(
        "users-admins", "One to five people are administrators", "access", Severity.LOW,
        lambda facts: skipped("nobody signs in") if not facts.rbac_enabled or facts.admins is None
        else graded(f"{facts.admins} administrators", warns=not 1 <= facts.admins <= 5),
        why="Each administrator can undo every protection, but with none, nobody can manage users.",
        fix="Give the others the role they need: PATCH /api/users/{id}.",
        refs=("NIST AC-6(5)",),
    ),
    Row(
        "users-sign-in", "Few sign-ins fail", "access", Severity.MEDIUM,
        lambda facts: checks.refusals(facts.sign_in_failures, "failed sign-ins in 24 hours", many=20, flood=200),
        why="Many failures mean that somebody is guessing passwords.",
        fix="Look at the audit log for sign_in_failed, and deny the addresses it names.",
        refs=("CWE-307", "MITRE ATT&CK T1110"),
    ),
    Row(
        "mcp-key", "The key of MCP over HTTP is long", "access", Severity.HIGH,
        lambda facts: graded(f"{facts.mcp_key_chars} characters", fails=facts.mcp_key_chars < 24)
        if facts.mcp_enabled else skipped("MCP is not served over HTTP"),
        why="Anyone who guesses it can use every tool, including the access list.",
        fix="Set MCP_API_KEY to 24 random characters or more.",
        refs=("CWE-521",),
    ),
    Row(
        "shield-suite", "The validation suite holds", "shield", Severity.HIGH, checks.suite,
        why="A changed, untested rule file may miss attacks that it found before.",
        fix="Run it: POST /api/shield/tests, or the MCP tool run_shield_tests.",
        refs=("NIST CA-2",),
    ),
    Row(
        "shield-untested", "The suite exercises most rules", "shield", Severity.LOW, checks.untested,
        why="A rule with no case beyond its own examples may fail on other texts.",
        fix="Add cases for the rules that the suite names as not exercised.",
        refs=("NIST CA-2",),
    ),
    Row(
        "shield-acceptances", "No accepted risk covers a whole rule", "shield", Severity.MEDIUM,
        lambda facts: checks.named(facts.broad_acceptances, "acceptances cover a whole rule", "none does"),
        why="Such an acceptance disables the rule for all callers until it ends.",
        fix="Accept the finding, or the rule for one agent.",
        refs=("NIST CA-5",),
    ),
    Row(
        "providers-tls", "Providers are reached over HTTPS", "providers", Severity.HIGH, checks.providers_tls,
        why="Everyone on the network path can read prompts and the provider's key.",
        fix="Use an https:// address for the provider.",
        refs=("CWE-319",),
    ),
    Row(
        "providers-up", "Every provider answers", "providers", Severity.MEDIUM,
        lambda facts: checks.named(facts.providers_down if facts.providers else None,
            "providers are down", "all answer", "there is no provider"),
        why="Requests fall back to fewer providers, or fail.",
        fix="Test the provider: POST /api/providers/{id}/test.",
        refs=("docs/howto/providers.md",),
    ),
    Row(
        "budgets-set", "A budget limits spending", "providers", Severity.MEDIUM, checks.budgets,
        why="One agent in a loop can spend a month's money in a night.",
        fix="Set a budget: `budgets create`.",
        refs=("OWASP LLM10:2025",),
    ),
    Row(
        "agents-tools", "No agent both reads foreign text and acts", "agents", Severity.HIGH, checks.agents_tools,
        why="An instruction hidden in what it reads can make it send, pay or delete.",
        fix="Split the agent, or deny one of the two tools in the access list.",
        refs=("OWASP LLM06:2025", "MITRE ATLAS AML.T0051.001"),
    ),
    Row(
        "agents-known", "Every agent is registered", "agents", Severity.LOW,
        lambda facts: checks.named(
            [one.name for one in facts.agents if one.source not in checks.REGISTERED] if facts.agents else None,
            "agents were never registered", "all are registered"),
        why="Nobody is responsible for an agent that is known only from traffic.",
        fix="Register it with its owner, or block it.",
        refs=("NIST CM-8",),
    ),
    Row(
        "alerts-waiting", "No critical alert waits longer than a day", "alerts", Severity.HIGH,
        lambda facts: checks.refusals(facts.old_critical_alerts, "critical alerts older than a day", many=1, flood=10),
        why="An alert that nobody reads protects nobody.",
        fix="Acknowledge, resolve or suppress it: PATCH /api/alerts/{id}.",
        refs=("NIST IR-4",),
    ),
    Row(
        "retention-audit", "Audit events are kept for a year", "retention", Severity.MEDIUM,
        lambda facts: checks.days_kept(facts.audit_days, least=365),
        why="Most break-ins are found months later.",
        fix="Set the audit retention to 365 days or more.",
        refs=("NIST AU-11", "PCI DSS 10.5.1"),
    ),
    Row(
        "retention-traffic", "Traffic is not kept longer than needed", "retention", Severity.LOW,
        lambda facts: checks.days_kept(facts.traffic_days, most=180),
        why="Who used which model and when is personal data in many countries.",
        fix="Set the traffic retention to 180 days or less.",
        refs=("GDPR Art. 5(1)(e)",),
    ),
    Row(
        "retention-capture", "Texts are not stored, or only masked and briefly", "retention", Severity.MEDIUM,
        checks.captures,
        why="Anyone who reads the database could read the prompts.",
        fix="Set `capture` of the policies to `none` or `redacted`, and `capture_days` to 30 or less.",
        refs=("GDPR Art. 5(1)(c)",),
    ),
    Row(
        "backup-age", "There is a recent backup", "backup", Severity.HIGH, checks.backup,
        why="Keys, policies and the audit log are in this one database.",
        fix="Run `backup FILE` every day and keep the file on another host.",
        refs=("NIST CP-9",),
    ),
    Row(
        "archive-integrity", "The program is as it was released", "integrity", Severity.CRITICAL,
        lambda facts: skipped("this runs from a checkout") if facts.archive_problem is None
        else failed(facts.archive_problem) if facts.archive_problem
        else passed("every member is as the manifest says"),
        why="A changed program can let anything through and report that it did not.",
        fix="Run `verify`, and replace the archive with a fresh copy.",
        refs=("NIST SI-7",),
    ),
    Row(
        "outputs-set", "Events leave this host", "audit", Severity.LOW,
        lambda facts: passed(f"{len(facts.outputs)} outputs") if facts.outputs
        else warned("events stay on this host"),
        why="An attacker on this host can delete its records, but not those already sent elsewhere.",
        fix="Send events to a SIEM: POST /api/event-outputs.",
        refs=("NIST AU-9(2)",),
    ),
    Row(
        "outputs-working", "Event outputs deliver", "audit", Severity.MEDIUM,
        lambda facts: checks.named(
            facts.failing_outputs if facts.outputs else None, "outputs fail", "all deliver", "there is no output"),
        why="A security team that receives no events assumes that nothing happens.",
        fix="Test the output: POST /api/event-outputs/{id}/test.",
        refs=("NIST AU-5",),
    ),
)  # fmt: skip


def run(facts: Facts) -> tuple[Check, ...]:
    """Run every check, in the order of the table."""
    found = ((row, row.check(facts)) for row in CHECKS)
    return tuple(
        Check(row.id, row.title, row.category, row.severity, one.status, one.evidence, row.why, row.fix, row.refs)
        for row, one in found
    )
