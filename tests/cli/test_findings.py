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
    code, _, said = command("alerts", "resolve", first, "--harmless", "--note", "harmless")
    assert code == 0 and "design-bot" in said and "svc_" in said
    found = json.loads(command("alerts", "list", "--scope", "all", "--source", "shield", "--json")[1])
    assert {(one["agent"], one["status"]) for one in found} == {("design-bot", "false_positive"), ("evil-bot", "open")}
    assert [one["id"] for one in found if one["agent"] == "design-bot"][0] in said
    for request, why in ((first, "closed already"), ("req_nothing", "no such request")):
        with pytest.raises(GatewayError, match=why):
            command("alerts", "resolve", request, "--harmless", "--note", "harmless")


def test_after_accepting_the_new_verdict_of_the_request_is_told(command: Run, tmp_path: Path) -> None:
    (request,) = attack(tmp_path, "design-bot")
    digest = hashlib.sha256(ATTACK.encode()).hexdigest()
    words = ("--rule", "say-please", "--until", "7d", "--reason", "drill")
    finding = ("acceptances", "create", "--scope", "finding", "--digest", digest, *words)
    assert "not known" in command(*finding)[2]
    other = ("acceptances", "create", "--scope", "rule_agent", "--agent", "b", "--any-key", *words)
    assert "would now be ALLOW (score 0)" in command(*finding, "--request", request)[2]
    assert "This acceptance covers none of this request's findings" in command(*other, "--request", request)[2]


def test_an_exception_is_made_on_the_command_line_once_its_effect_is_known(command: Run, tmp_path: Path) -> None:
    first, second = attack(tmp_path, "design-bot", "evil-bot")
    told = command("alerts", "harmless", first)[1]
    assert "key: The key ci: say-please. This request would now be ALLOW (score 0)." in told
    assert "1 others would have passed, 1 of them blocked, 0 confirmed attacks; unknown for 0." in told
    _, made, said = command(
        "alerts", "resolve", first, "--harmless", "--exception", "key_agent", "--until", "7d", "--note", "ours"
    )
    assert "1 alert closed. The exception holds from now on." in said
    (one,) = json.loads(command("acceptances", "list", "--json")[1])
    assert (one["id"], one["scope"], one["agent"]) == (made.strip(), "rule_agent", "design-bot")
    alert = json.loads(command("alerts", "list", "--request-id", second, "--json")[1])[0]
    assert "is resolved" in command("alerts", "resolve", alert["id"], "--note", "done")[2]
    with pytest.raises(GatewayError, match="need --harmless"):
        command("alerts", "resolve", second, "--exception", "key", "--note", "x")


def test_the_evidence_of_an_incident_is_compared_with_the_log(command: Run, tmp_path: Path) -> None:
    attack(tmp_path, "bot")
    (one,) = json.loads(command("incidents", "list", "--json")[1])
    for form in ("json", "html"):
        file = tmp_path / f"evidence.{form}"
        command("incidents", "evidence", one["id"], "--format", form, "--output", str(file))
        code, said, _ = command("audit", "verify", "--evidence", str(file))
        assert code == 0 and f"the file is the evidence of {one['id']} that cli exported" in said
        file.write_text(file.read_text() + "\n")  # as an `echo` behind it does
        assert command("audit", "verify", "--evidence", str(file))[0] == 0
        file.write_text(file.read_text().replace("say-please", "say-thanks", 1))
        code, said, _ = command("audit", "verify", "--evidence", str(file))
        assert code == 1 and "CHANGED" in said
    with pytest.raises(GatewayError, match="cannot be read"):
        command("audit", "verify", "--evidence", str(tmp_path / "none"))


def test_an_incident_is_listed_stopped_and_written_out(command: Run, tmp_path: Path) -> None:
    attack(tmp_path, "design-bot", "evil-bot")
    listed = command("incidents", "list")[1]
    assert "design-bot, svc_" in listed and "evil-bot, svc_" in listed
    (one,) = json.loads(command("incidents", "list", "--agent", "evil-bot", "--json")[1])
    code, said, _ = command("incidents", "stop", one["id"], "--deny-key", "--block-agent", "--reason", "it leaks")
    assert (code, said.split("\n")[:2]) == (0, ["deny_key: done", "block_agent: done"])
    code, said, _ = command("incidents", "stop", one["id"], "--deny-key", "--reason", "again")
    assert code == 1 and "NOT DONE" in said
    file = tmp_path / "evidence.json"
    assert command("incidents", "evidence", one["id"], "--format", "json", "--output", str(file))[0] == 0
    assert command("audit", "verify", "--evidence", str(file))[0] == 0
    assert "evil-bot" in command("incidents", "evidence", one["id"])[1]
