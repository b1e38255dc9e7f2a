"""How the trust audit looks at a fact: one function a check, from facts to a finding. Pure.

Evidence names keys by their prefix and settings by their name, and never holds a secret.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.domain.keys import KeyRecord
from gateway.domain.posture import DAY_MS, CheckStatus
from gateway.domain.trust_audit_facts import Facts

KEY_AGE_MS = 90 * DAY_MS
UNUSED_MS = 30 * DAY_MS
BACKUP_GOOD_MS = 7 * DAY_MS
BACKUP_OLD_MS = 30 * DAY_MS
RATE_LIMIT_HIGH = 10_000
FREE_LOW_BYTES = 1 << 30
FREE_NONE_BYTES = 200 << 20
EARLIEST_AT = 1_767_225_600_000  # 2026-01-01: a clock before this version was written is wrong
CLOCK_SLACK_MS = 5 * 60_000
MCP_KEY_CHARS = 24
MANY_ADMINS = 5
# What a tool can do is read from the words of its name. One that fetches private or foreign text beside one that sends
# or runs is the pair by which an injected instruction becomes a theft.
_READS = ("read", "fetch", "browse", "search", "get", "query", "list", "inbox", "file", "retrieve")
_ACTS = ("send", "post", "exec", "shell", "run", "write", "delete", "email", "upload", "pay", "transfer", "deploy")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    status: CheckStatus
    evidence: str


def passed(evidence: str) -> Finding:
    """Return that all is well."""
    return Finding(CheckStatus.PASS, evidence)


def warned(evidence: str) -> Finding:
    """Return that something should be better."""
    return Finding(CheckStatus.WARN, evidence)


def failed(evidence: str) -> Finding:
    """Return that something is wrong."""
    return Finding(CheckStatus.FAIL, evidence)


def skipped(evidence: str) -> Finding:
    """Return that the check does not apply."""
    return Finding(CheckStatus.NOT_APPLICABLE, evidence)


def warns(is_so: Callable[[Facts], bool], trouble: str, peace: str) -> Callable[[Facts], Finding]:
    """Return a look that warns of `trouble` where `is_so`."""
    return lambda facts: warned(trouble) if is_so(facts) else passed(peace)


def tls(facts: Facts) -> Finding:
    """Look at how others reach this server."""
    if facts.has_tls:
        return passed(f"HTTPS is served on {facts.host}")
    return passed(f"only loopback is served ({facts.host})") if facts.is_loopback else failed(f"HTTP on {facts.host}")


def rbac(facts: Facts) -> Finding:
    """Look at whether users sign in."""
    if facts.rbac_enabled:
        return passed("users sign in")
    return warned("off; only loopback is served") if facts.is_loopback else failed(f"off, on {facts.host}")


def allowed_hosts(facts: Facts) -> Finding:
    """Look at the names this server answers to."""
    if facts.allowed_hosts:
        return passed(", ".join(facts.allowed_hosts))
    return skipped("only loopback is served") if facts.is_loopback else failed("any Host header is served")


def trusted_proxies(facts: Facts) -> Finding:
    """Look at who may name the client."""
    if not facts.trusted_proxies:
        return skipped("no proxy is trusted")
    wide = [network for network in facts.trusted_proxies if network.endswith("/0")]
    return failed(f"{', '.join(wide)} is everybody") if wide else passed(", ".join(facts.trusted_proxies))


def active_keys(
    judge: Callable[[KeyRecord, int], bool], trouble: str, peace: str, status: CheckStatus = CheckStatus.WARN
) -> Callable[[Facts], Finding]:
    """Return a look that names by prefix the active keys for which `judge` says yes."""

    def look(facts: Facts) -> Finding:
        active = [key for key in facts.keys if key.status(facts.now_at) == "active"]
        if not active:
            return skipped("there is no active key")
        found = [key.prefix for key in active if judge(key, facts.now_at)]
        if not found:
            return passed(f"{len(active)} active keys, {peace}")
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        return Finding(status, f"{len(found)} of {len(active)} active keys {trouble}: {', '.join(found[:10])}{more}")

    return look


def is_unused(key: KeyRecord, now_at: int) -> bool:
    """Tell whether a key was not used for 30 days."""
    return now_at - (key.last_used_at or key.created_at) > UNUSED_MS


def shield_mode(facts: Facts) -> Finding:
    """Look at what a BLOCK does."""
    return passed("block") if facts.shield_mode == "block" else failed(f"{facts.shield_mode}: attacks are let through")


def rules_loaded(facts: Facts) -> Finding:
    """Look at whether there are rules."""
    return passed(f"{facts.rules_count} rules") if facts.rules_count else failed("no rule is loaded")


def rules_cover(facts: Facts) -> Finding:
    """Look at rules that take the place of the built-in ones."""
    return failed(facts.rules_lack) if facts.rules_lack else passed("the rules leave out no built-in category")


def self_test(facts: Facts) -> Finding:
    """Look at every rule's own examples."""
    if not facts.rules_count:
        return failed("no rule is loaded")
    if facts.weak_rules is None:
        return skipped("the running gateway has other rules than this shell")
    if not facts.weak_rules:
        return passed(f"{facts.rules_count} rules find their own examples")
    return failed(f"{len(facts.weak_rules)} rules miss their own example: {', '.join(facts.weak_rules[:10])}")


