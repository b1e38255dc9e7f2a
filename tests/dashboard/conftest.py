"""One browser and one gateway with demo data for all tests of the dashboard; without a browser they are skipped."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dashboard.browser import Browser, Page, find_browser
from dashboard.site import PASSWORD, ROLES, Site, serve
from running import command, one_at_a_time


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The one browser."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium on this host (Debian: apt-get install chromium)")
    one = Browser(path)
    yield one
    one.close()


@pytest.fixture(scope="session")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gateway with sign-in, a made-up day and a user for each role."""
    base = tmp_path_factory.getbasetemp()
    demo = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo"
    with one_at_a_time(demo.with_suffix(".lock")):  # once for all processes of a test run
        if not demo.exists():
            done = command("demo-data", "--data-dir", demo, "--requests", 3000)
            assert done.returncode == 0, done.stderr
    data_dir = tmp_path_factory.mktemp("dashboard")
    shutil.copytree(demo, data_dir, dirs_exist_ok=True)
    site = Site(serve(data_dir))
    try:
        first = dict(line.split(": ", 1) for line in (data_dir / "first-credentials.txt").read_text().splitlines())
        site.sign_in("admin", first["password"])
        body = {"current_password": first["password"], "new_password": PASSWORD}
        assert site.ask("POST", "/api/auth/password", body).status == 200
        for role in ROLES[1:]:
            made = site.ask("POST", "/api/users", {"username": role, "password": PASSWORD, "role": role})
            assert made.status == 201, made.body
            site.sign_in(role)
        assert site.ask("POST", "/api/trust-audits", {}).status == 201
        assert site.ask("POST", "/api/shield/tests", {"category": "injection"}).status == 201
        yield site
    finally:
        status = site.served.process.stop()
    assert status == 0


@pytest.fixture
def opened(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Return what opens a page of the dashboard as a role, or as nobody."""
    pages: list[Page] = []

    def open_page(path: str = "", role: str | None = "admin") -> Page:
        page = browser.page()
        pages.append(page)
        if role is not None:
            page.call("Network.setCookie", name="service_session", value=site.cookies[role][0], url=site.base)
        page.goto(f"{site.base}/#/{path}")
        page.settle()
        return page

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def rules() -> str:
    """The rules of accessibility, as a script that returns what breaks them."""
    return (Path(__file__).parent / "rules.js").read_text("utf-8")
