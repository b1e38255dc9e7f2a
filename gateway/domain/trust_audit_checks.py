"""The functions of the trust audit: each turns facts into a finding. Pure.

Evidence names keys by their prefix and settings by their name. It never holds a secret.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from gateway.domain.agents import AgentSource
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
EARLIEST_AT = 1_767_225_600_000  # 2026-01-01: an earlier time is wrong, because this version is younger
CLOCK_SLACK_MS = 5 * 60_000
REGISTERED = (AgentSource.MANUAL, AgentSource.IMPORT)
# Words in the name of a tool that show what it can do. An agent with a tool that fetches text and a tool that sends or
# runs is at risk: an instruction injected into the text can steal data.
_READS = ("read", "fetch", "browse", "search", "get", "query", "list", "inbox", "file", "retrieve")
_ACTS = ("send", "post", "exec", "shell", "run", "write", "delete", "email", "upload", "pay", "transfer", "deploy")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check function."""

    status: CheckStatus
    evidence: str


passed = partial(Finding, CheckStatus.PASS)
warned = partial(Finding, CheckStatus.WARN)
failed = partial(Finding, CheckStatus.FAIL)
skipped = partial(Finding, CheckStatus.NOT_APPLICABLE)


def graded(state: str, *, fails: bool = False, warns: bool = False) -> Finding:
    """Return the finding of a state that fails, or else warns, or else passes."""
    return failed(state) if fails else warned(state) if warns else passed(state)


def warns(is_bad: Callable[[Facts], bool], problem: str, good: str) -> Callable[[Facts], Finding]:
    """Return a check that warns with `problem` if `is_bad`, and else passes with `good`."""
    return lambda facts: warned(problem) if is_bad(facts) else passed(good)


def exposed(facts: Facts, good: str, on_loopback: Finding, problem: str) -> Finding:
    """Pass with `good`; without it, fail with `problem` unless only loopback is served."""
    return passed(good) if good else on_loopback if facts.is_loopback else failed(problem)


def trusted_proxies(facts: Facts) -> Finding:
    """Check which proxies may name the client."""
    if not facts.trusted_proxies:
        return skipped("no proxy is trusted")
    wide = [network for network in facts.trusted_proxies if network.endswith("/0")]
    return failed(f"{', '.join(wide)} is everybody") if wide else passed(", ".join(facts.trusted_proxies))


def active_keys(
    is_bad: Callable[[KeyRecord, int], bool], problem: str, good: str, status: CheckStatus = CheckStatus.WARN
) -> Callable[[Facts], Finding]:
    """Return a check that names the active keys for which `is_bad` is true."""

    def check(facts: Facts) -> Finding:
        active = [key for key in facts.keys if key.status_at(facts.now_at) == "active"]
        if not active:
            return skipped("there is no active key")
        bad = [key.prefix for key in active if is_bad(key, facts.now_at)]
        if not bad:
            return passed(f"{len(active)} active keys, {good}")
        return Finding(status, f"{len(bad)} of {len(active)} active keys {problem}: {_first_ten(bad)}")

    return check


def self_test(facts: Facts) -> Finding:
    """Check that every rule finds its own examples."""
    if not facts.rules_count:
        return failed("no rule is loaded")
    if facts.are_rules_builtin:
        return passed(f"{facts.rules_count} built-in rules: the tests of the release ran all of their examples")
    if facts.weak_rules is None:
        return skipped("the running gateway has other rules than this shell")
    if not facts.weak_rules:
        return passed(f"{facts.rules_count} rules find their own examples")
    return failed(f"{len(facts.weak_rules)} rules miss their own example: {', '.join(facts.weak_rules[:10])}")


def upstream_tls(facts: Facts) -> Finding:
    """Check that the upstream of the settings uses TLS."""
    if facts.upstream_url is None:
        return skipped("no upstream is configured")
    origin = urlsplit(facts.upstream_url)
    is_clear = origin.scheme != "https" and not facts.is_upstream_local
    return graded(f"{origin.scheme}://{origin.hostname}", fails=is_clear)


def permissions(mode: int | None, allowed: int) -> Finding:
    """Check permission bits; `allowed` are the permitted ones."""
    if mode is None:
        return skipped("there is no such file")
    return graded(f"mode {mode:04o}", fails=mode & 0o777 & ~allowed != 0)


def clock(facts: Facts) -> Finding:
    """Check that the clock is plausible."""
    if facts.now_at < EARLIEST_AT:
        return failed("the clock is before 2026")
    if facts.newest_at is not None and facts.newest_at > facts.now_at + CLOCK_SLACK_MS:
        ahead_seconds = (facts.newest_at - facts.now_at) // 1000
        return failed(f"the newest audit event is {ahead_seconds} seconds in the future")
    return passed("after every recorded event")


