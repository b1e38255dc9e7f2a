"""The tools that manage: each changes or reads the real store, and the API shows the same."""

import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from open_site import ATTACK, Site, open_site

from gateway.domain.audit import AuditFilter
from gateway.mcp import jsonrpc
from gateway.mcp.server import McpServer
from gateway.mcp.tools import TOOLS


class Assistant:
    """Somebody who calls tools of a gateway, and the API of the same gateway."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.server = McpServer(lambda: site.gateway)
        self.said: list[dict[str, Any]] = []

    async def send(self, method: str, **params: object) -> Any:
        async def notify(message: bytes) -> None:
            self.said.append(json.loads(message))

        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        raw = await self.server.answer(jsonrpc.parse(json.dumps(message).encode()), notify)
        assert raw is not None
        return json.loads(raw)["result"]

    async def call(self, tool: str, /, **arguments: object) -> Any:
        """Call a tool that does what it is asked; return what it answers as an object."""
        result = await self.send("tools/call", name=tool, arguments=arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    async def refused(self, tool: str, /, **arguments: object) -> str:
        """Call a tool that refuses; return its words."""
        result = await self.send("tools/call", name=tool, arguments=arguments)
        assert result["isError"]
        return result["content"][0]["text"]

    async def shown(self, path: str) -> Any:
        answer = await self.site.ask("GET", path)
        assert answer["status"] == 200, answer
        return answer["data"]


@pytest.fixture
async def assistant(tmp_path: Path) -> AsyncIterator[Assistant]:
    async with open_site(tmp_path) as site:
        one = Assistant(site)
        await one.send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
        yield one


PLACE = "https://models.example/v1"


async def test_a_provider_is_added_changed_switched_off_and_removed(assistant: Assistant) -> None:
    secret = "a-key-that-is-made-up"
    made = await assistant.call(
        "configure_provider", action="add", name="main", base_url=PLACE, api_key=secret, models=["gpt-*"]
    )
    (provider,) = made["providers"]
    assert (provider["name"], provider["base_url"], provider["models"]) == ("main", PLACE, ["gpt-*"])
    assert provider["has_api_key"] is True
    assert [provider] == await assistant.shown("/api/providers")

    changed = await assistant.call("configure_provider", action="update", name="main", models=["gpt-5*", "o*"])
    assert changed["providers"][0]["models"] == ["gpt-5*", "o*"]
    assert changed["providers"][0]["has_api_key"] is True  # what is not said stays
    assert (await assistant.call("configure_provider", action="disable", name="main"))["providers"][0][
        "enabled"
    ] is False
    assert (await assistant.shown("/api/providers"))[0]["enabled"] is False
    assert (await assistant.call("configure_provider", action="enable", name="main"))["providers"][0]["enabled"] is True
    assert (await assistant.call("configure_provider"))["providers"] == await assistant.shown("/api/providers")

    assert (await assistant.call("configure_provider", action="remove", name="main"))["providers"][0]["name"] == "main"
    assert await assistant.shown("/api/providers") == []
    events = (await assistant.site.gateway.audit.page(AuditFilter(source="mcp", limit=100))).items
    assert {"provider_created", "provider_changed", "provider_removed"} <= {event.action for event in events}
    assert secret not in repr(events)


async def test_a_provider_takes_no_reference_that_the_settings_forbid_and_keeps_its_key_at_its_origin(
    assistant: Assistant,
) -> None:
    wanted = {"action": "add", "name": "main", "base_url": PLACE}
    told = await assistant.refused("configure_provider", **wanted, api_key="env:GATEWAY_UPSTREAM_API_KEY")
    assert "setting of the gateway" in told
    assert "GATEWAY_PROVIDER_KEY_ENV" in await assistant.refused("configure_provider", **wanted, api_key="env:HOME")
    await assistant.call("configure_provider", **wanted, api_key="env:GATEWAY_PROVIDER_MAIN")
    moved = {"action": "update", "name": "main", "base_url": "https://elsewhere.example/v1"}
    assert "api_key again" in await assistant.refused("configure_provider", **moved)
    assert (await assistant.shown("/api/providers"))[0]["base_url"] == PLACE
    await assistant.call("configure_provider", **moved, api_key="env:GATEWAY_PROVIDER_MAIN")


async def test_a_provider_is_tested_by_a_real_request(assistant: Assistant) -> None:
    await assistant.call("configure_provider", action="add", name="mirror", type="echo")
    tested = await assistant.call("configure_provider", action="test", name="mirror")
    assert tested["test"]["ok"] is True and tested["test"]["models"] == ["echo"]
    actions = await assistant.site.actions("provider")
    assert "provider_tested" in actions


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "add"}, "name"),
        ({"action": "add", "name": "x"}, "base_url"),
        ({"action": "add", "name": "x", "base_url": "http://169.254.169.254/v1"}, "base_url"),
        ({"action": "add", "name": "x", "base_url": "http://127.0.0.1:1/v1"}, "base_url"),
        ({"action": "remove"}, "name"),
        ({"action": "remove", "name": "nobody"}, "no such provider"),
        ({"action": "explode"}, "action"),
    ],
)
async def test_a_provider_that_cannot_be_is_told_its_argument(
    assistant: Assistant, arguments: dict[str, Any], words: str
) -> None:
    assert words in await assistant.refused("configure_provider", **arguments)
    assert await assistant.shown("/api/providers") == []


async def test_a_budget_is_set_read_raised_for_a_while_and_deleted(assistant: Assistant) -> None:
    (budget,) = (await assistant.call("manage_budget", action="set", daily_limit_usd=5, alert_threshold_pct=70))[
        "budgets"
    ]
    assert (budget["limit"], budget["unit"], budget["window"], budget["soft_pct"]) == (5, "usd", "day", 70)
    assert [budget] == await assistant.shown("/api/budgets")

    again = (await assistant.call("manage_budget", action="set", daily_limit_usd=7.5))["budgets"][0]
    assert (again["id"], again["limit"], again["soft_pct"]) == (budget["id"], 7.5, 70)
    assert (await assistant.call("manage_budget", action="get"))["budgets"] == await assistant.shown("/api/budgets")

    raised = await assistant.call(
        "manage_budget", action="override", scope="global", limit=20, reason="a demonstration"
    )
    assert raised["budgets"][0]["effective_limit"] == 20
    assert raised["budgets"][0]["override"]["until"] == raised["budgets"][0]["resets_at"]
    assert (await assistant.shown(f"/api/budgets/{budget['id']}"))["override"]["reason"] == "a demonstration"
    raised = await assistant.call("manage_budget", action="override", id=budget["id"], limit=30, until="2d")
    assert raised["budgets"][0]["override"]["until"] > raised["budgets"][0]["resets_at"]

    other = await assistant.call(
        "manage_budget", action="create", scope="agent", scope_value="bot", unit="requests", limit=3, window="hour"
    )
    assert len((await assistant.call("manage_budget"))["budgets"]) == 2
    await assistant.call("manage_budget", action="delete", id=other["budgets"][0]["id"])
    await assistant.call("manage_budget", action="delete", scope="global")
    assert await assistant.shown("/api/budgets") == []
    actions = await assistant.site.actions("budget")
    assert actions == [
        "budget_created", "budget_changed", "budget_overridden", "budget_overridden", "budget_created",
        "budget_removed", "budget_removed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "create"}, "limit"),
        ({"action": "create", "limit": -1}, "limit"),
        ({"action": "set", "daily_limit_usd": 1, "limit": 1}, "daily_limit_usd"),
        ({"action": "set", "daily_limit_usd": 1, "window": "month"}, "daily_limit_usd"),
        ({"action": "create", "scope": "key", "scope_value": "nobody", "limit": 1}, "scope_value"),
        ({"action": "get"}, "no such budget"),
        ({"action": "delete", "id": "bud_none"}, "no such budget"),
        ({"action": "set", "alert_threshold_pct": 101, "daily_limit_usd": 1}, "alert_threshold_pct"),
        ({"action": "override", "limit": 1, "scope": "global"}, "no such budget"),
    ],
)
async def test_a_budget_that_cannot_be_is_told_its_argument(
    assistant: Assistant, arguments: dict[str, Any], words: str
) -> None:
    assert words in await assistant.refused("manage_budget", **arguments)
    assert await assistant.shown("/api/budgets") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "delete"}, "id or scope"),
        ({"action": "delete", "unit": "usd", "window": "day"}, "id or scope"),
        ({"action": "delete", "id": None, "scope": None}, "id or scope"),
        ({"action": "override", "limit": 50}, "id or scope"),
        ({"action": "override", "daily_limit_usd": 50}, "id or scope"),
        ({"action": "override", "scope": "global"}, "limit is missing"),
        ({"action": "set", "limit": 50}, "id or scope"),
        ({"action": "set", "scope": "global"}, "limit"),
    ],
)
async def test_a_budget_is_not_changed_unless_it_is_named(
    assistant: Assistant, arguments: dict[str, Any], words: str
) -> None:
    (budget,) = (await assistant.call("manage_budget", action="set", daily_limit_usd=5))["budgets"]
    assert words in await assistant.refused("manage_budget", **arguments)
    assert await assistant.shown("/api/budgets") == [budget]


async def test_no_budget_is_guessed_among_several(assistant: Assistant) -> None:
    made = [
        (await assistant.call("manage_budget", action="create", limit=9, unit=unit))["budgets"][0]
        for unit in ("usd", "tokens")
    ]
    for action in ({"action": "delete"}, {"action": "override", "limit": 50}):
        words = await assistant.refused("manage_budget", scope="global", **action)
        assert all(budget["id"] in words for budget in made)
    assert len(await assistant.shown("/api/budgets")) == 2
    await assistant.call("manage_budget", action="delete", scope="global", unit="tokens")
    assert await assistant.shown("/api/budgets") == [made[0]]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("manage_access", {"action": "remove"}, "id is missing"),
        ("manage_access", {"action": "add"}, "list_type is missing"),
        ("configure_provider", {"action": "remove"}, "name is missing"),
        ("configure_provider", {"action": "disable"}, "name is missing"),
        ("configure_provider", {"action": "update"}, "name is missing"),
        ("configure_provider", {"action": "update", "name": "main"}, "Nothing to change"),
    ],
)
async def test_what_changes_something_names_what_is_missing(
    assistant: Assistant, tool: str, arguments: dict[str, Any], words: str
) -> None:
    await assistant.call("configure_provider", action="add", name="main", type="echo")
    await assistant.call("manage_access", action="add", list_type="deny", entry_type="DOMAIN", value="evil.example")
    before = [await assistant.shown(path) for path in ("/api/providers", "/api/access")]
    assert words in await assistant.refused(tool, **arguments)
    assert [await assistant.shown(path) for path in ("/api/providers", "/api/access")] == before


async def test_the_budget_of_a_key_is_found_by_the_prefix_of_the_key(assistant: Assistant) -> None:
    key = await assistant.site.key()
    named = {"scope": "key", "scope_value": key["prefix"]}
    (made,) = (await assistant.call("manage_budget", action="set", daily_limit_usd=1, **named))["budgets"]
    (again,) = (await assistant.call("manage_budget", action="set", daily_limit_usd=2, **named))["budgets"]
    assert made["scope_value"] == key["id"] and again["id"] == made["id"]


async def test_a_limit_in_dollars_a_day_is_for_no_budget_of_tokens_whose_id_is_named(assistant: Assistant) -> None:
    (budget,) = (await assistant.call("manage_budget", action="create", unit="tokens", limit=1000))["budgets"]
    for action in ("set", "override"):
        words = await assistant.refused("manage_budget", action=action, id=budget["id"], daily_limit_usd=5)
        assert "goes with unit usd" in words
    assert await assistant.shown("/api/budgets") == [budget]


async def test_what_is_named_by_id_is_named_by_nothing_else(assistant: Assistant) -> None:
    (budget,) = (await assistant.call("manage_budget", action="create", limit=1))["budgets"]
    assert "Give id, or" in await assistant.refused("manage_budget", action="delete", id=budget["id"], scope="key")
    assert "no such budget" in await assistant.refused("manage_budget", action="delete", id="")
    assert await assistant.shown("/api/budgets") == [budget]
    named = {"list_type": "deny", "entry_type": "DOMAIN", "value": "evil.example"}
    (entry,) = (await assistant.call("manage_access", action="add", **named))["entries"]
    words = await assistant.refused("manage_access", action="remove", id=entry["id"], value="other.example")
    assert "Give id, or" in words
    assert await assistant.shown("/api/access") == [entry]


async def test_which_of_several_budgets_is_meant_must_be_said(assistant: Assistant) -> None:
    for _ in range(2):
        await assistant.call("manage_budget", action="create", daily_limit_usd=1)
    assert "by id" in await assistant.refused("manage_budget", action="delete", scope="global")
    assert len(await assistant.shown("/api/budgets")) == 2


async def test_the_trust_audit_is_run_kept_and_narrowed(assistant: Assistant) -> None:
    whole = await assistant.call("run_trust_audit")
    assert len(whole["checks"]) >= 30
    assert (await assistant.shown(f"/api/trust-audits/{whole['id']}")) == whole
    grave = await assistant.call("run_trust_audit", min_severity="high", category="keys")
    assert grave["checks"]
    assert {check["category"] for check in grave["checks"]} == {"keys"}
    assert {check["severity"] for check in grave["checks"]} <= {"critical", "high"}
    # What was not asked for was checked and kept all the same.
    assert len((await assistant.shown(f"/api/trust-audits/{grave['id']}"))["checks"]) == len(whole["checks"])
    assert "category must be one of" in await assistant.refused("run_trust_audit", category="weather")


async def test_a_long_tool_tells_of_its_progress_when_asked_and_never_backwards(assistant: Assistant) -> None:
    await assistant.send("tools/call", name="run_shield_tests", arguments={})
    assert assistant.said == []
    await assistant.send("tools/call", name="run_shield_tests", arguments={}, _meta={"progressToken": "t"})
    told = [message["params"] for message in assistant.said]
    assert {message["method"] for message in assistant.said} == {"notifications/progress"}
    assert len(told) > 3 and all(one["progressToken"] == "t" for one in told)
    done = [one["progress"] for one in told]
    assert done == sorted(set(done)) and done[-1] < told[-1]["total"]


async def test_the_access_list_that_is_managed_is_the_one_that_is_shown(assistant: Assistant) -> None:
    named = {"list_type": "deny", "entry_type": "DOMAIN", "value": "evil.example"}
    added = await assistant.call("manage_access", action="add", **named)
    assert added["entries"] == await assistant.shown("/api/access")
    assert (await assistant.call("manage_access", action="list"))["entries"] == await assistant.shown("/api/access")
    await assistant.call("manage_access", action="remove", id=added["entries"][0]["id"])
    assert await assistant.shown("/api/access") == []


async def test_what_is_scanned_is_in_the_traffic_the_alerts_and_the_audit_that_all_show(assistant: Assistant) -> None:
    scanned = await assistant.call("shield_scan", text=ATTACK, direction="outbound")
    assert scanned["verdict"] == "BLOCK"
    row = (await assistant.shown("/api/traffic"))[0]
    assert (row["verdict"], row["score"], row["operation"]) == ("BLOCK", scanned["score"], "shield.scan")
    told = await assistant.call(
        "query_threats", status="open", severity="critical", source="shield", since="1h", limit=5
    )
    shown = await assistant.shown("/api/alerts?status=open&severity=critical&source=shield&since=1h")
    assert [alert["id"] for alert in told["alerts"]] == [alert["id"] for alert in shown] != []
    reviewed = await assistant.call(
        "review_audit",
        source="shield",
        action="shield_scan_block",
        since="1h",
        until="0s",
        search="say-please",
        limit=5,
    )
    events = await assistant.shown("/api/audit?source=shield&action=shield_scan_block&since=1h&search=say-please")
    assert [event["id"] for event in reviewed["events"]] == [event["id"] for event in events] != []


async def test_the_posture_that_is_told_is_the_one_that_is_shown(assistant: Assistant) -> None:
    await assistant.call("run_trust_audit")
    told = await assistant.call("check_posture")
    shown = await assistant.shown("/api/posture")
    assert told["posture_score"] == shown["posture_score"]
    assert told["services"] == shown["services"]


async def test_the_suite_that_is_run_is_the_one_that_is_shown(assistant: Assistant) -> None:
    run = await assistant.call("run_shield_tests", category="jailbreak", include_known_gaps=True)
    assert (await assistant.shown("/api/shield/tests"))["last"]["ran_at"] == run["ran_at"]


@pytest.mark.parametrize("form", ["markdown", "html", "csv", "json"])
async def test_a_report_is_made_kept_and_answered(assistant: Assistant, form: str) -> None:
    made = await assistant.call("generate_report", type="threat_summary", format=form, time_range="24h")
    kept = (await assistant.shown("/api/reports"))[0]
    assert made["report"] == kept
    assert (kept["type"], kept["format"]) == ("threat_summary", form)
    assert not made["is_cut"]
    assert hashlib.sha256(made["document"].encode()).hexdigest() == kept["document_sha256"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"type": "weather"}, "type"),
        ({"format": "pdf"}, "format"),
        ({"since": "soon"}, "since"),
        ({"time_range": "2026-01-01"}, "time_range must be an age"),
        ({"time_range": "2026-01-01T00:00:00Z"}, "time_range must be an age"),
        ({"time_range": "999999999d"}, "time_range must be an age"),
        ({"time_range": "24h", "since": "7d"}, "time_range"),
        ({"since": "1h", "until": "2h"}, "since"),
    ],
)
async def test_a_report_that_cannot_be_is_told_its_argument(
    assistant: Assistant, arguments: dict[str, Any], words: str
) -> None:
    assert words in await assistant.refused("generate_report", **arguments)
    assert await assistant.shown("/api/reports") == []


async def test_a_report_tells_of_its_sections(assistant: Assistant) -> None:
    await assistant.send("tools/call", name="generate_report", arguments={}, _meta={"progressToken": 1})
    told = [message["params"] for message in assistant.said]
    assert told and told[-1]["progress"] == told[-1]["total"] == len(told)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("manage_access", {"action": "list", "expires_at": "nonsense"}, "expires_at is not used by list"),
        ("manage_access", {"action": "remove", "reason": "over"}, "reason is not used by remove"),
        ("manage_budget", {"daily_limit_usd": 5}, "daily_limit_usd is not used by list"),
        ("manage_budget", {"action": "get", "until": "nonsense"}, "until is not used by get"),
        ("configure_provider", {"name": "main"}, "name is not used by list"),
        ("configure_provider", {"action": "enable", "name": "x", "models": ["*"]}, "models is not used by enable"),
    ],
)
async def test_an_argument_that_an_action_does_not_use_is_refused_by_name(
    assistant: Assistant, tool: str, arguments: dict[str, Any], words: str
) -> None:
    assert words in await assistant.refused(tool, **arguments)


async def test_the_schema_says_of_each_argument_what_the_refusals_say(assistant: Assistant) -> None:
    tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in (await assistant.send("tools/list"))["tools"]}
    chosen = {name: properties for name, properties in tools.items() if "enum" in properties.get("action", {})}
    assert set(chosen) == {"manage_access", "configure_provider", "manage_budget"}
    for name, properties in chosen.items():
        for argument, about in properties.items():
            users = re.search(r" Only for ([a-z, ]+)\.$", about["description"])
            for action in properties["action"]["enum"] if argument != "action" else ():
                # An object is right for no argument: whoever uses it says that, and nothing is done.
                words = await assistant.refused(name, action=action, **{argument: {}})
                is_used = users is None or action in users[1].split(", ")
                assert (f"{argument} is not used by {action}," in words) is not is_used, words
        left_out = dict.fromkeys(properties)  # null says no more than nothing does
        assert (await assistant.call(name, **left_out))["action"] == "list"


async def test_of_an_argument_that_is_text_the_audit_has_the_length_and_of_a_time_as_well(
    assistant: Assistant,
) -> None:
    named = {"list_type": "deny", "entry_type": "DOMAIN", "value": "evil.example"}
    await assistant.call("manage_access", action="add", reason="abuse", expires_at="12h", **named)
    await assistant.call("manage_budget", action="set", daily_limit_usd=5, alert_threshold_pct=70)
    await assistant.call("manage_budget", action="override", scope="global", limit=20, until="4h")
    await assistant.call(
        "configure_provider", action="add", name="main", base_url=PLACE, api_key="k" * 24, models=["a"],
        allow_private=False,
    )  # fmt: skip
    await assistant.call("review_audit", since="2020-01-01", until="0s")
    await assistant.call("generate_report", time_range="24h")
    await assistant.refused("manage_access", action="list", reason="abuse")
    events = (await assistant.site.gateway.audit.page(AuditFilter(source="mcp", limit=100))).items
    told = [
        (event.resource_id, event.details["arguments"])
        for event in reversed(events)
        if event.action.endswith(":invoked") and event.details is not None
    ]
    assert told == [
        ("manage_access", {
            "action": "add", "list_type": "deny", "entry_type": "DOMAIN", "value": "12 characters",
            "reason": "5 characters", "expires_at": "3 characters",
        }),
        ("manage_budget", {"action": "set", "daily_limit_usd": 5, "alert_threshold_pct": 70}),
        ("manage_budget", {"action": "override", "limit": 20, "scope": "global", "until": "2 characters"}),
        ("configure_provider", {
            "action": "add", "name": "4 characters", "base_url": f"{len(PLACE)} characters",
            "api_key": "24 characters", "allow_private": False,
        }),
        ("review_audit", {"since": "10 characters", "until": "2 characters", "limit": 20}),
        ("generate_report", {"type": "executive_summary", "format": "markdown", "time_range": "3 characters"}),
        ("manage_access", {}),
    ]  # fmt: skip


def test_there_are_ten_tools_and_their_rows_are_whole() -> None:
    assert {tool.name for tool in TOOLS} == {
        "shield_scan", "check_posture", "query_threats", "review_audit", "manage_access", "configure_provider",
        "generate_report", "run_shield_tests", "run_trust_audit", "manage_budget",
    }  # fmt: skip
    for tool in TOOLS:
        if tool.actions:
            rows: Any = tool.input_schema()["properties"]
            assert list(rows["action"]["enum"])[0] == tool.takes().action == next(iter(tool.actions))
            assert set(rows["action"]["enum"]) == set(tool.actions)
            assert {name for names in tool.actions.values() for name in names} == set(rows) - {"action"}
