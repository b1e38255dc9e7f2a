"""What a page shows while nothing is there, while something fails, with a thousand rows, on paper, and without sign-in."""

from collections.abc import Callable

import pytest
from dashboard.browser import Browser, Page
from dashboard.site import SCREENSHOTS, Site, serve

pytestmark = pytest.mark.slow


def test_a_list_that_cannot_be_read_says_what_to_do_and_comes_back(opened: Callable[..., Page]) -> None:
    page = opened("overview")
    page.call("Network.setBlockedURLs", urls=["*/api/agents*"])
    page.run("location.hash = '#/agents'")
    page.wait("document.querySelector('main .empty.bad')")
    assert "Check that the gateway runs" in page.run("document.querySelector('main .empty.bad').innerText")
    page.call("Network.setBlockedURLs", urls=[])
    page.say("Try again")
    page.wait("document.querySelector('tbody tr')")
    page.problems.clear()  # the browser tells of what was blocked


def test_a_list_in_which_nothing_fits_says_so(opened: Callable[..., Page]) -> None:
    page = opened("traffic?agent=nobody-of-this-name")
    assert "No request matches" in page.run("document.querySelector('main .empty').innerText")
    assert page.run("document.querySelector('main table').checkVisibility()") is False
    page.check()


def test_more_than_a_thousand_rows_are_paged_sorted_and_found(opened: Callable[..., Page]) -> None:
    page = opened("shield/rules")
    rows = "document.querySelectorAll('tbody tr').length"
    assert page.run(rows) == 50
    total = int(page.run("document.querySelector('.pager span').textContent.split(' of ')[1]"))
    first = page.run("document.querySelector('tbody a.row').hash")
    page.say("Next")
    page.wait(f"document.querySelector('.pager span').textContent.startsWith('51–100 of {total}')")
    assert page.run("document.querySelector('tbody a.row').hash") != first
    page.run("[...document.querySelectorAll('th .sort')].find(one => one.textContent.startsWith('Severity')).click()")
    page.wait("document.querySelector('th[aria-sort=ascending]')")
    assert page.run("document.querySelector('tbody .badge').innerText") == "Critical"
    search = "Object.assign(document.querySelector('[name=search]'), {value: 'no rule has this'})"
    page.run(f"{search}.dispatchEvent(new Event('change'))")
    page.wait("document.querySelector('main .empty')")
    page.check()


def test_without_the_feed_the_page_asks_again_by_itself(opened: Callable[..., Page]) -> None:
    page = opened("settings/fleet")
    page.call("Network.setBlockedURLs", urls=["*/api/feed"])
    page.run("dispatchEvent(new Event('pagehide')); dispatchEvent(new Event('pageshow'))")
    page.wait("document.querySelector('.live').textContent === 'Polling'")
    page.call("Network.setBlockedURLs", urls=[])
    page.problems.clear()


def test_the_switch_of_colours_is_remembered(opened: Callable[..., Page], site: Site) -> None:
    page = opened("agents")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.run(ground)
    page.run("document.querySelector('[aria-label=\"Light or dark\"]').click()")
    dark = page.run(ground)
    assert dark != light
    page.goto(f"{site.base}/#/agents")
    page.settle()
    assert page.run(ground) == dark


def test_on_paper_only_what_matters_is_left(opened: Callable[..., Page]) -> None:
    page = opened("posture")
    page.size(1280, 900, dark=True)
    page.call("Emulation.setEmulatedMedia", media="print")
    parts = "['.top', '#nav', '.filters', '.tabs', 'main table'].map(one => document.querySelector(one))"
    shown = page.run(f"{parts}.map(one => !!one?.checkVisibility())")
    assert shown == [False, False, False, False, True]
    assert page.run("getComputedStyle(document.body).color") == "rgb(24, 28, 34)"
    page.screenshot(SCREENSHOTS / "posture-print.png", whole=False)


@pytest.mark.parametrize(("bound", "name"), [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("::1", "[::1]")])
def test_without_sign_in_the_dashboard_is_open_to_this_host(browser: Browser, bound: str, name: str) -> None:
    served = serve(":memory:", rbac="false", GATEWAY_HOST=bound)
    page = browser.page()
    try:
        page.goto(f"http://{name}:{served.port}/")
        page.settle()
        assert page.run("document.querySelector('h1').textContent") == "Overview"
        page.wait("document.querySelector('main').innerText.includes('Set up: ')")
        page.screenshot(SCREENSHOTS / "first-steps.png", whole=False)
        page.run("location.hash = '#/keys?create=1'")
        page.wait("document.activeElement?.name === 'name'")
        page.type("first")
        page.press("Enter")
        page.wait("document.querySelector('dialog .snippet')")
        page.check()
    finally:
        page.close()
        assert served.process.stop() == 0