def disk(facts: Facts) -> Finding:
    """Check the free space on the disk."""
    if facts.free_bytes is None:
        return skipped("the data is not on a disk")
    free = facts.free_bytes
    return graded(f"{free >> 20} MiB free", fails=free < FREE_NONE_BYTES, warns=free < FREE_LOW_BYTES)


def suite(facts: Facts) -> Finding:
    """Check the last run of the validation suite."""
    if facts.suite_at is None:
        return warned("the validation suite was never run here")
    if facts.suite_failures:
        return failed(f"cases of the last run that had another verdict than expected: {facts.suite_failures}")
    if facts.suite_is_stale:
        return warned("the rules have changed since the last run")
    age_days = (facts.now_at - facts.suite_at) // DAY_MS
    return warned(f"the last run was {age_days} days ago") if age_days > 30 else passed("every case holds")


def untested(facts: Facts) -> Finding:
    """Check how many rules no case of the suite exercises."""
    if facts.unexercised is None or not facts.rules_count:
        return skipped("the validation suite was never run here")
    if facts.suite_is_stale:
        return skipped("the validation suite was last run with other rules")
    state = f"{facts.unexercised} of {facts.rules_count} rules are exercised by their own examples alone"
    return graded(state, warns=facts.unexercised * 2 > facts.rules_count)


def named(
    bad: Sequence[str] | None,
    problem: str,
    good: str,
    nothing: str = "there is none",
    status: CheckStatus = CheckStatus.WARN,
) -> Finding:
    """Report the first ten of `bad` with a status; pass when it is empty. None: nothing of the kind exists."""
    if bad is None:
        return skipped(nothing)
    return Finding(status, f"{len(bad)} {problem}: {_first_ten(bad)}") if bad else passed(good)


def backup(facts: Facts) -> Finding:
    """Check the age of the newest backup."""
    if facts.in_memory:
        return skipped("the database is in memory")
    if facts.backup_at is None:
        since = facts.now_at - (facts.first_event_at or facts.now_at)
        return failed("there was never a backup") if since > BACKUP_OLD_MS else warned("there was never a backup")
    age_ms = facts.now_at - facts.backup_at
    state = f"the newest backup is {age_ms // DAY_MS} days old"
    return graded(state, fails=age_ms > BACKUP_OLD_MS, warns=age_ms > BACKUP_GOOD_MS)


def refusals(count: int, what: str, *, many: int, flood: int) -> Finding:
    """Check a number of refusals: `many` warn, `flood` fail."""
    return graded(f"{count} {what}", fails=count >= flood, warns=count >= many)


def days_kept(days: int | None, *, least: int = 0, most: int = 0) -> Finding:
    """Check a retention against `least` and `most` days, 0 for no bound. A retention of 0 days means for ever."""
    if days is None:
        return skipped("there is no retention")
    is_short, is_long = 0 < days < least, most > 0 and (days == 0 or days > most)
    return graded(f"kept {days} days" if days else "kept for ever", warns=is_short or is_long)


def providers_tls(facts: Facts) -> Finding:
    """Check that every provider uses TLS."""
    if not facts.providers:
        return skipped("there is no provider")
    clear = [one.name for one in facts.providers if (one.base_url or "").startswith("http:") and not one.allow_private]
    return failed(f"in clear: {', '.join(clear[:10])}") if clear else passed(f"{len(facts.providers)} providers")


def budgets(facts: Facts) -> Finding:
    """Check that a budget limits spending."""
    if facts.budgets is None or not facts.providers and facts.upstream_url is None:
        return skipped("nothing costs anything")
    return passed(f"{facts.budgets} budgets") if facts.budgets else warned("no budget limits spending")


def dangerous_pair(tools: Sequence[str]) -> tuple[str, str] | None:
    """Return a tool that fetches text and another that acts, or None if an agent does not have both."""
    reads, acts = (
        next((tool for tool in tools if any(word in tool.lower() for word in words)), None) for words in (_READS, _ACTS)
    )
    return (reads, acts) if reads and acts and reads != acts else None


def agents_tools(facts: Facts) -> Finding:
    """Check that no agent has both a tool that reads and a tool that acts."""
    pairs = ((one.name, dangerous_pair(one.tools)) for one in facts.agents or ())
    bad = [f"{name} ({pair[0]} with {pair[1]})" for name, pair in pairs if pair]
    return named(bad if facts.agents else None, "agents can read and act", "none can read and act")


def captures(facts: Facts) -> Finding:
    """Check which texts the policies store."""
    if facts.captures_full:
        return named(facts.captures_full, "policies keep texts as they were", "")
    good = "no policy keeps texts as they were, or masked ones for more than 30 days"
    return named(facts.captures_long, "policies keep masked texts for more than 30 days", good)


def _first_ten(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
