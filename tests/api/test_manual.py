"""The documents at /docs: every page and link, for everybody, with the dashboard's guards."""

import posixpath
import re
from typing import Any

import pytest

from gateway.domain import manual

ELSEWHERE = {"host": "gateway.example.com"}


async def get(house: Any, path: str, *, peer: str = "203.0.113.9") -> Any:
    return await house.ask("GET", path, key=None, headers=ELSEWHERE, peer=peer)


def anchors(body: str) -> set[str]:
    return set(re.findall(r' id="([^"]*)"', body))


@pytest.mark.parametrize("name", manual.names())
async def test_a_page_is_served_to_everybody_and_its_links_lead_somewhere(house: Any, name: str) -> None:
    path = "/docs/" if name == manual.INDEX else f"/docs/{name}"
    page = await get(house, path)
    assert page.status == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    body = page.body.decode()
    assert re.search(r"<title>[^<]+</title>", body) and "<script" not in body and " style=" not in body
    for target in re.findall(r'href="([^"]+)"', body):
        if target.startswith("https://") or target.startswith("http://") or target == "/":
            continue
        where, _, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), where)) if where else path
        there += "/" * (where == "/docs/")
        answer = await get(house, there)
        assert answer.status == 200, target
        assert not anchor or anchor in anchors(answer.body.decode()), target


async def test_the_root_leads_to_the_index_and_other_paths_to_nothing(house: Any) -> None:
    moved = await get(house, "/docs")
    assert (moved.status, moved.headers["location"]) == (308, "/docs/")
    index = (await get(house, "/docs/")).body.decode()
    assert all(f'href="{name}"' in index for name in manual.names() if name != manual.INDEX)
    for path in ("/docs/nothing.md", "/docs/start/nothing.md", "/docs/%2e%2e/rules.json", "/docs/dashboard.png"):
        assert (await get(house, path)).status == 404, path
    assert (await get(house, "/docs/style.css")).headers["content-type"] == "text/css; charset=utf-8"


async def test_a_page_is_found_without_its_ending_and_a_near_name_is_told(house: Any) -> None:
    assert (await get(house, "/docs/start/concepts")).status == 200
    answer = await get(house, "/docs/start/concept.md")
    assert answer.status == 404 and b"Did you mean start/concepts?" in answer.body
