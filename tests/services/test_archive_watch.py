"""A changed archive is one alert until it is whole again; a checkout is not watched."""

import pytest
from gateway_site import open_site

from gateway.services import archive_watch


async def test_a_changed_archive_is_an_alert_until_it_is_whole_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str | None] = [None]
    monkeypatch.setattr(archive_watch, "archive_problem", lambda path: said[0])
    async with open_site() as site:

        async def look(problem: str | None) -> list[tuple[str, str, int]]:
            said[0] = problem
            await site.gateway.archive_watch.look()
            found = await site.get("/api/alerts?rule=archive-changed")
            return [(alert["status"], alert["severity"], alert["count"]) for alert in found]

        assert await look(None) == []
        assert await look("") == []
        assert await look("changed: gateway/app.py") == [("open", "critical", 1)]
        assert await look("changed: gateway/app.py") == [("open", "critical", 2)]
        assert (await site.get("/api/fleet"))["instances"][0]["status"] == "critical"
        assert await look("") == [("resolved", "critical", 2)]
