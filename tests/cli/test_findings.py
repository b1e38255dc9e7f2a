"""What operators do about findings on the command line: the request that was harmless, the risk that is accepted."""

import hashlib
import json
from functools import partial
from pathlib import Path

import anyio
import pytest
from cli.test_views import Run, command
from open_site import ATTACK, open_site

from gateway.errors import GatewayError

__all__ = ["command"]


async def _send(folder: Path, agents: tuple[str, ...]) -> list[str]:
    async with open_site(folder, data_dir=str(folder / "data")) as site:
        key = (await site.key())["key"]
        return [(await site.chat(key, ATTACK, agent=agent))["headers"]["x-service-request-id"] for agent in agents]


def attack(folder: Path, *agents: str) -> list[str]:
    """Send an attack as each agent, and return the ids of the requests in that order."""
    return anyio.run(partial(_send, folder, agents))


def test_a_request_marked_as_harmless_closes_its_own_alert_alone(command: Run, tmp_path: Path) -> None:
    first, _, _ = attack(tmp_path, "design-bot", "design-bot", "evil-bot")
    code, alert, said = command("alerts", "false-positive", first, "--note", "harmless")
    assert code == 0 and "design-bot" in said and "svc_" in said
    found = json.loads(command("alerts", "list", "--scope", "all", "--source", "shield", "--json")[1])
    assert {(one["agent"], one["status"]) for one in found} == {("design-bot", "false_positive"), ("evil-bot", "open")}
    assert alert.strip() in [one["id"] for one in found if one["agent"] == "design-bot"]
    for request, why in ((first, "closed already"), ("req_nothing", "no such request")):
        with pytest.raises(GatewayError, match=why):
            command("alerts", "false-positive", request, "--note", "harmless")


def test_after_accepting_the_new_verdict_of_the_request_is_told(command: Run, tmp_path: Path) -> None:
    (request,) = attack(tmp_path, "design-bot")
    digest = hashlib.sha256(ATTACK.encode()).hexdigest()
    words = ("--rule", "say-please", "--until", "7d", "--reason", "drill")
    finding = ("acceptances", "create", "--scope", "finding", "--digest", digest, *words)
    assert "not known" in command(*finding)[2]
    other = ("acceptances", "create", "--scope", "rule_agent", "--agent", "b", "--any-key", *words)
    assert "would now be ALLOW (score 0)" in command(*finding, "--request", request)[2]
    assert "This acceptance covers none of this request's findings" in command(*other, "--request", request)[2]
