"""An address is followed wherever it comes from: typed while its page is open, a link, or the way back."""

from collections.abc import Callable
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import Site, quoted

pytestmark = pytest.mark.slow

# page, the query of its address, what the API has on the first page then, and the fields that show the query.
Rows = Callable[[Site], int]


def listed(path: str, **kept: object) -> Rows:
    """Count the rows of a list of the API, of all that come those that have the fields `kept`."""

    def count(site: Site) -> int:
        rows: list[dict[str, Any]] = site.ask("GET", path).json["data"]
        return sum(all(row[name] == value for name, value in kept.items()) for row in rows)

    return count


def checks(**kept: object) -> Rows:
    def count(site: Site) -> int:
        found = site.ask("GET", "/api/posture").json["data"]["trust_audit"]["checks"]
        return sum(all(row[name] == value for name, value in kept.items()) for row in found)

    return count


LISTS = [
    ("traffic", {"verdict": "REVIEW"}, listed("/api/traffic?verdict=REVIEW&limit=50")),
    ("alerts", {"severity": "medium"}, listed("/api/alerts?scope=active&severity=medium&limit=50")),
    ("alerts", {"status": "acknowledged", "scope": "all"}, listed("/api/alerts?status=acknowledged&limit=50&scope=all")),
    ("agents", {"risk": "low"}, listed("/api/agents?risk=low&limit=50")),
    ("audit/log", {"resource_type": "user"}, listed("/api/audit?resource_type=user&limit=50")),
    ("settings/access", {"list": "allow"}, listed("/api/access?list=allow&limit=50")),
    ("posture/checks", {"status": "warn"}, checks(status="warn")),
    ("shield/rules", {"category": "steganography"}, listed("/api/shield/rules", category="steganography")),
    ("settings/options", {"search": "GATEWAY_TLS"}, lambda site: 2),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def entries(site: Site) -> None:
    """Give the access list an entry of each list."""
    for kind, value in (("deny", "203.0.113.1"), ("allow", "no-such-model")):
        body = {"list": kind, "type": "IP" if kind == "deny" else "TOOL", "value": value}
        assert site.ask("POST", "/api/access", body).status == 201


def rows(page: Page) -> int:
    page.settle()
    return int(page.run("document.querySelectorAll('main tbody tr').length"))


def fields(page: Page, names: dict[str, str]) -> dict[str, str]:
    """Return what the filters of these names show."""
    return {name: page.run(f"document.querySelector('.filters [name={name}]').value") for name in names}


def shows(names: dict[str, str], *, values: bool = True) -> str:
    """Return the expression that is true once the filters of these names are there, and with these values."""
    each = (f"document.querySelector('.filters [name={name}]')" for name in names)
    wanted = (f"?.value === {quoted(value)}" if values else " !== null" for value in names.values())
    return " && ".join(map("".join, zip(each, wanted, strict=True)))


@pytest.mark.parametrize(("path", "query", "expected"), LISTS, ids=[f"{one[0]}-{'-'.join(one[1])}" for one in LISTS])
def test_an_address_typed_on_its_own_page_is_shown_and_the_way_back_too(
    opened: Callable[..., Page], site: Site, path: str, query: dict[str, str], expected: Rows
) -> None:
    page = opened(path)
    page.wait(shows(query, values=False), 10)
    before, shown = rows(page), fields(page, query)
    wanted = expected(site)
    assert wanted != before, "the test shows nothing where the filter changes nothing"
    typed = "&".join(f"{name}={value}" for name, value in query.items())
    page.run(f"location.hash = {quoted(f'#/{path}?{typed}')}")
    # While a page is drawn again it has no rows, which is what is wanted where there are none.
    page.wait(f"{shows(query)} && document.querySelectorAll('main tbody tr').length === {wanted}", 5)
    page.run("history.back()")
    page.wait(f"{shows(shown)} && document.querySelectorAll('main tbody tr').length === {before}", 5)
    page.check()


@pytest.mark.parametrize("path", ["overview", "cost"])
def test_the_time_range_of_an_address_is_shown(opened: Callable[..., Page], path: str) -> None:
    page = opened(path)
    page.run(f"location.hash = '#/{path}?since=30d'")
    page.wait("document.querySelector('[aria-label=\"Time range\"]')?.value === '30d'", 5)
    page.settle()
    assert any("/api/traffic/summary?since=30d" in url for _, url in page.requests)


def test_a_value_that_no_list_offers_is_shown_by_its_filter(opened: Callable[..., Page], site: Site) -> None:
    page = opened("traffic?since=3h&until=1h")
    assert page.run("document.querySelector('.filters [name=since]').selectedOptions[0].textContent") == "3h to 1h"
    assert rows(page) == listed("/api/traffic?since=3h&until=1h&limit=50")(site)


def test_the_state_of_an_alert_and_which_alerts_are_shown_agree(opened: Callable[..., Page]) -> None:
    page = opened("alerts?status=resolved")
    assert fields(page, {"scope": "", "status": ""}) == {"scope": "all", "status": "resolved"}
    pick = "(one => {{ one.value = '{}'; one.dispatchEvent(new Event('change')); }})(document.querySelector('.filters [name={}]'))"
    page.run(pick.format("active", "scope"))
    page.settle()
    assert fields(page, {"scope": "", "status": ""}) == {"scope": "active", "status": ""}
    page.run(pick.format("open", "status"))
    page.settle()
    assert fields(page, {"scope": "", "status": ""}) == {"scope": "all", "status": "open"}


def test_a_detail_keeps_the_filters_of_its_list(opened: Callable[..., Page]) -> None:
    page = opened("posture/checks?status=pass")
    before = rows(page)
    page.click("main tbody a.row")
    page.wait("document.querySelector('dialog[open]')")
    assert "status=pass" in page.run("location.hash") and rows(page) == before
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert page.run("location.hash") == "#/posture/checks?status=pass"
