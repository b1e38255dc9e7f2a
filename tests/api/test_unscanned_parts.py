"""Pictures, sounds and files in a chat: forwarded by default, and always told in traffic and audit."""

from pathlib import Path
from typing import Any

import pytest
from open_site import Site, open_site

PICTURE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRv//", "format": "wav"}}
HOUR_MS = 3_600_000


async def look(site: Site, key: str, *parts: dict[str, Any], agent: str = "") -> Any:
    content = [{"type": "text", "text": "What do you see?"}, *(parts or (PICTURE,))]
    body = {"model": "echo", "messages": [{"role": "user", "content": content}]}
    headers = {"x-service-agent": agent} if agent else None
    return await site.ask("POST", "/api/v1/chat/completions", body, key=key, headers=headers)


async def alerts(site: Site) -> Any:
    found = (await site.ask("GET", "/api/alerts"))["data"]
    return [alert for alert in found if alert["rule"] == "unscannable-part"]


async def test_a_picture_passes_by_default_and_traffic_and_audit_say_that_it_was_not_scanned(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        key = (await site.key())["key"]
        answer = await look(site, key, PICTURE, SOUND, PICTURE)
        assert (answer["status"], answer["headers"]["x-service-shield-verdict"]) == (200, "ALLOW")
        assert answer["headers"]["x-service-shield-score"] == "0"
        await look(site, key, {"type": "text", "text": "Nothing more."})
        plain, row = (await site.ask("GET", "/api/traffic"))["data"]
        (found,) = row["detections"]
        assert (found["rule"], found["count"], found["score"]) == ("unscannable-part", 3, 0)
        assert (found["view"], found["place"]) == ("unread:image_url,input_audio", "messages[0].content[1]")
        assert plain["detections"] == []
        events = (await site.ask("GET", "/api/audit?action=chat_completed"))["data"]
        told = next(event for event in events if event["request_id"] == row["request_id"])
        assert told["details"]["inbound"]["detections"] == row["detections"]
        assert await alerts(site) == []


async def test_under_review_an_agent_has_one_alert_a_day_however_many_pictures_it_sends(tmp_path: Path) -> None:
    async with open_site(tmp_path, unscannable="review") as site:
        key = (await site.key())["key"]

        async def hours_later(hours: float) -> None:
            by = {"by": round(hours * HOUR_MS)}
            sql = "UPDATE alerts SET first_seen_at = first_seen_at - :by, last_seen_at = last_seen_at - :by"
            await site.gateway.store.db.write(lambda tx: tx.execute(sql, by))

        for _ in range(3):
            answer = await look(site, key, agent="painter")
            assert (answer["status"], answer["headers"]["x-service-shield-verdict"]) == (200, "REVIEW")
        await look(site, key, agent="singer")
        assert sorted((one["agent"], one["count"]) for one in await alerts(site)) == [("painter", 3), ("singer", 1)]
        await hours_later(12)
        await look(site, key, agent="painter")
        assert sorted((one["agent"], one["count"]) for one in await alerts(site)) == [("painter", 4), ("singer", 1)]
        await hours_later(12.1)
        await look(site, key, agent="painter")
        found = [(one["agent"], one["count"]) for one in await alerts(site)]
        assert sorted(found) == [("painter", 1), ("painter", 4), ("singer", 1)]


@pytest.mark.parametrize(("unscannable", "status"), [("allow", 200), ("review", 200), ("block", 400)])
async def test_a_policy_says_what_becomes_of_a_picture(tmp_path: Path, unscannable: str, status: int) -> None:
    async with open_site(tmp_path) as site:
        policy = await site.make("/api/policies", name="pictures", unscannable=unscannable)
        key = (await site.key(policy=policy["id"]))["key"]
        assert (await look(site, key))["status"] == status
        default = await site.make("/api/policies", name="default")
        assert default["unscannable"] == "allow"
