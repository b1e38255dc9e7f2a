"""The posture checks: one row each, decided from facts that somebody else has gathered. Pure and read-only.

A row says what is looked at, why it matters and how to mend it; its `look` turns `Facts` into a finding. Evidence names
keys by their prefix and settings by their name, and never holds a secret.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.domain.keys import KeyRecord
from gateway.domain.posture import DAY_MS, Check, CheckStatus
from gateway.domain.principals import Scope
from gateway.shield.detections import Severity

KEY_AGE_MS = 90 * DAY_MS
UNUSED_MS = 30 * DAY_MS
RATE_LIMIT_HIGH = 10_000
FREE_LOW_BYTES = 1 << 30
FREE_NONE_BYTES = 200 << 20
EARLIEST_AT = 1_767_225_600_000  # 2026-01-01: a clock before this version was written is wrong
CLOCK_SLACK_MS = 5 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is so on this host at `now_at`. None means that it could not be seen or does not exist.

    keys: every key that is not revoked. weak_rules: ids of rules whose own examples fail. *_mode: permission bits.
    free_bytes: on the file system of the data folder. newest_at: time of the newest audit event.
    chain_problem: what is wrong with the audit chain, empty when it verifies.
    """

    now_at: int
    host: str
    is_loopback: bool
    has_tls: bool
    rbac_enabled: bool
    allowed_hosts: Sequence[str]
    trusted_proxies: Sequence[str]
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
    weak_rules: Sequence[str]
    matcher: str
    keys: Sequence[KeyRecord]
    in_memory: bool
    data_dir_mode: int | None
    files_mode: int | None
    tls_key_mode: int | None
    has_first_credentials: bool
    free_bytes: int | None
    audit_events: int | None
    chain_problem: str | None
    newest_at: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    status: CheckStatus
    evidence: str


@dataclass(frozen=True, slots=True)
class Row:
    """One check before it has looked."""

    id: str
    title: str
    category: str
    severity: Severity
    look: Callable[[Facts], Finding]
    why: str
    fix: str


def run(facts: Facts) -> tuple[Check, ...]:
    """Look at every row, in the order of the table."""
    return tuple(_checked(row, row.look(facts)) for row in CHECKS)


def _checked(row: Row, finding: Finding) -> Check:
    return Check(
        id=row.id,
        title=row.title,
        category=row.category,
        severity=row.severity,
        status=finding.status,
        evidence=finding.evidence,
        why=row.why,
        fix=row.fix,
    )


def _pass(evidence: str) -> Finding:
    return Finding(CheckStatus.PASS, evidence)


def _warn(evidence: str) -> Finding:
    return Finding(CheckStatus.WARN, evidence)


def _fail(evidence: str) -> Finding:
    return Finding(CheckStatus.FAIL, evidence)


def _skip(evidence: str) -> Finding:
    return Finding(CheckStatus.NOT_APPLICABLE, evidence)


def _warns(is_so: Callable[[Facts], bool], trouble: str, peace: str) -> Callable[[Facts], Finding]:
    """Return a look that warns of `trouble` where `is_so`."""
    return lambda facts: _warn(trouble) if is_so(facts) else _pass(peace)


def _tls(facts: Facts) -> Finding:
    if facts.has_tls:
        return _pass(f"HTTPS is served on {facts.host}")
    return _pass(f"only loopback is served ({facts.host})") if facts.is_loopback else _fail(f"HTTP on {facts.host}")


def _rbac(facts: Facts) -> Finding:
    if facts.rbac_enabled:
        return _pass("users sign in")
    return _warn("off; only loopback is served") if facts.is_loopback else _fail(f"off, on {facts.host}")


def _allowed_hosts(facts: Facts) -> Finding:
    if facts.allowed_hosts:
        return _pass(", ".join(facts.allowed_hosts))
    return _skip("only loopback is served") if facts.is_loopback else _fail("any Host header is served")


