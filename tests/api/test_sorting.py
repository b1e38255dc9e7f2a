"""Lists sorted by the gateway: every sort of every list, both ways over several pages, and the total of each page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from gateway_site import KEYS, Site, open_site

from gateway.domain.agents import AgentSource, AgentStatus
from gateway.domain.alerts import Alert, AlertSource, AlertStatus
from gateway.domain.paging import MOST_COUNTED
from gateway.domain.reports import Report, ReportFormat, ReportType
from gateway.domain.risk_acceptances import AcceptanceScope
from gateway.domain.security_scans import SecurityScan
from gateway.domain.traffic import TrafficRow
from gateway.domain.users import Session
from gateway.operations.every import INTERNAL_OPERATIONS
from gateway.services.agent_discovery import Sighting
from gateway.shield.detections import Severity, Verdict

NAMES = ("a.b.c", "Äpfel", "b", "B", '"quoted" \\', "😀" * 100, "zeta", "[1,2]", "0", "-1")
TOKENS = ("prompt_tokens", "reply_tokens")
STATES = (*AlertStatus, *AgentStatus)
WORST_LAST = ("low", "medium", "high", "critical")


# By path: the field of the answer that each sort must order by, or its value. What is absent comes first.
SORTS: dict[str, dict[str, Any]] = {
    "/api/traffic": {
        "time": "occurred_at", "score": "score", "latency": "elapsed_us", "overhead": "overhead_us", "status": "status",
        "verdict": lambda one: list(Verdict).index(one["verdict"]), "cost": "cost_microusd",
        "tokens": lambda one: sum(one[name] or 0 for name in TOKENS) - all(one[name] is None for name in TOKENS),
    },
    "/api/alerts": {
        "first_seen": "first_seen", "last_seen": "last_seen", "status": lambda one: STATES.index(one["status"]),
        "severity": lambda one: WORST_LAST.index(one["severity"]), "count": "count",
    },
    KEYS: {
        "name": lambda one: one["name"].replace("B", "b"), "created": "created_at", "last_used": "last_used_at",
        "expires": lambda one: one["expires_at"] or "never", "rate_limit": "rate_limit",
    },
    "/api/agents": {
        "name": lambda one: one["name"].casefold(), "owner": "owner", "status": lambda one: STATES.index(one["status"]),
        "first_seen": "first_seen", "last_seen": "last_seen", "risk": lambda one: WORST_LAST.index(one["risk"]),
        "requests": "requests_24h", "blocks": "blocks_24h",
    },
    "/api/audit": {name: name for name in ("actor", "action", "outcome", "source")} | {"time": "timestamp", "number": "seq"},
    "/api/incidents": {
        "first_seen": "first_seen", "last_seen": "last_seen", "requests": "requests",
        "severity": lambda one: WORST_LAST.index(one["severity"]),
    },
    "/api/access": {
        "value": "value", "list": "list", "type": "type", "hits": "hits",
        "expires": lambda one: one["expires_at"] or "never",
    },
    "/api/risk-acceptances": {
        "rule": "rule", "until": "until", "covers": lambda one: list(AcceptanceScope).index(one["scope"]),
    },
    "/api/reports": {
        **{name: name for name in ("type", "format", "since", "until")}, "created": "created_at", "size": "document_bytes",
    },
    "/api/security-scans": {
        "time": "occurred_at", "score": "score", "findings": "detections",
        "verdict": lambda one: list(Verdict).index(one["verdict"]),
    },
    "/api/sessions": {
        "user": lambda one: one["username"].lower(), "created": "created_at", "last_seen": "last_seen_at",
        "expires": "expires_at",
    },
}  # fmt: skip


def row(number: int, at: int, **fields: Any) -> TrafficRow:
    values = {"id": f"trf_{number}", "occurred_at": at, "request_id": "r", "verdict": "ALLOW", "score": 0}
    return TrafficRow(operation="chat.completions", principal_id="key_1", **(values | fields))


async def fill(site: Site) -> None:
    """Store some of everything: values that are absent, and values that several rows share."""
    store, now_at, absent = site.gateway.store, site.gateway.clock.now_at(), (None, 0, 7, 7, None, 400_000)

    def work(tx: Any) -> None:
        for number in range(26):
            alert = Alert(
                id=f"alr_{number}", title="t", description="d", rule="r", fingerprint=str(number),
                severity=tuple(Severity)[number % 4], source=AlertSource.SHIELD, status=tuple(AlertStatus)[number % 6],
                count=1 + number % 3, first_seen_at=now_at - number % 5, last_seen_at=now_at + number % 4,
                incident=f"inc_{number // 2}",
            )  # fmt: skip
            store.alerts.insert(tx, alert)
        for number in range(17):
            one = row(
                number, now_at - number // 2, verdict=tuple(Verdict)[number % 3], score=number * 7 % 5,
                agent=NAMES[number % 3], overhead_us=number % 2, elapsed_us=number * 5 % 7, status=200 + number % 2,
                prompt_tokens=absent[number % 6], reply_tokens=absent[number % 4], cost_microusd=absent[-number % 6],
            )  # fmt: skip
            store.traffic.insert(tx, one)
        for number, key in enumerate(store.keys.all(tx)[::2]):
            store.keys.mark_used(tx, key.id, now_at=now_at + number % 2)
        for number, name in enumerate(NAMES[:5]):
            seen = Sighting(name=name, source=AgentSource.TRAFFIC, occurred_at=now_at - number // 2 * 3_600_000)
            site.gateway.agent_discovery.record_sighting(tx, seen)

    for number, name in enumerate(NAMES):
        dated = {"expires_at": f"2099-01-0{1 + number % 2}T00:00:00Z"} if number % 3 else {}
        await site.key("shield:scan", name=name, rate_limit=1 + number % 3, **dated)
        await site.ask("POST", "/api/agents", {"name": name} | ({"owner": f"Ä.{number % 2}"} if number % 3 else {}))
    await store.db.write(work)
    await fill_small_lists(site)
    await site.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key="svc_" + "0" * 40)
    await site.ask("POST", "/api/v1/shield/scan", {"text": "hello"}, key=await site.key("shield:scan", name=NAMES[5]))
    await site.settled()


async def fill_small_lists(site: Site) -> None:
    """Store entries of the access list, risk acceptances, reports, security scans and sessions."""
    store, now_at = site.gateway.store, site.gateway.clock.now_at()
    users = []
    for name in ("Zoe", "ann"):
        body = {"username": name, "password": "correct horse battery staple", "role": "viewer"}
        users.append((await site.ask("POST", "/api/users", body))["data"]["id"])
    for number in range(9):
        entry = {"list": "deny", "type": ("MODEL", "TOOL")[number % 2], "value": f"n{number * 5 % 9}"}
        entry |= {"list": "allow", "force": True} if number % 3 else {"expires_at": f"2099-01-0{1 + number}T00:00:00Z"}
        assert (await site.ask("POST", "/api/access", entry))["status_code"] == 201
        risk = {"rule": ("debug-config", "attack-model")[number % 2], "reason": "r"}
        risk |= {"scope": "rule_agent", "agent": "a", "any_key": True} if number % 3 else {"scope": "rule"}
        risk["until"] = (datetime.now(UTC) + timedelta(days=1 + number * 5 % 9)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert (await site.ask("POST", "/api/risk-acceptances", risk))["status_code"] == 201

    def work(tx: Any) -> None:
        store.access_list.add_hits(tx, {one.id: number % 4 for number, one in enumerate(store.access_list.all(tx))})
        for number in range(9):
            report = Report(
                id=f"rep_{number}", type=tuple(ReportType)[number % 3], format=tuple(ReportFormat)[number % 2],
                since_at=number % 4, until_at=9 + number % 3, created_at=99 + number // 2, created_by="a", schedule=None,
                document_bytes=number * 5 % 9, document_sha256="",
            )  # fmt: skip
            store.reports.insert(tx, report, document="")
            scan = SecurityScan(
                id=f"scn_{number}", occurred_at=number // 2, started_by="a", verdict=tuple(Verdict)[number % 3],
                score=number % 5, scanned=1, blocked=0, reviewed=0, unreadable=0, detections=number * 5 % 9, items=(),
            )  # fmt: skip
            store.security_scans.insert(tx, scan)
            session = Session(
                id=f"ses_{number}", digest=str(number), user_id=users[number % 2], created_at=now_at - number // 2,
                last_seen_at=now_at + number % 3, expires_at=now_at + 9999 + number % 4,
            )  # fmt: skip
            store.sessions.insert(tx, session)

    await store.db.write(work)


async def pages(site: Site, target: str) -> list[Any]:
    """Return the pages of a list, each as its whole answer."""
    found = [await site.ask("GET", target)]
    while cursor := found[-1]["page"]["next"]:
        found.append(await site.ask("GET", f"{target}&cursor={cursor}"))
    return found


@pytest.mark.parametrize("path", SORTS)
async def test_every_sort_gives_every_row_once_in_its_order_both_ways(path: str) -> None:
    async with open_site() as site:
        await fill(site)
        everything = await site.get(path + "?limit=100")
        assert [one for page in await pages(site, path + "?limit=3") for one in page["data"]] == everything
        for name, by in SORTS[path].items():
            order = by if callable(by) else lambda one, by=by: (one[by] is not None, one[by])
            assert len(everything) > 8 and len(set(map(order, everything))) > 1
            found = [[], []]  # type: list[list[Any]]
            for rows, sort in zip(found, (name, f"-{name}"), strict=True):
                for page in await pages(site, f"{path}?limit=1&sort={sort}"):
                    rows += page["data"]
                    assert page["page"] == page["page"] | {"limit": 1, "count": 1, "total": len(everything)}
                assert [order(one) for one in rows] == sorted(map(order, everything), reverse=sort != name), sort
            assert found[0] == found[1][::-1] and {one["id"] for one in found[0]} == {one["id"] for one in everything}


@pytest.mark.parametrize("path", SORTS)
async def test_what_is_no_sort_of_the_list_is_refused_and_so_is_a_cursor_of_another_sort(path: str) -> None:
    (listed,) = (one for one in INTERNAL_OPERATIONS if one.route == ("GET", path))
    (enum,) = (one.schema["enum"] for one in listed.query if one.name == "sort" and one.schema)
    assert sorted(enum) == sorted([*SORTS[path], *(f"-{name}" for name in SORTS[path])])
    name = next(iter(SORTS[path]))
    async with open_site() as site:
        for bad in ("", "-", "id", f"{name};", f"--{name}", name.upper()):
            answer = await site.ask("GET", f"{path}?sort={bad}")
            assert (answer["status_code"], answer["error"]["param"]) == (400, "sort")
        for bad in ("", "x" * 2000):
            assert (await site.ask("GET", f"{path}?cursor={bad}"))["error"]["param"] == "cursor"
        await fill(site)
        for made, asked in ((f"&sort={name}", f"&sort=-{name}"), (f"&sort={name}", ""), ("", f"&sort=-{name}")):
            cursor = (await site.ask("GET", f"{path}?limit=2{made}"))["page"]["next"]
            answer = await site.ask("GET", f"{path}?limit=2{asked}&cursor={cursor}")
            assert (answer["status_code"], answer["error"]["param"]) == (400, "cursor")


async def test_each_page_says_how_many_match_the_filter_up_to_a_bound() -> None:
    totals = {
        "/api/traffic?verdict=BLOCK": 5, "/api/traffic?search=nothing-has-this": 0, "/api/alerts?severity=critical": 7,
        "/api/alerts?scope=active&sort=-severity": 14, "/api/agents?search=zeta": 1, "/api/audit?action=api_key_created": 11,
        "/api/incidents?scope=all": 13,
    }  # fmt: skip
    async with open_site() as site:
        assert (await site.ask("GET", "/api/shield/rules"))["page"]["total"] > 100
        await fill(site)
        for target, total in totals.items():
            found = await pages(site, f"{target}&limit=2")
            assert {page["page"]["total"] for page in found} == {total}, target
            assert sum(page["page"]["count"] for page in found) == total
        store, left = site.gateway.store, MOST_COUNTED - (await site.ask("GET", "/api/traffic"))["page"]["total"]
        await store.db.write(lambda tx: [store.traffic.insert(tx, row(number, 1)) for number in range(left)])
        assert (first := (await site.ask("GET", "/api/traffic?limit=2"))["page"])["total"] == MOST_COUNTED
        await store.db.write(lambda tx: store.traffic.insert(tx, row(-1, 1)))
        for query in (f"cursor={first['next']}", "sort=score"):
            assert (await site.ask("GET", f"/api/traffic?limit=2&{query}"))["page"]["total"] is None