def thresholds(facts: Facts) -> Finding:
    """Look at the scores that block and review."""
    seen = f"BLOCK from {facts.block_at}, REVIEW from {facts.review_at}"
    return passed(seen) if facts.block_at <= 60 and facts.review_at <= 25 else warned(seen)


def upstream_tls(facts: Facts) -> Finding:
    """Look at the way to the upstream of the settings."""
    if facts.upstream_url is None:
        return skipped("no upstream is configured")
    origin = urlsplit(facts.upstream_url)
    seen = f"{origin.scheme}://{origin.hostname}"
    return passed(seen) if origin.scheme == "https" or facts.is_upstream_local else failed(seen)


def upstream_set(facts: Facts) -> Finding:
    """Look at whether anything but echo answers."""
    return warned("the built-in model echo answers") if facts.upstream_url is None else passed("an upstream is set")


def permissions(mode: int | None, most: int) -> Finding:
    """Judge permission bits, of which `most` are fine."""
    if mode is None:
        return skipped("there is no such file")
    return failed(f"mode {mode:04o}") if mode & 0o777 & ~most else passed(f"mode {mode:04o}")


def files(facts: Facts) -> Finding:
    """Look at who may use the files in the data folder."""
    if facts.open_files is None:
        return skipped("there is no such file")
    found = named(facts.open_files, "files are open to others", "every file is for its owner only")
    return failed(found.evidence) if facts.open_files else found


def audit_chain(facts: Facts) -> Finding:
    """Look at the check of the audit chain."""
    if facts.chain_problem is None:
        return failed("the audit log could not be read")
    return failed(facts.chain_problem) if facts.chain_problem else passed(f"{facts.audit_events} events verify")


def clock(facts: Facts) -> Finding:
    """Look at the clock."""
    if facts.now_at < EARLIEST_AT:
        return failed("the clock is before 2026")
    if facts.newest_at is not None and facts.newest_at > facts.now_at + CLOCK_SLACK_MS:
        ahead_seconds = (facts.newest_at - facts.now_at) // 1000
        return failed(f"the newest audit event is {ahead_seconds} seconds in the future")
    return passed("after every recorded event")


def disk(facts: Facts) -> Finding:
    """Look at the room on the disk."""
    if facts.free_bytes is None:
        return skipped("the data is not on a disk")
    seen = f"{facts.free_bytes >> 20} MiB free"
    if facts.free_bytes < FREE_NONE_BYTES:
        return failed(seen)
    return warned(seen) if facts.free_bytes < FREE_LOW_BYTES else passed(seen)


def suite(facts: Facts) -> Finding:
    """Look at the last run of the validation suite."""
    if facts.suite_at is None:
        return warned("the validation suite was never run here")
    if facts.suite_failures:
        return failed(f"cases of the last run that had another verdict than expected: {facts.suite_failures}")
    if facts.suite_is_stale:
        return warned("the rules have changed since the last run")
    age_days = (facts.now_at - facts.suite_at) // DAY_MS
    return warned(f"the last run was {age_days} days ago") if age_days > 30 else passed("every case holds")


def untested(facts: Facts) -> Finding:
    """Look at the rules that no case of the suite exercises."""
    if facts.unexercised is None or not facts.rules_count:
        return skipped("the validation suite was never run here")
    if facts.suite_is_stale:
        return skipped("the validation suite was last run with other rules")
    seen = f"{facts.unexercised} of {facts.rules_count} rules are exercised by their own examples alone"
    return warned(seen) if facts.unexercised * 2 > facts.rules_count else passed(seen)


def named(found: Sequence[str] | None, trouble: str, peace: str, nothing: str = "there is none") -> Finding:
    """Warn of what is named, ten at most; pass when nothing is. None: there is nothing of the kind."""
    if found is None:
        return skipped(nothing)
    if not found:
        return passed(peace)
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return warned(f"{len(found)} {trouble}: {', '.join(found[:10])}{more}")


def archive(facts: Facts) -> Finding:
    """Look at the running archive against its manifest."""
    if facts.archive_problem is None:
        return skipped("this runs from a checkout")
    return failed(facts.archive_problem) if facts.archive_problem else passed("every member is as the manifest says")


