"""The dashboard's files over the dispatch: what is served, to whom, how long it may be kept, and nothing beside it."""

import io
import re
from typing import Any

import pytest

from gateway import bundle
from gateway.api.dispatch import Dispatch
from gateway.api.static import FOLDER, TYPES
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings

HOST = {"host": "127.0.0.1:5001"}


async def get(house: Any, path: str, headers: dict[str, str] | None = None, peer: str = "127.0.0.1") -> Any:
    return await house.ask("GET", path, key=None, headers=HOST | (headers or {}), peer=peer)


async def folder(house: Any) -> str:
    page = (await get(house, "/")).body.decode()
    found = re.findall(r'"(/dashboard/[0-9a-f]{16}/)', page)
    assert len(set(found)) == 1
    return str(found[0])


async def test_the_page_is_asked_for_again_and_its_files_are_kept_for_ever(house: Any) -> None:
    page = await get(house, "/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    script = await get(house, f"{await folder(house)}app.js")
    assert (script.status, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.body == bundle.read(f"{FOLDER}/app.js")


async def test_whoever_has_the_page_is_told_so(house: Any) -> None:
    page = await get(house, "/")
    for known in (page.headers["etag"], f'"x", W/{page.headers["etag"]}', "*"):
        again = await get(house, "/", {"if-none-match": known})
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == page.headers["etag"]
    assert (await get(house, "/", {"if-none-match": '"other"'})).status == 200


async def test_every_file_of_the_dashboard_is_served_as_what_it_is(house: Any) -> None:
    start = await folder(house)
    for name in bundle.names(FOLDER):
        if name == "index.html":
            continue
        answer = await get(house, start + name)
        assert answer.status == 200, name
        assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "style.css.map",
        "../settings.py",
        "pages",
        "pages/",
        "pages/nothing.js",
        "pages/../app.js",
        "%2e%2e/app.js",
    ],
)
async def test_nothing_else_is_served(house: Any, path: str) -> None:
    assert (await get(house, await folder(house) + path)).status == 404


async def test_a_file_of_another_version_is_not_served_as_this_one(house: Any) -> None:
    assert (await get(house, "/dashboard/0123456789abcdef/app.js")).code == "not_found"


@pytest.mark.parametrize(
    ("peer", "fields", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("192.0.2.7", {}, 403),
        ("127.0.0.1", {"host": "gateway.attacker.test"}, 403),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.7"}, 403),
    ],
)
async def test_without_sign_in_the_page_is_for_this_host_alone(peer: str, fields: dict[str, str], status: int) -> None:
    settings = Settings(data_dir=":memory:", rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        request = Request("GET", "/", "", Headers(HOST | fields), b"", peer, False, 0.0)
        assert (await Dispatch(gateway).handle(request)).status == status


async def test_with_sign_in_the_page_is_for_everybody_and_links_of_others_lead_there(house_with: Any) -> None:
    house = house_with(rbac_enabled=True)
    assert (await get(house, "/", {"sec-fetch-site": "cross-site"}, peer="192.0.2.7")).status == 200


def test_the_whole_dashboard_is_small() -> None:
    assert sum(len(bundle.read(f"{FOLDER}/{name}")) for name in bundle.names(FOLDER)) <= 300_000


MARKUP = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment|DOMParser|\beval\b|new Function|setHTML"


@pytest.mark.parametrize("name", [name for name in bundle.names(FOLDER) if name.endswith(".js")])
def test_no_text_becomes_markup_and_one_file_asks_the_gateway(name: str) -> None:
    text = bundle.read(f"{FOLDER}/{name}").decode()
    assert not re.search(MARKUP, text), name
    assert ("fetch(" in text or "EventSource(" in text) == (name == "api.js"), name
    assert text.count("\n") <= 200, f"{name} is too long"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg|[\w.-]*example\.com|127\.0\.0\.1)", text), name


def test_the_page_has_neither_script_nor_style_of_its_own() -> None:
    page = bundle.read(f"{FOLDER}/index.html").decode()
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)|//", page.replace("<!doctype html>", ""))
