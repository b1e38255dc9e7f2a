"""Reports from the API: every type in every form, whole by itself, with what strangers wrote made inert."""

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from open_site import open_site, sign_in

from gateway.domain.paging import PageQuery
from gateway.domain.principals import ROLE_PERMISSIONS, Role
from gateway.domain.reports import EVERY_MS, REPORT_NEEDS, ReportFormat, ReportType
from gateway.domain.traffic import TrafficRow

EVIL = '<script>alert(1)</script>=HYPERLINK("x")|**b** "\'\n'
TYPES = [one.value for one in ReportType]


async def traffic(site: Any, **more: Any) -> None:
    clock, ids, store = site.gateway.clock, site.gateway.ids, site.gateway.store
    values = {
        "operation": "chat.completions", "principal_id": "key_1", "key_prefix": "svc_abcdef", "agent": EVIL,
        "model": "gpt-x", "provider": "main", "direction": "inbound", "verdict": "BLOCK", "score": 60,
        "action": "blocked", "prompt_tokens": 10, "reply_tokens": 5, "cost_microusd": 2_500_000, "elapsed_us": 1000,
    }  # fmt: skip
    row = TrafficRow(id=ids.new("trf"), occurred_at=clock.now_at() - 1000, request_id=ids.new("req"), **(values | more))
    await store.db.write(lambda tx: store.traffic.insert(tx, row))


async def made(site: Any, kind: str, form: str, **more: Any) -> tuple[Any, str]:
    answer = await site.ask("POST", "/api/reports", {"type": kind, "format": form, **more})
    assert answer["status"] == 201, answer
    response = await site.send("GET", f"/api/reports/{answer['data']['id']}")
    assert response.status == 200
    return response, response.body.decode()