def backup(facts: Facts) -> Finding:
    """Look at the age of the newest backup."""
    if facts.in_memory:
        return skipped("the database is in memory")
    if facts.backup_at is None:
        since = facts.now_at - (facts.first_event_at or facts.now_at)
        return failed("there was never a backup") if since > BACKUP_OLD_MS else warned("there was never a backup")
    age_ms = facts.now_at - facts.backup_at
    seen = f"the newest backup is {age_ms // DAY_MS} days old"
    if age_ms > BACKUP_OLD_MS:
        return failed(seen)
    return warned(seen) if age_ms > BACKUP_GOOD_MS else passed(seen)


def refusals(count: int, what: str, *, many: int, flood: int) -> Finding:
    """Judge how often something happened."""
    seen = f"{count} {what}"
    if count >= flood:
        return failed(seen)
    return warned(seen) if count >= many else passed(seen)


def admins(facts: Facts) -> Finding:
    """Look at how many may do everything."""
    if not facts.rbac_enabled or facts.admins is None:
        return skipped("nobody signs in")
    seen = f"{facts.admins} administrators"
    return passed(seen) if 1 <= facts.admins <= MANY_ADMINS else warned(seen)


def days_kept(days: int | None, *, least: int = 0, most: int = 0) -> Finding:
    """Judge a retention; `least` and `most` days, 0 for no bound. A retention of 0 is for ever."""
    if days is None:
        return skipped("there is no retention")
    seen = f"kept {days} days" if days else "kept for ever"
    is_short = bool(least) and 0 < days < least
    is_long = bool(most) and (days == 0 or days > most)
    return warned(seen) if is_short or is_long else passed(seen)


def mcp_key(facts: Facts) -> Finding:
    """Look at the key of MCP over HTTP."""
    if not facts.mcp_enabled:
        return skipped("MCP is not served over HTTP")
    seen = f"{facts.mcp_key_chars} characters"
    return passed(seen) if facts.mcp_key_chars >= MCP_KEY_CHARS else failed(seen)


def outputs_set(facts: Facts) -> Finding:
    """Look at whether events leave this host."""
    return passed(f"{len(facts.outputs)} outputs") if facts.outputs else warned("events stay on this host")


def outputs_working(facts: Facts) -> Finding:
    """Look at whether what leaves this host arrives."""
    return named(
        [one.name for one in facts.outputs if one.is_failing] if facts.outputs else None,
        "outputs fail",
        "all deliver",
        "there is no output",
    )


def providers_tls(facts: Facts) -> Finding:
    """Look at the way to each provider."""
    if facts.providers is None or not (used := [one for one in facts.providers if one.enabled]):
        return skipped("there is no provider")
    clear = [one.name for one in used if one.base_url.startswith("http://") and not one.is_private]
    return failed(f"in clear: {', '.join(clear[:10])}") if clear else passed(f"{len(used)} providers")


def providers_up(facts: Facts) -> Finding:
    """Look at which providers are down."""
    if facts.providers is None or not (used := [one for one in facts.providers if one.enabled]):
        return skipped("there is no provider")
    return named([one.name for one in used if one.is_down], "providers are down", "all answer")


def budgets(facts: Facts) -> Finding:
    """Look at whether spending has an end."""
    if facts.budgets is None or not any(one.enabled for one in facts.providers or ()) and facts.upstream_url is None:
        return skipped("nothing costs anything")
    return passed(f"{facts.budgets} budgets") if facts.budgets else warned("no budget limits spending")


def dangerous_pair(tools: Sequence[str]) -> tuple[str, str] | None:
    """Return a tool that brings text in and one that acts, or None when an agent has not both."""
    reads = next((tool for tool in tools if _has_word(tool, _READS)), None)
    acts = next((tool for tool in tools if _has_word(tool, _ACTS)), None)
    return (reads, acts) if reads and acts and reads != acts else None


def agents_tools(facts: Facts) -> Finding:
    """Look at what the tools of each agent can do together."""
    found = None
    if facts.agents is not None:
        pairs = ((one.name, dangerous_pair(one.tools)) for one in facts.agents)
        found = [f"{name} ({pair[0]} with {pair[1]})" for name, pair in pairs if pair]
    return named(found or ([] if facts.agents else None), "agents can read and act", "none can read and act")


def agents_known(facts: Facts) -> Finding:
    """Look at agents that only traffic has shown."""
    found = [one.name for one in facts.agents or () if not one.is_registered] if facts.agents else None
    return named(found, "agents were never registered", "all are registered")


def captures(facts: Facts) -> Finding:
    """Look at what policies keep of texts."""
    if facts.captures_full:
        return named(facts.captures_full, "policies keep texts as they were", "")
    peace = "no policy keeps texts as they were, or masked ones for more than 30 days"
    return named(facts.captures_long, "policies keep masked texts for more than 30 days", peace)


def _has_word(tool: str, words: Sequence[str]) -> bool:
    folded = tool.lower()
    return any(word in folded for word in words)
