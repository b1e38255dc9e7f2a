"""The console as people look for something: the search, the range of time, the histogram, the list beside its detail."""

from collections.abc import Callable

import pytest
from dashboard.browser import Page
from dashboard.site import Site, quoted
from dashboard.test_forms import fill, newest
from dashboard.test_truths import ATTACK

pytestmark = pytest.mark.slow

OPTIONS = "[...document.querySelectorAll('.found [role=option]')].map(one => one.textContent)"


def search(page: Page, text: str) -> None:
    page.press("/")
    page.wait("document.activeElement?.getAttribute('role') === 'combobox'")
    page.type(text)


def test_the_search_opens_requests_keys_agents_rules_and_pages(opened: Callable[..., Page], site: Site) -> None:
    row = newest(site, "/api/traffic?verdict=BLOCK&limit=1")[0]
    page = opened("overview")
    for text, kind, address, title in (
        (row["request_id"], "Open", f"#/traffic/{row['request_id']}", "Requests"),
        (row["key_prefix"], "Key", "#/keys/key_", "Keys"),
        (row["agent"], "Agent", "#/agents/", "Agents"),
        ("override-prior-orders", "Rule", "#/shield/rules/override-prior-orders", "Protection"),
        ("Accepted", "Page", "#/shield/acceptances", "Protection"),
    ):
        search(page, text)
        page.wait(f"{OPTIONS}[0]?.endsWith({quoted(kind)}) && {OPTIONS}[0].includes({quoted(text)})")
        page.press("Enter")
        page.wait(f"location.hash.startsWith({quoted(address)})")
        page.wait(f"document.querySelector('h1').textContent === {quoted(title)}")
        page.settle()
        page.run("document.querySelectorAll('dialog[open]').forEach(one => one.close())")
        page.wait("!document.querySelector('dialog')")
    search(page, "no such thing")
    page.wait("document.querySelector('.found').textContent.includes('Nothing found')")
    page.check()


def test_the_search_offers_only_what_the_role_may_open(opened: Callable[..., Page], site: Site) -> None:
    key = newest(site, "/api/config/api-keys?limit=1")[0]
    page = opened("overview", role="viewer")
    search(page, key["prefix"])
    page.wait("document.querySelector('.found li')")
    assert not [one for one in page.run(OPTIONS) if one.endswith("Key")]
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    search(page, "Users")
    page.wait("document.querySelector('.found').textContent.includes('Nothing found')")


