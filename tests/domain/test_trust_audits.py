"""The posture checks: what each of them says of which facts."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain import trust_audit_checks, trust_audits
from gateway.domain.agents import AgentRecord, AgentSource
from gateway.domain.keys import KeyRecord
from gateway.domain.posture import DAY_MS, CheckStatus, posture_score
from gateway.domain.principals import Scope
from gateway.domain.providers import Provider
from gateway.domain.trust_audit_checks import dangerous_pair
from gateway.domain.trust_audit_facts import Facts
from gateway.domain.trust_audits import CHECKS, run
from gateway.shield.detections import Severity

NOW_AT = 1_800_000_000_000
PASS, WARN, FAIL, SKIP = CheckStatus.PASS, CheckStatus.WARN, CheckStatus.FAIL, CheckStatus.NOT_APPLICABLE
KEY = KeyRecord(
    id="key_1",
    name="app",
    prefix="svc_abcdef",
    digest="0" * 64,
    scopes=(Scope.SHIELD_SCAN,),
    rate_limit=60,
    created_at=NOW_AT - DAY_MS,
    created_by="cli",
    expires_at=NOW_AT + DAY_MS,
    last_used_at=NOW_AT,
)


def provider(name: str, base_url: str) -> Provider:
    return Provider(id="prv_1", name=name, base_url=base_url)


def agent(name: str, *tools: str, source: AgentSource = AgentSource.MANUAL) -> AgentRecord:
    return AgentRecord(
        id="agt_1", name=name, folded=name, source=source, origin="", tools=tools, created_at=NOW_AT, created_by="cli"
    )


GOOD = Facts(
    now_at=NOW_AT,
    host="10.0.0.1",
    is_loopback=False,
    has_tls=True,
    rbac_enabled=True,
    allowed_hosts=("gateway.example",),
    trusted_proxies=("10.0.0.0/24",),
    upstream_url="https://models.example/v1",
    is_upstream_local=False,
    shield_mode="block",
    unscannable="review",
    tool_injection=True,
    block_at=60,
    review_at=25,
    log_level="info",
    is_root=False,
    rules_count=300,
    weak_rules=(),
    matcher="native",
    keys=(KEY,),
    in_memory=False,
    data_dir_mode=0o700,
    open_files=(),
    tls_key_mode=0o600,
    has_first_credentials=False,
    free_bytes=50 << 30,
    audit_events=10,
    chain_problem="",
    newest_at=NOW_AT - 1,
    suite_at=NOW_AT - DAY_MS,
    unexercised=10,
    archive_problem="",
    backup_at=NOW_AT - DAY_MS,
    first_event_at=NOW_AT - 100 * DAY_MS,
    admins=2,
    audit_days=365,
    traffic_days=30,
    outputs=("siem",),
    mcp_enabled=True,
    mcp_key_chars=32,
    access_entries=3,
    providers=(provider("main", "https://models.example/v1"),),
    detectors=1,
    budgets=1,
    agents=(agent("clerk", "read_file", "summarize"),),
    broad_acceptances=(),
)


def found(name: str, facts: Facts) -> CheckStatus:
    return next(check.status for check in run(facts) if check.id == name)


def test_a_gateway_set_up_well_passes_every_check() -> None:
    assert {check.id: check.status for check in run(GOOD)} == dict.fromkeys(CHECKS, PASS)
    assert posture_score(run(GOOD)) == 100


def test_every_check_has_a_name_of_its_own_and_says_why_and_how() -> None:
    assert len(CHECKS) >= 30
    for name, row in CHECKS.items():
        assert row["title"] and row["why"].endswith(".") and row["fix"].endswith(".") and row["refs"], name


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("exposure-tls", {"has_tls": False}, FAIL),
        ("exposure-tls", {"has_tls": False, "is_loopback": True}, PASS),
        ("exposure-rbac", {"rbac_enabled": False}, FAIL),
        ("exposure-rbac", {"rbac_enabled": False, "is_loopback": True}, WARN),
        ("exposure-hosts", {"allowed_hosts": ()}, FAIL),
        ("exposure-hosts", {"allowed_hosts": (), "is_loopback": True}, SKIP),
        ("exposure-proxies", {"trusted_proxies": ()}, SKIP),
        ("exposure-proxies", {"trusted_proxies": ("10.0.0.0/8", "0.0.0.0/0")}, FAIL),
        ("process-root", {"is_root": True}, WARN),
        ("shield-mode", {"shield_mode": "observe"}, FAIL),
        ("shield-rules", {"rules_count": 0}, FAIL),
        ("shield-self-test", {"rules_count": 0}, FAIL),
        ("shield-self-test", {"weak_rules": ("a-rule",)}, FAIL),
        ("shield-self-test", {"are_rules_builtin": True}, PASS),
        ("shield-matcher", {"matcher": "python"}, WARN),
        ("shield-thresholds", {"block_at": 61}, WARN),
        ("shield-thresholds", {"review_at": 26}, WARN),
        ("shield-thresholds", {"block_at": 50, "review_at": 10}, PASS),
        ("shield-unscannable", {"unscannable": "allow"}, WARN),
        ("shield-tools", {"tool_injection": False}, WARN),
        ("upstream-tls", {"upstream_url": "http://models.example/v1"}, FAIL),
        ("upstream-tls", {"upstream_url": "http://127.0.0.1/v1", "is_upstream_local": True}, PASS),
        ("upstream-tls", {"upstream_url": None}, SKIP),
        ("upstream-set", {"upstream_url": None}, WARN),
        ("files-data-dir", {"data_dir_mode": 0o750}, FAIL),
        ("files-data-dir", {"data_dir_mode": None}, SKIP),
        ("files-database", {"open_files": ("rules-test.json (mode 0644)",)}, FAIL),
        ("files-tls-key", {"tls_key_mode": 0o640}, PASS),
        ("files-tls-key", {"tls_key_mode": 0o644}, FAIL),
        ("files-first-credentials", {"has_first_credentials": True}, WARN),
        ("retention-memory", {"in_memory": True}, WARN),
        ("retention-logs", {"log_level": "debug"}, WARN),
        ("audit-chain", {"chain_problem": "event 3 was changed"}, FAIL),
        ("audit-chain", {"chain_problem": None}, FAIL),
        ("clock-sane", {"now_at": 0}, FAIL),
        ("clock-sane", {"newest_at": NOW_AT + 3_600_000}, FAIL),
        ("clock-sane", {"newest_at": NOW_AT + 1000}, PASS),
        ("clock-sane", {"newest_at": None}, PASS),
        ("disk-space", {"free_bytes": 500 << 20}, WARN),
        ("disk-space", {"free_bytes": 1 << 20}, FAIL),
        ("disk-space", {"free_bytes": None}, SKIP),
        ("keys-observed", {"keys_observed": ("svc_abcdef",)}, WARN),
        ("keys-refused", {"key_refusals": 50}, WARN),
        ("keys-refused", {"key_refusals": 500}, FAIL),
        ("access-list", {"access_entries": 0}, WARN),
        ("users-admins", {"admins": 0}, WARN),
        ("users-admins", {"admins": 9}, WARN),
        ("users-admins", {"rbac_enabled": False, "is_loopback": True}, SKIP),
        ("users-sign-in", {"sign_in_failures": 20}, WARN),
        ("mcp-key", {"mcp_key_chars": 8}, FAIL),
        ("mcp-key", {"mcp_enabled": False}, SKIP),
        ("shield-suite", {"suite_at": None}, WARN),
        ("shield-suite", {"suite_failures": 1}, FAIL),
        ("shield-suite", {"suite_is_stale": True}, WARN),
        ("shield-suite", {"suite_at": NOW_AT - 31 * DAY_MS}, WARN),
        ("shield-untested", {"unexercised": 200}, WARN),
        ("shield-acceptances", {"broad_acceptances": ("ra_1",)}, WARN),
        ("shield-acceptances", {"broad_acceptances": None}, SKIP),
        ("providers-tls", {"providers": (provider("a", "http://models.example"),)}, FAIL),
        ("providers-tls", {"providers": ()}, SKIP),
        ("providers-up", {"providers_down": ("main",)}, WARN),
        ("detectors-closed", {"open_detectors": ("guard",)}, CheckStatus.FAIL),
        ("budgets-set", {"budgets": 0}, WARN),
        ("budgets-set", {"budgets": 0, "providers": (), "upstream_url": None}, SKIP),
        ("agents-tools", {"agents": (agent("clerk", "read_mail", "send_mail"),)}, WARN),
        ("agents-tools", {"agents": ()}, SKIP),
        ("agents-known", {"agents": (agent("clerk", source=AgentSource.TRAFFIC),)}, WARN),
        ("alerts-waiting", {"old_critical_alerts": 1}, WARN),
        ("retention-audit", {"audit_days": 30}, WARN),
        ("retention-audit", {"audit_days": 0}, PASS),
        ("retention-traffic", {"traffic_days": 0}, WARN),
        ("retention-capture", {"captures_full": ["lab"]}, WARN),
        ("retention-capture", {"captures_long": ["lab"]}, WARN),
        ("retention-capture", {}, PASS),
        ("backup-age", {"backup_at": None}, FAIL),
        ("backup-age", {"backup_at": None, "first_event_at": NOW_AT}, WARN),
        ("backup-age", {"backup_at": NOW_AT - 8 * DAY_MS}, WARN),
        ("backup-age", {"backup_at": NOW_AT - 40 * DAY_MS}, FAIL),
        ("archive-integrity", {"archive_problem": None}, SKIP),
        ("archive-integrity", {"archive_problem": "changed: gateway/app.py"}, FAIL),
        ("outputs-set", {"outputs": ()}, WARN),
        ("outputs-working", {"failing_outputs": ("siem",)}, WARN),
    ],
)
def test_a_check_judges_the_facts_it_is_about(name: str, changes: dict[str, Any], status: CheckStatus) -> None:
    assert found(name, replace(GOOD, **changes)) is status


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("keys-age", {"created_at": NOW_AT - 91 * DAY_MS}, FAIL),
        ("keys-age", {"created_at": NOW_AT - 89 * DAY_MS}, PASS),
        ("keys-expiry", {"expires_at": None}, WARN),
        ("keys-unused", {"created_at": NOW_AT - 40 * DAY_MS, "last_used_at": None}, WARN),
        ("keys-unused", {"created_at": NOW_AT - 40 * DAY_MS, "last_used_at": NOW_AT - DAY_MS}, PASS),
        ("keys-unused", {"last_used_at": None}, PASS),
        ("keys-broad", {"scopes": tuple(Scope)}, WARN),
        ("keys-limit", {"rate_limit": 100_000}, WARN),
    ],
)
def test_a_check_judges_the_keys(name: str, changes: dict[str, Any], status: CheckStatus) -> None:
    assert found(name, replace(GOOD, keys=(KEY, replace(KEY, **changes)))) is status


def test_keys_that_no_longer_work_are_not_judged() -> None:
    expired = replace(KEY, created_at=NOW_AT - 200 * DAY_MS, expires_at=NOW_AT - DAY_MS, scopes=tuple(Scope))
    facts = replace(GOOD, keys=(expired,))
    assert {found(name, facts) for name in ("keys-age", "keys-expiry", "keys-unused", "keys-broad")} == {SKIP}


def test_evidence_names_keys_by_their_prefix_and_cuts_a_long_list() -> None:
    old = [
        replace(KEY, prefix=f"svc_{number:06x}", created_at=NOW_AT - 91 * DAY_MS, digest="f" * 64)
        for number in range(12)
    ]
    check = next(check for check in run(replace(GOOD, keys=old)) if check.id == "keys-age")
    assert "svc_000009" in check.evidence and "svc_00000a" not in check.evidence
    assert check.evidence.endswith("and 2 more")
    assert "f" * 64 not in check.evidence


def test_the_address_of_the_upstream_is_shown_without_its_credentials() -> None:
    facts = replace(GOOD, upstream_url="http://user:word@models.example/v1?key=word")
    check = next(check for check in run(facts) if check.id == "upstream-tls")
    assert check.evidence == "http://models.example"


def test_every_severity_is_in_use_so_that_the_weights_mean_something() -> None:
    assert {row["severity"] for row in CHECKS.values()} == set(Severity)


def test_every_fact_is_looked_at_by_some_check() -> None:
    text = "".join(Path(str(module.__file__)).read_text("utf-8") for module in (trust_audits, trust_audit_checks))
    assert [field.name for field in fields(Facts) if f"facts.{field.name}" not in text] == []


@pytest.mark.parametrize(
    ("tools", "pair"),
    [
        (("fetch_url", "run_shell"), ("fetch_url", "run_shell")),
        (("summarize",), None),
        (("send_mail",), None),
        (("read_and_send",), None),
        ((), None),
    ],
)
def test_a_dangerous_pair_is_one_tool_that_reads_and_another_that_acts(tools: Any, pair: Any) -> None:
    assert dangerous_pair(tools) == pair