def _trusted_proxies(facts: Facts) -> Finding:
    if not facts.trusted_proxies:
        return _skip("no proxy is trusted")
    wide = [network for network in facts.trusted_proxies if network.endswith("/0")]
    return _fail(f"{', '.join(wide)} is everybody") if wide else _pass(", ".join(facts.trusted_proxies))


def _keys(
    judge: Callable[[KeyRecord, int], bool], trouble: str, peace: str, status: CheckStatus = CheckStatus.WARN
) -> Callable[[Facts], Finding]:
    """Return a look that names by prefix the active keys for which `judge` says yes."""

    def look(facts: Facts) -> Finding:
        active = [key for key in facts.keys if key.status(facts.now_at) == "active"]
        if not active:
            return _skip("there is no active key")
        found = [key.prefix for key in active if judge(key, facts.now_at)]
        if not found:
            return _pass(f"{len(active)} active keys, {peace}")
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        return Finding(status, f"{len(found)} of {len(active)} active keys {trouble}: {', '.join(found[:10])}{more}")

    return look


def _is_unused(key: KeyRecord, now_at: int) -> bool:
    return now_at - (key.last_used_at or key.created_at) > UNUSED_MS


def _mode(facts: Facts) -> Finding:
    return _pass("block") if facts.shield_mode == "block" else _fail(f"{facts.shield_mode}: attacks are let through")


def _rules(facts: Facts) -> Finding:
    return _pass(f"{facts.rules_count} rules") if facts.rules_count else _fail("no rule is loaded")


def _self_test(facts: Facts) -> Finding:
    if not facts.rules_count:
        return _fail("no rule is loaded")
    if not facts.weak_rules:
        return _pass(f"{facts.rules_count} rules find their own examples")
    return _fail(f"{len(facts.weak_rules)} rules miss their own example: {', '.join(facts.weak_rules[:10])}")


def _thresholds(facts: Facts) -> Finding:
    seen = f"BLOCK from {facts.block_at}, REVIEW from {facts.review_at}"
    return _pass(seen) if facts.block_at <= 60 and facts.review_at <= 25 else _warn(seen)


def _upstream_tls(facts: Facts) -> Finding:
    if facts.upstream_url is None:
        return _skip("no upstream is configured")
    origin = urlsplit(facts.upstream_url)
    seen = f"{origin.scheme}://{origin.hostname}"
    return _pass(seen) if origin.scheme == "https" or facts.is_upstream_local else _fail(seen)


def _upstream_set(facts: Facts) -> Finding:
    return _warn("the built-in model echo answers") if facts.upstream_url is None else _pass("an upstream is set")


def _permissions(mode: int | None, most: int) -> Finding:
    if mode is None:
        return _skip("there is no such file")
    return _fail(f"mode {mode:04o}") if mode & 0o777 & ~most else _pass(f"mode {mode:04o}")


def _audit_chain(facts: Facts) -> Finding:
    if facts.chain_problem is None:
        return _fail("the audit log could not be read")
    return _fail(facts.chain_problem) if facts.chain_problem else _pass(f"{facts.audit_events} events verify")


def _clock(facts: Facts) -> Finding:
    if facts.now_at < EARLIEST_AT:
        return _fail("the clock is before 2026")
    if facts.newest_at is not None and facts.newest_at > facts.now_at + CLOCK_SLACK_MS:
        ahead_seconds = (facts.newest_at - facts.now_at) // 1000
        return _fail(f"the newest audit event is {ahead_seconds} seconds in the future")
    return _pass("after every recorded event")


def _disk(facts: Facts) -> Finding:
    if facts.free_bytes is None:
        return _skip("the data is not on a disk")
    seen = f"{facts.free_bytes >> 20} MiB free"
    if facts.free_bytes < FREE_NONE_BYTES:
        return _fail(seen)
    return _warn(seen) if facts.free_bytes < FREE_LOW_BYTES else _pass(seen)