def test_a_time_of_ones_own_holds_for_the_next_page_as_well(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic")
    time = "document.querySelector('.filters [name=since]')"
    choose = f"({time}.value = 'pick', {time}.dispatchEvent(new Event('change')))"
    page.run(choose)
    fill(page, {"since": "2020-01-02T10:00", "until": "2020-01-01T10:00"})
    page.run("document.querySelector('dialog form').requestSubmit()")
    page.wait("document.querySelector('dialog form')?.textContent.includes('after the beginning')")
    fill(page, {"until": "2020-01-03T10:00"})
    page.run("document.querySelector('dialog form').requestSubmit()")
    page.wait("/since=2020-01-02.*until=2020-01-03/.test(location.hash) && !document.querySelector('dialog')")
    page.wait("document.querySelector('main .empty')")
    assert "to" in page.run(f"{time}.selectedOptions[0].textContent")
    for other in ("incidents", "alerts", "audit"):
        page.run(f"location.hash = '#/{other}'")
        page.wait(f"location.hash.startsWith('#/{other}?since=2020-01-02')")
        page.wait("document.querySelector('main .empty')")
    for other in ("overview", "cost"):
        page.run(f"location.hash = '#/{other}'")
        page.wait(f"location.hash.startsWith('#/{other}?since=2020-01-02')")
        page.wait("document.querySelector('.tools select').selectedOptions[0].textContent.includes(' to ')")
    page.settle()
    asked = [url for _, url in page.requests if "/traffic/summary?" in url][-1]
    assert "since=2020-01-02" in asked and "until=2020-01-03" in asked
    page.check()


def test_the_histogram_narrows_the_time_and_a_facet_filters(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic")
    page.wait("document.querySelector('.chart svg')")
    agent = newest(site, "/api/traffic/summary")["top"]["agents"][0]
    page.run("document.querySelector('details.more').open = true")
    chip = f"[...document.querySelectorAll('.chip')].find(one => one.textContent.startsWith({quoted(agent['value'])}))"
    page.run(f"{chip}.click()")
    page.wait(f"location.hash.includes({quoted('agent=' + agent['value'])})")
    page.wait(f"document.querySelector('[name=agent]').value === {quoted(agent['value'])}")
    page.settle()
    page.wait(f"{chip}?.getAttribute('aria-pressed') === 'true'")
    page.run(
        "{const image = document.querySelector('.chart svg'), box = image.getBoundingClientRect();"
        "for (const [name, share] of [['pointerdown', 0.5], ['pointermove', 0.6], ['pointerup', 0.6]]) "
        "image.dispatchEvent(new PointerEvent(name, {clientX: box.left + box.width * share, clientY: box.top + 30, pointerId: 1, bubbles: true}))}"
    )
    page.wait("/since=20.*until=20/.test(location.hash)")
    page.settle()
    part = "new URLSearchParams(location.hash.split('?')[1]).get('{}')".format
    since, until = page.run(part("since")), page.run(part("until"))
    wanted = newest(site, f"/api/traffic?agent={agent['value']}&since={since}&until={until}&limit=500")
    assert 0 < len(wanted) < agent["requests"]
    assert page.run("document.querySelectorAll('tbody tr').length") == min(50, len(wanted))
    page.check()


def test_beside_a_detail_the_list_stays_in_use(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic")
    page.size(1280, 900)
    page.run("document.querySelectorAll('tbody a.row')[0].click()")
    page.wait("document.querySelector('dialog.pane[open] .facts')")
    first = page.run("location.hash")
    page.run("document.querySelectorAll('tbody a.row')[3].click()")
    page.wait(f"location.hash !== {quoted(first)} && document.querySelectorAll('dialog.pane .facts').length === 1")
    assert page.run("document.querySelectorAll('tr.chosen').length") == 1
    box = "document.querySelector({!r}).getBoundingClientRect()".format
    assert page.run(f"{box('main table')}.right <= {box('dialog.pane')}.left")
    page.press("Escape")
    page.wait("!document.querySelector('dialog[open]') && !document.body.classList.contains('split')")
    page.size(800, 900)
    page.run("document.querySelectorAll('tbody a.row')[0].click()")
    page.wait("document.querySelector('dialog.drawer:modal')")
    page.check()


def test_a_bar_of_the_overview_leads_to_its_requests_by_keyboard(opened: Callable[..., Page], site: Site) -> None:
    page = opened("overview")
    page.wait("document.querySelectorAll('[data-part=numbers] .stat').length === 5")
    series = newest(site, "/api/traffic/summary")["series"]
    back, full = max(enumerate(reversed(series)), key=lambda one: one[1]["requests"])
    page.run("document.querySelector('main [role=slider]').focus()")
    for _ in range(back):
        page.press("ArrowLeft")
    page.press("Enter")
    page.wait(f"document.querySelector('.pager span')?.textContent.endsWith(' of {full['requests']}')")
    page.check()


def test_an_attack_shows_once_on_the_overview_and_in_the_panes(opened: Callable[..., Page], site: Site) -> None:
    key = site.ask("POST", "/api/config/api-keys", {"name": "seen", "scopes": ["shield:scan"]}).json["data"]
    agent = site.ask("POST", "/api/agents", {"name": "seen-bot"}).json["data"]
    by = {"key": key["key"], "headers": {"X-Service-Agent": "seen-bot"}}
    site.served.ask("POST", "/api/v1/shield/scan", {"text": ATTACK}, **by)
    page = opened("overview")
    shown = "[...document.querySelectorAll('main li')].map(one => one.innerText).filter(one => one.includes('seen-'))"
    page.wait(f"{shown}.length > 1")
    needs, blocked = page.run(shown)
    assert "seen-bot: " in needs and blocked.split() == ["seen-bot", "1"]
    for path in (f"agents/{agent['id']}", f"keys/{key['id']}"):
        page.run(f"document.querySelector('dialog')?.close(); location.hash = '#/{path}'")
        page.wait("[...document.querySelectorAll('dialog .legend b')].map(one => one.textContent).join() === '0,0,1'")
    page.check()