class Page(HTMLParser):
    """What stands in a page: its tags, in order, and whether they are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "line", "rect", "circle", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


@pytest.mark.parametrize("kind", TYPES)
async def test_every_type_is_a_page_that_loads_and_runs_nothing(site_with: Any, kind: str) -> None:
    async with site_with() as site:
        await traffic(site)
        await site.ask("POST", "/api/trust-audits")
        response, text = await made(site, kind, "html")
        headers = dict(response.headers)
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert "sandbox" in headers["content-security-policy"]
        assert headers["content-disposition"].startswith(f'inline; filename="{kind}-')
        page = Page(text)
        assert page.open == [] and "script" not in page.tags and "img" not in page.tags
        assert all(link.startswith("#s") for link in page.links)
        assert page.tags.count("section") >= 5
        assert text.count('class="query"') == page.tags.count("section"), "each part says what was counted and when"


@pytest.mark.parametrize("kind", TYPES)
async def test_every_type_is_written_in_the_other_forms_too(site_with: Any, kind: str) -> None:
    async with site_with() as site:
        await traffic(site)
        response, text = await made(site, kind, "json")
        body = json.loads(text)
        assert dict(response.headers)["content-type"] == "application/json"
        assert body["type"] == kind and body["since"] < body["until"]
        assert all(section["query"] and isinstance(section["rows"], list) for section in body["sections"])
        response, text = await made(site, kind, "markdown")
        assert dict(response.headers)["content-type"] == "text/markdown; charset=utf-8"
        assert text.startswith("# ") and text.count("\n## ") == len(body["sections"])
        response, text = await made(site, kind, "csv")
        assert dict(response.headers)["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert [row[1] for row in rows if row[:1] == ["section"]] == [one["title"] for one in body["sections"]]


@pytest.mark.parametrize("form", [one.value for one in ReportFormat])
async def test_what_a_stranger_named_itself_means_nothing_in_a_document(site_with: Any, form: str) -> None:
    async with site_with() as site:
        await traffic(site)
        _, text = await made(site, "traffic_summary", form)
        if form == "html":
            assert "script" not in Page(text).tags and "&lt;script&gt;" in text
        elif form == "markdown":
            assert "<script>" not in text and "\\<script\\>" in text and "**b**" not in text
        elif form == "csv":
            cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
            assert any("<script>" in cell for cell in cells)
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
        else:
            assert json.loads(text)["type"] == "traffic_summary"


async def test_the_numbers_are_those_of_the_period_and_of_production(site_with: Any) -> None:
    async with site_with() as site:
        await traffic(site, agent="a")
        _, text = await made(site, "cost_analysis", "json", since="24h")
        totals = json.loads(text)["sections"][0]["rows"][0]
        assert (totals["requests"], totals["blocked"], totals["cost"], totals["tokens"]) == (1, 1, 2.5, 15)
        _, text = await made(site, "cost_analysis", "json", since="2020-01-01", until="2021-01-01")
        assert json.loads(text)["sections"][0]["rows"][0]["requests"] == 0
        await site.gateway.store.db.write(lambda tx: tx.execute("UPDATE traffic SET origin = 'demo'"))
        _, text = await made(site, "cost_analysis", "json", since="24h")
        assert json.loads(text)["sections"][0]["rows"][0]["requests"] == 0


async def test_the_dearest_stand_first_in_a_report_of_cost(site_with: Any) -> None:
    async with site_with() as site:
        for _ in range(3):
            await traffic(site, agent="many", cost_microusd=10)
        await traffic(site, agent="dear", cost_microusd=5_000_000)
        _, text = await made(site, "cost_analysis", "json")
        by_agent = next(one for one in json.loads(text)["sections"] if one["title"] == "By agent")
        assert [row["agent"] for row in by_agent["rows"]] == ["dear", "many"]


async def test_a_report_is_kept_listed_and_audited(site_with: Any) -> None:
    async with site_with() as site:
        first = (await site.ask("POST", "/api/reports", {"type": "access_review"}))["data"]
        assert first["format"] == "html" and first["document_bytes"] > 1000 and len(first["document_sha256"]) == 64
        second = (await site.ask("POST", "/api/reports", {"type": "access_review", "format": "csv"}))["data"]
        page = await site.ask("GET", "/api/reports?limit=1")
        assert page["data"] == [second]
        rest = await site.ask("GET", f"/api/reports?limit=1&cursor={page['page']['next']}")
        assert rest["data"] == [first]
        events = (await site.ask("GET", "/api/audit?action=report_created"))["data"]
        assert [event["resource_id"] for event in events] == [second["id"], first["id"]]
        assert (await site.ask("GET", "/api/reports/rep_nothing"))["status"] == 404


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "type"),
        ({"type": "weather"}, "type"),
        ({"type": "access_review", "format": "pdf"}, "format"),
        ({"type": "access_review", "since": "yesterday"}, "since"),
        ({"type": "access_review", "since": "1800-01-01"}, "since"),
        ({"type": "access_review", "until": "2026-02-30"}, "until"),
        ({"type": "access_review", "colour": "red"}, "colour"),
    ],
)
async def test_a_bad_wish_is_told_its_field(site_with: Any, body: object, param: str) -> None:
    async with site_with() as site:
        answer = await site.ask("POST", "/api/reports", body)
        assert (answer["status"], answer["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "period",
    [
        {"since": "1h", "until": "2h"},
        {"since": "2026-01-01", "until": "2026-01-01"},
        {"since": "4000d"},
        {"since": "1950-01-01"},
    ],
)
async def test_a_period_that_no_report_can_have_is_a_conflict(site_with: Any, period: dict[str, str]) -> None:
    async with site_with() as site:
        answer = await site.ask("POST", "/api/reports", {"type": "access_review", **period})
        assert (answer["status"], answer["error"]["param"]) == (409, "since")


async def test_a_schedule_makes_its_report_once_when_it_is_due(site_with: Any) -> None:
    async with site_with() as site:
        made = await site.ask("POST", "/api/report-schedules", {"type": "cost_analysis", "every": "day"})
        assert made["status"] == 201
        schedule, reports, store = made["data"], site.gateway.reports, site.gateway.store
        await reports.make_due()
        assert (await reports.page(PageQuery())).items == ()
        due_at = site.gateway.clock.now_at() - 5000
        await store.db.write(lambda tx: tx.execute("UPDATE report_schedules SET next_at = :at", {"at": due_at}))
        await reports.make_due()
        await reports.make_due()
        (report,) = (await reports.page(PageQuery())).items
        assert report.schedule == schedule["id"] and report.created_by == "gateway"
        assert (report.since_at, report.until_at) == (due_at - EVERY_MS["day"], due_at)


async def test_a_schedule_is_changed_and_removed(site_with: Any) -> None:
    async with site_with() as site:
        one = (await site.ask("POST", "/api/report-schedules", {"type": "cost_analysis", "every": "day"}))["data"]
        path = f"/api/report-schedules/{one['id']}"
        changed = (await site.ask("PATCH", path, {"enabled": False, "every": "week", "version": 1}))["data"]
        assert (changed["enabled"], changed["every"], changed["version"]) == (False, "week", 2)
        assert (await site.ask("PATCH", path, {"enabled": True, "version": 1}))["status"] == 409
        assert (await site.ask("POST", "/api/report-schedules", {"type": "cost_analysis"}))["error"]["param"] == "every"
        assert len((await site.ask("GET", "/api/report-schedules"))["data"]) == 1
        assert (await site.ask("DELETE", path))["status"] == 200
        assert (await site.ask("DELETE", path))["status"] == 404
        actions = {event["action"] for event in (await site.ask("GET", "/api/audit"))["data"]}
        assert {"report_schedule_created", "report_schedule_changed", "report_schedule_removed"} <= actions


async def test_a_report_shows_nobody_what_their_role_may_not_see(tmp_path: Path) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        people = {role: await sign_in(site, role) for role in Role}
        kept = {}
        for kind in TYPES:
            answer = await people[Role.ADMIN].ask("POST", "/api/reports", {"type": kind, "format": "json"})
            kept[ReportType(kind)] = answer["data"]["id"]
        for role, person in people.items():
            for kind, report in kept.items():
                missing = REPORT_NEEDS.get(kind, frozenset()) - ROLE_PERMISSIONS[role]
                answer = await person.ask("GET", f"/api/reports/{report}")
                assert answer["status"] == (403 if missing else 200), (role, kind)
        assert {ReportType.AUDIT_EXPORT, ReportType.ACCESS_REVIEW} < set(REPORT_NEEDS)


async def test_nobody_makes_or_plans_a_report_of_what_they_may_not_see(tmp_path: Path) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        operator, auditor = await sign_in(site, Role.OPERATOR), await sign_in(site, Role.AUDITOR)
        refused = await operator.ask("POST", "/api/reports", {"type": "access_review"})
        assert (refused["status"], refused["error"]["param"]) == (403, "type")
        plan = {"type": "access_review", "every": "week"}
        assert (await operator.ask("POST", "/api/report-schedules", plan))["status"] == 403
        made = (await operator.ask("POST", "/api/report-schedules", plan | {"type": "cost_analysis"}))["data"]
        path = f"/api/report-schedules/{made['id']}"
        assert (await operator.ask("PATCH", path, {"type": "access_review"}))["status"] == 403
        assert (await auditor.ask("PATCH", path, {"type": "access_review"}))["status"] == 200
        assert (await operator.ask("PATCH", path, {"every": "day"}))["status"] == 403


async def test_the_suite_is_drawn_by_category_with_both_rates(site_with: Any) -> None:
    async with site_with() as site:
        assert (await site.ask("POST", "/api/shield/tests", {}))["status"] == 201
        groups = (await site.ask("GET", "/api/shield/tests"))["data"]["last"]["report"]["categories"]
        _, text = await made(site, "shield_validation", "html")
        section = text.partition("<h2>By category</h2>")[2].partition("</section>")[0]
        drawn = ElementTree.fromstring(section[section.index("<svg") : section.index("</svg>") + 6])
        bars = [one for one in drawn.iter() if one.tag.endswith("rect") and one.get("x") == "220"]
        shares = (
            [(one["found"], one["attacks"]) for one in groups],
            [(one["flagged"], one["controls"]) for one in groups],
        )
        wanted = [part / whole if whole else 0.0 for pair in zip(*shares, strict=True) for part, whole in pair]
        assert len(wanted) == len(bars) > 2 and max(wanted) > 0
        assert [float(str(one.get("width"))) / 440 for one in bars] == pytest.approx(wanted, abs=0.001)
        words = [one.text for one in drawn.iter() if one.tag.endswith("text")]
        assert {"detection rate", "false positive rate", *(one["name"] for one in groups)} <= set(words)
