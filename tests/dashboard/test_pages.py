"""Every page as each role in a real browser: drawn whole, nothing offered that is not allowed, legible, narrow and wide."""

from collections.abc import Callable
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import ROLES, SCREENSHOTS, Site, quoted

from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role

pytestmark = pytest.mark.slow

# The parts of each page, and what a role needs one of to see it.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "overview": ((), ("overview",)),
    "traffic": (("traffic:read",), ("traffic",)),
    "incidents": (("alerts:read",), ("incidents",)),
    "alerts": (("alerts:read",), ("alerts",)),
    "shield": (("shield:read",), ("shield", "shield/rules", "shield/policies", "shield/detectors", "shield/acceptances", "shield/suite")),
    "keys": (("api_keys:read",), ("keys",)),
    "agents": (("agents:read",), ("agents",)),
    "posture": (("posture:read",), ("posture", "posture/scans")),
    "cost": (("budgets:read",), ("cost",)),
    "audit": (("audit:read", "reports:read"), ("audit", "audit/chain", "audit/reports")),
    "settings": (
        ("settings:read", "providers:read", "access:read", "users:read", "fleet:read"),
        ("settings", "settings/access", "settings/users", "settings/sessions", "settings/options", "settings/outputs", "settings/fleet", "settings/about"),
    ),
}  # fmt: skip
EVERY = [path for _, paths in PARTS.values() for path in paths]
# What changes something, by the permission without which it may not be on any page.
OFFERS: dict[str, str] = {
    "Create key": "api_keys:manage", "New policy": "policies:manage", "Add detector": "policies:manage", "New rule": "shield:manage", "Accept a risk": "risk_acceptances:manage",
    "Run the suite": "shield:manage", "Register agent": "agents:manage", "Acknowledge": "alerts:manage",
    "Run the trust audit": "posture:manage", "New budget": "budgets:manage", "Make a report": "reports:manage",
    "Add provider": "providers:manage", "Add entry": "access:manage", "New user": "users:manage",
    "Add output": "settings:manage", "Add a gateway": "settings:manage",
}  # fmt: skip


def may(role: str, *needed: str) -> bool:
    return not needed or any(Permission(one) in ROLE_PERMISSIONS[Role(role)] for one in needed)


def go(page: Page, path: str) -> None:
    page.run(f"location.hash = {quoted('#/' + path)}")
    page.settle()


def offers(page: Page) -> set[str]:
    found: list[str] = page.run(
        "[...document.querySelectorAll('main button, main a.btn')].filter(one => one.checkVisibility()).map(one => one.textContent.trim())"
    )
    return set(found)


@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_drawn_for_each_role_and_offers_what_it_may_do(opened: Callable[..., Page], role: str) -> None:
    page = opened("overview", role)
    shown = page.run("[...document.querySelectorAll('#nav a')].map(one => one.getAttribute('href').slice(2))")
    assert shown == [name for name, (needs, _) in PARTS.items() if may(role, *needs)]
    seen: set[str] = set()
    for needs, paths in PARTS.values():
        if not may(role, *needs):
            go(page, paths[0])
            assert "Your role may not see this page" in page.run("document.querySelector('main').innerText")
            continue
        for path in paths:
            go(page, path)
            tabs = page.run("[...document.querySelectorAll('[role=tab]')].map(one => one.dataset.id)")
            if "/" in path and path.partition("/")[2] not in tabs:
                continue
            problem = page.run("document.querySelector('main .empty.bad')?.innerText ?? null")
            assert problem is None, f"{path}: {problem}"
            seen |= offers(page)
            page.check()
    for label, needed in OFFERS.items():
        assert (label in seen) == may(role, needed), label


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_legible_and_fits_its_screen(
    opened: Callable[..., Page], rules: str, scheme: str, width: int
) -> None:
    page = opened()
    page.size(width, 900, dark=scheme == "dark")
    broken: dict[str, Any] = {}
    for path in EVERY:
        go(page, path)
        found = page.run(rules)
        too_wide = page.run("document.documentElement.scrollWidth - innerWidth")
        if too_wide > 0:
            found.append(f"{too_wide} px too wide")
        tabs = "const tabs = document.querySelector('.tabs'); "
        if page.run(f"(() => {{ {tabs} return !!tabs && getComputedStyle(tabs).overflowY !== 'hidden' }})()"):
            found.append("tabs have a bar to scroll up and down")
        if found:
            broken[path] = found
        page.screenshot(SCREENSHOTS / f"{path.replace('/', '-')}-{width}-{scheme}.png", whole=False)
    assert broken == {}


def test_details_open_by_their_address_and_are_legible(opened: Callable[..., Page], site: Site, rules: str) -> None:
    first = {
        "traffic": "/api/traffic?verdict=BLOCK&limit=1", "alerts": "/api/alerts?limit=1", "agents": "/api/agents?limit=1",
        "keys": "/api/config/api-keys?limit=1", "shield/rules": "/api/shield/rules",
    }  # fmt: skip
    page = opened()
    for path, source in first.items():
        id = site.ask("GET", source).json["data"][0]["id"]
        go(page, f"{path}/{id}")
        page.wait("document.querySelector('dialog[open] .facts')")
        assert page.run(rules) == [], path
        page.screenshot(SCREENSHOTS / f"{path.replace('/', '-')}-detail.png", whole=False)
        page.press("Escape")
        page.wait(f"!document.querySelector('dialog') && !location.hash.includes({quoted(id)})")
    page.check()


def test_filters_stand_in_the_address_and_come_back_with_it(opened: Callable[..., Page]) -> None:
    page = opened("traffic?verdict=BLOCK")
    assert (
        page.run("[...new Set([...document.querySelectorAll('tbody .badge')].map(one => one.innerText))].join()")
        == "BLOCK"
    )
    page.run(
        "{const one = document.querySelector('select[name=operation]'); one.value = 'shield.scan'; one.dispatchEvent(new Event('change'))}"
    )
    page.settle()
    assert page.run("location.hash") == "#/traffic?verdict=BLOCK&operation=shield.scan"


def test_the_first_page_is_there_after_few_requests_and_asks_nobody_else(
    opened: Callable[..., Page], site: Site
) -> None:
    page = opened("traffic")
    page.requests.clear()
    page.goto(f"{site.base}/#/overview")
    page.wait("performance.getEntriesByName('interactive').length")
    needed = page.run(
        "[location.href, ...performance.getEntriesByType('resource').filter(one => one.startTime <= "
        "performance.getEntriesByName('interactive')[0].startTime).map(one => one.name)]"
    )
    assert len(needed) <= 12, "\n".join(needed)
    page.settle()
    page.browser.drain()
    assert {url.split("/")[2] for _, url in page.requests if url.startswith("http")} == {
        site.base.removeprefix("http://")
    }
