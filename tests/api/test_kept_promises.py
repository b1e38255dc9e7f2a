"""Promises of docs/trust/threat-model.md that only a test through the door can hold, each tried with its guard taken out."""

from pathlib import Path

import anyio
from open_site import ATTACK, PASSWORD, Site, open_site, sign_in

from gateway.domain.principals import Role


async def verdict(site: Site, key: str) -> str:
    return str((await site.scan(key, ATTACK))["verdict"])


async def test_the_cookie_of_a_session_is_for_no_script_and_no_other_site(tmp_path: Path) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        await sign_in(site, Role.VIEWER)
        body = {"username": "viewer", "password": PASSWORD}
        answer = await site.ask("POST", "/api/auth/login", body)
        assert answer["status"] == 200, answer
        parts = {part.strip().lower() for part in answer["headers"]["set-cookie"].split(";")[1:]}
        assert {"path=/", "httponly", "samesite=strict"} <= parts


async def test_pages_take_no_markup_from_scripts(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        policy = (await site.ask("GET", "/"))["headers"]["content-security-policy"]
        for part in ("default-src 'none'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"):
            assert part in policy
        assert "unsafe" not in policy


async def test_an_accepted_risk_counts_again_when_it_is_over(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        key = (await site.key())["key"]
        wanted = {"scope": "rule", "rule": "say-please", "reason": "a try"}
        assert await verdict(site, key) == "BLOCK"
        await site.make("/api/risk-acceptances", **wanted, until="2s")
        assert await verdict(site, key) == "ALLOW"
        await anyio.sleep(2.1)
        assert await verdict(site, key) == "BLOCK"
        made = await site.make("/api/risk-acceptances", **wanted, until="1d")
        assert await verdict(site, key) == "ALLOW"
        assert (await site.ask("DELETE", f"/api/risk-acceptances/{made['id']}"))["status"] == 200
        assert await verdict(site, key) == "BLOCK"
