"""The queries of reports, one row each, in words for people and in SQL for the database. They only read.

Every query may use `:since` and `:until` (Unix milliseconds; the first is included, the second is not), `:step`, the
length of a bucket of time, `:now` and `:origin`. Demonstration data has an origin of its own, so no other number counts
it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from gateway.store.database import Transaction

MOST_ROWS = 200
MOST_EVENTS = 2000
HOUR_MS = 3_600_000

_TRAFFIC = "FROM traffic WHERE origin = :origin AND occurred_at >= :since AND occurred_at < :until"
_BLOCKED = "COUNT(*) FILTER (WHERE verdict = 'BLOCK')"
_REVIEWED = "COUNT(*) FILTER (WHERE verdict = 'REVIEW')"
_COUNTS = f"""
    COUNT(*) AS requests, {_BLOCKED} AS blocked,
    {_REVIEWED} AS reviewed,
    COALESCE(SUM(prompt_tokens), 0) + COALESCE(SUM(reply_tokens), 0) AS tokens,
    COALESCE(SUM(cost_microusd), 0) / 1000000.0 AS cost
"""
_COUNT_COLUMNS = "requests, blocked, reviewed, tokens, cost:usd"
_SEEN = "FROM alerts WHERE last_seen_at >= :since AND last_seen_at < :until"
_EVENTS = "FROM audit_events WHERE occurred_at >= :since AND occurred_at < :until"
_ACTIVE = "status IN ('open', 'acknowledged', 'investigating')"


@dataclass(frozen=True, slots=True)
class Query:
    """One query.

    about: what it asks, for people. named: its columns, some with a colon and a unit. is_current: the period does not
    matter. most: how many rows it returns. has_gaps: a bucket without a row was not measured, so it is not zero.
    """

    about: str
    sql: str
    named: str
    is_current: bool = False
    most: int = MOST_ROWS
    has_gaps: bool = False


def _now(about: str, sql: str, named: str, most: int = MOST_ROWS) -> Query:
    return Query(about, sql, named, is_current=True, most=most)


def _timed(about: str, rest: str, named: str) -> Query:
    sql = f"SELECT occurred_at - occurred_at % :step AS at, {rest} GROUP BY 1 ORDER BY 1"
    return Query(f"{about}, by time", sql, f"time:time, {named}", most=5000)


def _grouped(noun: str, column: str) -> Query:
    sql = f"SELECT COALESCE({column}, '(none)') AS value, {_COUNTS} {_TRAFFIC} GROUP BY 1 ORDER BY 2 DESC"
    return Query(f"requests of the traffic table, by {noun}", sql, f"{noun}, {_COUNT_COLUMNS}")


def _blocked(noun: str, column: str) -> Query:
    sql = f"""
        SELECT COALESCE({column}, '(none)') AS value, {_BLOCKED} AS blocked,
               {_REVIEWED} AS reviewed
          {_TRAFFIC} AND verdict <> 'ALLOW' GROUP BY 1 ORDER BY 2 DESC, 3 DESC
    """
    return Query(f"requests with BLOCK or REVIEW, by {noun}", sql, f"{noun}, blocked, reviewed")


def _alerts(column: str) -> Query:
    sql = f"SELECT {column}, COUNT(*), SUM(count) {_SEEN} GROUP BY 1 ORDER BY 2 DESC, 1"
    return Query(f"alerts last seen in the period, by {column}", sql, f"{column}, alerts, sightings")


def _events(column: str) -> Query:
    sql = f"SELECT COALESCE({column}, '(none)'), COUNT(*) {_EVENTS} GROUP BY 1 ORDER BY 2 DESC, 1"
    return Query(f"audit events, by {column}", sql, f"{column}, events")


QUERIES: Mapping[str, Query] = {
    # Traffic.
    "totals": Query(
        "all requests of the traffic table",
        f"""SELECT {_COUNTS}, COUNT(*) FILTER (WHERE status >= 500),
                   COUNT(DISTINCT agent), COUNT(DISTINCT key_prefix), COUNT(DISTINCT model)
            {_TRAFFIC}""",
        f"{_COUNT_COLUMNS}, failed (5xx), agents, keys, models",
    ),
    "by_time": _timed(
        "requests of the traffic table",
        f"COUNT(*), {_BLOCKED}, {_REVIEWED} {_TRAFFIC}",
        "requests, blocked, reviewed",
    ),
    "threats_by_time": _timed(
        "requests with BLOCK or REVIEW",
        f"{_BLOCKED}, {_REVIEWED} {_TRAFFIC} AND verdict <> 'ALLOW'",
        "blocked, reviewed",
    ),
    "cost_by_time": _timed(
        "cost of the requests that have a price", f"COALESCE(SUM(cost_microusd), 0) / 1000000.0 {_TRAFFIC}", "cost:usd"
    ),
    "times": Query(
        "mean and longest time of the requests; overhead is the gateway's own share",
        f"""SELECT AVG(elapsed_us) / 1000.0, MAX(elapsed_us) / 1000.0, AVG(overhead_us) / 1000.0,
                   MAX(overhead_us) / 1000.0 {_TRAFFIC}""",
        "mean time:ms, longest time:ms, mean overhead:ms, longest overhead:ms",
    ),
    "unpriced": Query(
        "completed requests that have tokens and no price, by model",
        f"""SELECT COALESCE(model, '(none)'), COUNT(*), COALESCE(SUM(prompt_tokens), 0) + COALESCE(SUM(reply_tokens), 0)
            {_TRAFFIC} AND cost_microusd IS NULL AND prompt_tokens IS NOT NULL GROUP BY 1 ORDER BY 2 DESC""",
        "model, requests, tokens",
    ),
    "scores": Query(
        "requests of the traffic table, by their score in steps of ten",
        f"SELECT (score / 10) * 10 AS at, COUNT(*) {_TRAFFIC} GROUP BY 1 ORDER BY 1",
        "score from, requests",
    ),
    "by_action": _grouped("action taken", "action"),
    "by_key": _grouped("key", "key_prefix"),
    **{
        f"by_{name}": _grouped(name, name)
        for name in ("verdict", "direction", "operation", "model", "provider", "agent")
    },
    "by_status": _grouped("status", "CAST(status AS TEXT)"),
    **{
        f"blocked_by_{noun}": _blocked(noun, column)
        for noun, column in (("agent", "agent"), ("key", "key_prefix"), ("model", "model"))
    },
    "by_rule": Query(
        "hourly sums of requests that a rule matched, by rule",
        """SELECT value, SUM(requests), SUM(blocks), SUM(reviews) FROM traffic_sums
            WHERE size_ms = 3600000 AND dimension = 'rule' AND origin = :origin
              AND bucket_at >= :since - :since % 3600000 AND bucket_at < :until
            GROUP BY 1 ORDER BY 2 DESC""",
        "rule, requests, blocked, reviewed",
    ),
    # Alerts.
    "alert_totals": Query(
        "alerts last seen in the period",
        f"""SELECT COUNT(*), COUNT(*) FILTER (WHERE {_ACTIVE}),
                   COUNT(*) FILTER (WHERE {_ACTIVE} AND severity = 'critical'),
                   COUNT(*) FILTER (WHERE status = 'resolved'),
                   COUNT(*) FILTER (WHERE status = 'false_positive'),
                   AVG(resolved_at - first_seen_at) / 60000.0 {_SEEN}""",
        "alerts, active, active and critical, resolved, false positives, mean minutes to resolve",
    ),
    **{f"alerts_by_{column}": _alerts(column) for column in ("severity", "source", "rule", "status")},
    "active_alerts": _now(
        "alerts that are open, acknowledged or investigated, gravest first",
        f"""SELECT severity, title, source, rule, status, count, agent, key_prefix, first_seen_at, last_seen_at
              FROM alerts WHERE {_ACTIVE}
             ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END,
                      last_seen_at DESC""",  # noqa: S608
        "severity, title, source, rule, status, count, agent, key, first seen:time, last seen:time",
        50,
    ),
    # Audit log.
    **{f"events_by_{column}": _events(column) for column in ("action", "actor", "source", "outcome")},
    "refusals": Query(
        "audit events of refused keys, sessions and sign-ins, by action and reason",
        f"""SELECT action, COALESCE(reason, ''), COUNT(*) {_EVENTS}
              AND action IN ('api_key_refused', 'session_refused', 'sign_in_failed', 'sign_in_throttled')
             GROUP BY 1, 2 ORDER BY 3 DESC""",
        "action, reason, events",
    ),
    "events": Query(
        f"audit events, newest first, {MOST_EVENTS:,} at most; `audit export` writes all",
        f"""SELECT seq, occurred_at, source, action, outcome, actor, agent, ip, request_id, resource_type, resource_id,
                   reason, hash
            {_EVENTS} ORDER BY occurred_at DESC, position DESC""",
        "seq, time:time, source, action, outcome, actor, agent, address, request, resource type, resource, reason"
        ", hash",
        most=MOST_EVENTS,
    ),
    "access_changes": Query(
        "audit events about keys, users, access entries and policies, newest first",
        f"""SELECT occurred_at, action, actor, resource_type, resource_id {_EVENTS}
              AND resource_type IN ('api_key', 'user', 'access_entry', 'policy', 'risk_acceptance')
              AND source <> 'auth' AND action NOT LIKE '%used%'
             ORDER BY occurred_at DESC, position DESC""",
        "time:time, action, actor, resource type, resource",
    ),
    "chains": _now(
        "audit chains: the oldest event that is kept, and the newest",
        "SELECT instance_id, first_seq, seq, hash FROM audit_heads ORDER BY 1",
        "chain, first event, last event, last hash",
    ),
    "checkpoints": _now(
        "checkpoints up to which the audit chain was found whole, newest first",
        "SELECT occurred_at, seq, hash FROM audit_checkpoints ORDER BY occurred_at DESC, seq DESC",
        "time:time, event, hash",
        10,
    ),
    # Records.
    "keys": _now(
        "API keys that are not revoked, oldest first",
        """SELECT name, prefix, REPLACE(scopes, '","', '", "'), rate_limit, created_by, created_at, last_used_at,
                  expires_at FROM api_keys WHERE revoked_at IS NULL OR revoked_at > :now ORDER BY created_at""",
        "name, prefix, scopes, calls a minute, made by, made:time, last used:time, expires:time",
        1000,
    ),
    "users": _now(
        "users, by name",
        "SELECT username, role, created_at, disabled_at FROM users ORDER BY username",
        "user, role, made:time, disabled:time",
        1000,
    ),
    "sessions": _now(
        "sessions that have not ended, newest first",
        """SELECT u.username, s.ip, s.created_at, s.last_seen_at, s.expires_at FROM sessions s
             JOIN users u ON u.id = s.user_id WHERE s.expires_at > :now ORDER BY s.created_at DESC""",
        "user, address, signed in:time, last seen:time, ends:time",
    ),
    "access_entries": _now(
        "entries of the access list",
        """SELECT list_name, entry_type, value, scope, reason, created_by, created_at, expires_at, hits
             FROM access_entries ORDER BY created_at""",
        "list, type, value, scope, reason, made by, made:time, expires:time, hits",
        1000,
    ),
    "policies": _now(
        "policies that keys may have",
        "SELECT name, mode, block_score, review_score, unscannable, outbound, created_by FROM policies ORDER BY name",
        "policy, mode, blocks from, reviews from, unscannable, outbound, made by",
        1000,
    ),
    "acceptances": _now(
        "risk acceptances that hold",
        """SELECT scope, rule, agent, reason, accepted_by, accepted_at, until_at FROM risk_acceptances
            WHERE revoked_at IS NULL AND is_proposed = 0 AND until_at > :now ORDER BY until_at""",
        "scope, rule, agent, reason, accepted by, accepted:time, until:time",
    ),
    "budgets": _now(
        "budgets with what was spent in their newest period, in their own unit (micro-dollars for usd)",
        """SELECT b.name, b.scope, b.scope_value, b.unit, b.period, b.limit_amount, COALESCE(p.spent, 0), b.action
             FROM budgets b LEFT JOIN budget_periods p ON p.budget_id = b.id
              AND p.begins_at = (SELECT MAX(begins_at) FROM budget_periods WHERE budget_id = b.id)
            ORDER BY b.name""",
        "budget, scope, of, unit, window, limit, spent, action",
    ),
    "providers": _now(
        "providers, in the order they are tried",
        "SELECT name, type, base_url, priority, weight, enabled FROM providers ORDER BY priority, weight DESC, name",
        "provider, type, address, priority, weight, enabled",
    ),
    "agents": _now(
        "agents that are not retired, newest sighting first",
        """SELECT name, source, owner, role, model, tools, first_seen_at, last_seen_at, blocked_at FROM agents
            WHERE retired_at IS NULL AND origin = :origin ORDER BY COALESCE(last_seen_at, 0) DESC""",
        "agent, source, owner, role, model, tools, first seen:time, last seen:time, blocked:time",
    ),
    "new_agents": Query(
        "agents that were first seen in the period",
        """SELECT name, source, first_seen_at FROM agents
            WHERE first_seen_at >= :since AND first_seen_at < :until AND origin = :origin ORDER BY 3 DESC""",
        "agent, source, first seen:time",
    ),
    "instances": _now(
        "gateways that write to this database",
        """SELECT name, version, status, started_at, last_seen_at FROM instances ORDER BY name""",
        "instance, version, status, started:time, last seen:time",
    ),
    "course": Query(
        "posture and threat score as noted every five minutes, the mean of each span",
        """SELECT occurred_at - occurred_at % :step AS at, AVG(posture_score), AVG(threat_score) FROM posture_points
             WHERE occurred_at >= :since AND occurred_at < :until GROUP BY 1 ORDER BY 1""",
        "time:time, posture:score, threat:score",
        most=5000,
        has_gaps=True,
    ),
}


def ask(
    tx: Transaction, name: str, *, since: int, until: int, step: int, now: int, origin: str
) -> list[tuple[object, ...]]:
    """Return the rows of a query and one more than its `most`, which shows that there are others."""
    query = QUERIES[name]
    params = {"since": since, "until": until, "step": step, "now": now, "limit": query.most + 1, "origin": origin}
    return [tuple(cast("Iterable[object]", row)) for row in tx.query(f"{query.sql} LIMIT :limit", params)]
