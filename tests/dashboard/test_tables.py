"""What every list offers: sorting by the gateway, totals, a choice of columns, CSV, and filters that suggest names."""

import csv
import io
from collections.abc import Callable

import pytest
from dashboard.browser import Page
from dashboard.site import Site, quoted

pytestmark = pytest.mark.slow

HEADINGS = "[...document.querySelectorAll('main th')].filter(one => one.checkVisibility()).map(one => one.textContent)"


def sort_by(page: Page, label: str) -> None:
    """Click the heading of a column."""
    page.run(f"[...document.querySelectorAll('th .sort')].find(one => one.textContent.startsWith('{label}')).click()")
    page.settle()


def column(page: Page, label: str) -> list[str]:
    """Return what the rows of a list show in a column."""
    return page.run(f"[...document.querySelectorAll('main td[data-label=\"{label}\"]')].map(one => one.innerText)")


def saved(page: Page) -> list[dict[str, str]]:
    """Save the list as CSV and return its rows."""
    page.run(
        "window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = blob => { saved.push(blob); return make(blob) }"
    )
    page.say("CSV")
    page.wait("saved.length")
    text = page.run("saved[0].text()")
    return list(csv.DictReader(io.StringIO(text)))


def test_a_list_is_sorted_over_all_its_pages_and_the_address_says_so(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic")
    assert page.run("document.querySelector('th[aria-sort=descending]').textContent").startswith("Time")
    sort_by(page, "Score")
    scores = [int(one) for one in column(page, "Score")]
    highest = max(row["score"] for row in site.ask("GET", "/api/traffic?verdict=BLOCK&limit=100").json["data"])
    assert scores[0] == highest > 0
    assert scores == sorted(scores, reverse=True)
    assert "sort=-score" in page.run("location.hash")
    page.say("Next")
    page.wait("document.querySelector('.pager span').textContent.startsWith('51')")
    assert int(column(page, "Score")[0]) <= scores[-1]
    page.run("location.reload()")
    page.wait("document.querySelector('th[aria-sort=descending]')")
    page.settle()
    assert [int(one) for one in column(page, "Score")] == scores
    sort_by(page, "Score")
    assert column(page, "Score")[0] == "0"
    assert page.run("document.querySelector('th[aria-sort=ascending]').textContent").startswith("Score")
    page.check()


@pytest.mark.parametrize(
    "path", ["traffic", "alerts?scope=all", "incidents?scope=all", "agents", "keys", "audit/log", "settings/sessions"]
)
def test_every_heading_that_sorts_sorts(opened: Callable[..., Page], path: str) -> None:
    page = opened(path)
    headings = "[...document.querySelectorAll('main th .sort')]"
    for number in range(page.run(f"{headings}.length")):
        for _ in range(2):
            page.run(f"{headings}[{number}].click()")
            page.settle()
            assert page.run(f"{headings}[{number}].closest('th').ariaSort") in ("ascending", "descending")
            assert page.run("document.querySelectorAll('main tbody tr').length") > 0
    page.check()


def test_agents_that_need_attention_come_first(opened: Callable[..., Page]) -> None:
    page = opened("agents")
    order = ["High", "Medium", "Low"]
    risks = column(page, "Risk")
    assert risks == sorted(risks, key=order.index)


def test_a_list_says_how_many_rows_there_are(opened: Callable[..., Page], site: Site) -> None:
    total = site.ask("GET", "/api/traffic?limit=1").json["page"]["total"]
    page = opened("traffic")
    assert page.run("document.querySelector('.pager span').textContent") == f"1–50 of {total:,}"
    blocked = site.ask("GET", "/api/traffic?limit=1&verdict=BLOCK").json["page"]["total"]
    page = opened("traffic?verdict=BLOCK")
    assert page.run("document.querySelector('.pager span').textContent") == f"1–{min(blocked, 50)} of {blocked}"


def test_a_choice_of_columns_is_kept(opened: Callable[..., Page]) -> None:
    page = opened("traffic")
    before = page.run(HEADINGS)
    assert any(one.startswith("Model") for one in before)
    assert not any(one.startswith("Action") for one in before)
    page.say("Columns")
    boxes = "[...document.querySelectorAll('dialog label.check')]"
    for label in ("Model", "Action"):
        page.run(f"{boxes}.find(one => one.textContent === '{label}').querySelector('input').click()")
    page.say("Done")
    for _ in range(2):  # now, and after the page was loaded anew
        now = page.run(HEADINGS)
        assert not any(one.startswith("Model") for one in now)
        assert any(one.startswith("Action") for one in now)
        assert len(column(page, "Action")) == 50
        page.run("location.reload()")
        page.wait("document.querySelector('main tbody tr')")
        page.settle()
    page.say("Columns")
    page.say("Reset")
    assert page.run(HEADINGS) == before
    page.check()


def test_any_list_is_saved_as_csv_with_all_rows_that_the_filters_leave(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic?verdict=ALLOW&since=24h&sort=-tokens")
    rows = saved(page)
    wanted = site.ask("GET", "/api/traffic?verdict=ALLOW&since=24h&limit=1").json["page"]["total"]
    assert len(rows) == wanted > 100
    assert {row["verdict"] for row in rows} == {"ALLOW"}
    tokens = [int(row["prompt_tokens"] or 0) + int(row["reply_tokens"] or 0) for row in rows]
    assert tokens == sorted(tokens, reverse=True)
    page.wait(f"document.querySelector('.toast').textContent.includes('Saved {wanted:,} rows')")
    page = opened("shield/rules")
    assert len(saved(page)) == int(
        page.run("document.querySelector('.pager span').textContent.split(' of ')[1].replace(',', '')")
    )
    page.check()


def test_no_spreadsheet_takes_a_saved_text_for_a_formula(opened: Callable[..., Page], site: Site) -> None:
    body = {"list": "deny", "type": "MODEL", "value": "some-model", "reason": '=HYPERLINK("x", "y")'}
    made = site.ask("POST", "/api/access", body)
    assert made.status == 201, made.body
    page = opened("settings/access")
    assert saved(page)[0]["reason"] == "'" + body["reason"]
    assert site.ask("DELETE", f"/api/access/{made.json['data']['id']}").status == 200
    page.check()


def test_headings_stay_in_sight(opened: Callable[..., Page]) -> None:
    page = opened("traffic")
    top = "Math.round(document.querySelector('main th').getBoundingClientRect().top)"
    page.wait(f"(window.scrollTo(0, document.body.scrollHeight), {top} === 48)")


def test_a_filter_suggests_the_names_that_the_gateway_knows(opened: Callable[..., Page], site: Site) -> None:
    agent = next(one for one in site.ask("GET", "/api/agents").json["data"] if one["model"])
    page = opened("traffic")
    for field, value in (("agent", agent["name"]), ("model", agent["model"]), ("rule", "override-prior-orders")):
        page.run(f"document.querySelector('.filters [name={field}]').focus()")
        page.wait(f"[...document.querySelector('[name={field}]').list.options].some(one => one.value === '{value}')")
    page = opened("audit/log")
    page.run("document.querySelector('.filters [name=action]').focus()")
    page.wait("[...document.querySelector('.filters [name=action]').list.options].length > 1")
    page.check()


@pytest.mark.parametrize(
    ("path", "api", "name", "choices"),
    [
        ("traffic?since=24h", "/api/traffic?since=24h", "verdict", ("", "BLOCK", "ALLOW")),
        ("alerts?severity=critical", "/api/alerts?severity=critical", "scope", ("active", "terminal", "all")),
        ("incidents", "/api/incidents?scope=active", "severity", ("", "critical", "low")),
        ("agents", "/api/agents?", "risk", ("", "high", "medium")),
        ("audit/log", "/api/audit?", "source", ("", "api", "auth")),
    ],
)
def test_each_choice_of_a_filter_says_how_many_rows_it_leaves(
    opened: Callable[..., Page], site: Site, path: str, api: str, name: str, choices: tuple[str, ...]
) -> None:
    page = opened(path)
    page.run(f"document.querySelector('.filters [name={name}]').focus()")
    for value in choices:
        wanted = site.ask("GET", f"{api}&limit=1" + (f"&{name}={value}" if value else "")).json["page"]["total"]
        option = f"document.querySelector('.filters [name={name}] option[value={quoted(value)}]')"
        page.wait(f"{option}.textContent.endsWith(' ({wanted:,})')")
    page.check()


def test_after_a_choice_the_other_filters_count_what_it_leaves(opened: Callable[..., Page], site: Site) -> None:
    page = opened("alerts?scope=all")
    state = "document.querySelector('.filters [name=severity]')"
    page.run(f"{state}.focus()")
    page.wait(f"/[(]/.test({state}.options[1].textContent)")
    page.run(f"{state}.value = 'low', {state}.dispatchEvent(new Event('change', {{bubbles: true}}))")
    low = site.ask("GET", "/api/alerts?severity=low&scope=all&limit=1").json["page"]["total"]
    page.wait(f"document.querySelector('.filters [name=scope] [value=all]').textContent === 'All ({low})'")
    page.check()


def test_on_a_telephone_a_list_is_sorted_by_what_can_be_seen(opened: Callable[..., Page]) -> None:
    page = opened("alerts?scope=all")
    page.size(360, 800)
    for label, way in (("Count", "descending"), ("Severity", "descending")):
        find = f"[...document.querySelectorAll('th .sort')].find(one => one.textContent.startsWith('{label}'))"
        box = page.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2, height])({find}.getBoundingClientRect())"
        )
        assert box[2] >= 24
        assert page.run(f"{find}.contains(document.elementFromPoint({box[0]}, {box[1]}))"), label
        page.run(f"{find}.click()")
        page.settle()
        assert page.run(f"{find}.closest('th').ariaSort") == way
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.check()


def test_on_a_telephone_filters_are_folded_until_they_are_wanted(opened: Callable[..., Page]) -> None:
    page = opened("traffic?verdict=BLOCK")
    page.size(360, 800)
    seen = "document.querySelector('.filters [name=verdict]').checkVisibility()"
    assert page.run(seen) is False
    page.say("Filters (1 set)")
    assert page.run(seen) is True
    page.check()


def test_on_a_telephone_an_alert_still_says_whose_it_is(opened: Callable[..., Page]) -> None:
    page = opened("alerts")
    page.size(360, 800)
    for label in ("Severity", "State", "Agent or key", "Last seen"):
        assert page.run(f"document.querySelector('tbody td[data-label=\"{label}\"]').checkVisibility()"), label