CHECKS: tuple[Row, ...] = (
    Row(
        "exposure-tls", "HTTPS on addresses that others reach", "exposure", Severity.CRITICAL, _tls,
        why="API keys and prompts travel readable to everyone on the way.",
        fix="Set GATEWAY_TLS_CERT and GATEWAY_TLS_KEY, or listen on loopback behind a proxy that ends TLS.",
    ),
    Row(
        "exposure-rbac", "Users sign in to the internal API", "exposure", Severity.CRITICAL, _rbac,
        why="Whoever reaches the internal API can create keys.",
        fix="Set RBAC_ENABLED=true.",
    ),
    Row(
        "exposure-hosts", "The Host header is checked", "exposure", Severity.MEDIUM, _allowed_hosts,
        why="A page on the web can point its own name at this server (DNS rebinding).",
        fix="Set GATEWAY_ALLOWED_HOSTS to the names of this server.",
    ),
    Row(
        "exposure-proxies", "Only known proxies may name the client", "exposure", Severity.HIGH, _trusted_proxies,
        why="Anyone can write any address into X-Forwarded-For, past throttles and access lists.",
        fix="List the networks of your proxies in GATEWAY_TRUSTED_PROXIES.",
    ),
    Row(
        "process-root", "The process is no root process", "exposure", Severity.MEDIUM,
        _warns(lambda facts: facts.is_root, "the process runs as root", "it runs as an ordinary user"),
        why="A fault in the gateway would be a fault of the whole host.",
        fix="Run it as a user of its own.",
    ),
    Row(
        "keys-age", "No key is older than 90 days", "keys", Severity.HIGH,
        _keys(lambda key, now_at: now_at - key.created_at > KEY_AGE_MS, "are older than 90 days",
              "none older than 90 days", CheckStatus.FAIL),
        why="The longer a key lives, the more places it has been copied to.",
        fix="Rotate it: create a new key, move its users, revoke the old one.",
    ),
    Row(
        "keys-expiry", "Every key expires", "keys", Severity.MEDIUM,
        _keys(lambda key, now_at: key.expires_at is None, "never expire", "each with an end"),
        why="A forgotten key works for ever.",
        fix="Create keys with --expires 90d.",
    ),
    Row(
        "keys-unused", "Every key is in use", "keys", Severity.LOW,
        _keys(_is_unused, "were not used for 30 days", "each used within 30 days"),
        why="Nobody would notice the theft of a key that nobody uses.",
        fix="Revoke it.",
    ),
    Row(
        "keys-broad", "No key may do everything", "keys", Severity.MEDIUM,
        _keys(lambda key, now_at: len(set(key.scopes)) == len(Scope), "have every scope", "none with every scope"),
        why="Whoever takes such a key can read the audit log and spend the model budget.",
        fix="Give each integration a key with only the scopes it needs.",
    ),
    Row(
        "keys-limit", "Rate limits are moderate", "keys", Severity.LOW,
        _keys(lambda key, now_at: (key.rate_limit or 0) > RATE_LIMIT_HIGH, "may call more than 10,000 times a minute",
              "none above 10,000 a minute"),
        why="A rate limit that is never reached stops no abuse.",
        fix="Create the key again with a limit near its real use.",
    ),
    Row(
        "shield-mode", "The shield blocks", "shield", Severity.CRITICAL, _mode,
        why="In observe mode every attack is recorded and then let through.",
        fix="Set GATEWAY_SHIELD_MODE=block.",
    ),
    Row(
        "shield-rules", "Rules are loaded", "shield", Severity.CRITICAL, _rules,
        why="Without rules every text is allowed.",
        fix="Check the rules file with `rules check`, or remove GATEWAY_RULES.",
    ),
    Row(
        "shield-self-test", "Every rule finds its own example", "shield", Severity.CRITICAL, _self_test,
        why="A rule that misses its own example protects nobody.",
        fix="Run `rules test` and mend the rules it names.",
    ),
    Row(
        "shield-matcher", "The native matcher runs", "shield", Severity.LOW,
        _warns(lambda facts: facts.matcher != "native", "the fallback in Python runs", "native"),
        why="The fallback in Python finds the same and takes longer.",
        fix="Run `doctor` to see why the native matcher was not loaded.",
    ),
    Row(
        "shield-thresholds", "The thresholds are no weaker than the default", "shield", Severity.MEDIUM, _thresholds,
        why="Above 60 a single critical match no longer blocks.",
        fix="Set the thresholds of the policy to 60 and 25 or lower.",
    ),
    Row(
        "shield-unscannable", "Parts that cannot be read are not waved through", "shield", Severity.MEDIUM,
        _warns(lambda facts: facts.unscannable == "allow", "they are forwarded unread", "they are not allowed through"),
        why="An image or a file can carry the instruction that the text does not.",
        fix="Set GATEWAY_UNSCANNABLE to review or block.",
    ),
    Row(
        "shield-tools", "Tool descriptions are scanned", "shield", Severity.MEDIUM,
        _warns(lambda facts: not facts.tool_injection, "off: a poisoned description is not seen", "on"),
        why="A poisoned tool description steers the model from inside.",
        fix="Set GATEWAY_TOOL_INJECTION=true.",
    ),
    Row(
        "upstream-tls", "The upstream is reached over HTTPS", "providers", Severity.HIGH, _upstream_tls,
        why="Prompts and the upstream's key travel readable.",
        fix="Use an https:// address in GATEWAY_UPSTREAM_URL.",
    ),
    Row(
        "upstream-set", "An upstream is configured", "providers", Severity.LOW, _upstream_set,
        why="The built-in model only repeats the prompt.",
        fix="Set GATEWAY_UPSTREAM_URL.",
    ),
    Row(
        "files-data-dir", "Only the owner enters the data folder", "files", Severity.HIGH,
        lambda facts: _permissions(facts.data_dir_mode, 0o700),
        why="Other users of this host could read the audit log.",
        fix="chmod 700 the data folder.",
    ),
    Row(
        "files-database", "Only the owner reads the files in the data folder", "files", Severity.HIGH,
        lambda facts: _permissions(facts.files_mode, 0o600),
        why="Other users of this host could read or change the records.",
        fix="chmod 600 the files in the data folder.",
    ),
    Row(
        "files-tls-key", "Only the owner reads the TLS key", "files", Severity.HIGH,
        lambda facts: _permissions(facts.tls_key_mode, 0o640),
        why="Whoever reads the key can pretend to be this server.",
        fix="chmod 600 the file of GATEWAY_TLS_KEY.",
    ),
    Row(
        "files-first-credentials", "The first credentials are put away", "files", Severity.MEDIUM,
        _warns(lambda facts: facts.has_first_credentials, "first-credentials.txt is there", "no such file"),
        why="The file holds the first password and a key with every scope.",
        fix="Store them in a password manager, then delete first-credentials.txt.",
    ),
    Row(
        "retention-memory", "Records outlive the process", "retention", Severity.MEDIUM,
        _warns(lambda facts: facts.in_memory, "the database is in memory", "the database is a file"),
        why="With the process the keys, the alerts and the audit log are gone.",
        fix="Set GATEWAY_DATA_DIR to a folder that may be written.",
    ),
    Row(
        "retention-logs", "The log does not say more than it must", "retention", Severity.LOW,
        _warns(lambda facts: facts.log_level == "debug", "debug", "no debug lines"),
        why="Debug lines fill the disk and name more than an operator needs.",
        fix="Set GATEWAY_LOG_LEVEL=info.",
    ),
    Row(
        "audit-chain", "The audit chain verifies", "audit", Severity.CRITICAL, _audit_chain,
        why="A broken chain means that records were changed or lost.",
        fix="Run `audit verify`, keep the database as evidence and restore a backup.",
    ),
    Row(
        "clock-sane", "The clock is right", "clock", Severity.MEDIUM, _clock,
        why="Expiry, rate limits and the order of events rest on the clock.",
        fix="Run a time service such as chrony.",
    ),
    Row(
        "disk-space", "There is room on the disk", "disk", Severity.HIGH, _disk,
        why="When the audit log cannot be written, requests are refused.",
        fix="Free some space, or move GATEWAY_DATA_DIR.",
    ),
)  # fmt: skip
