"""Settings from the API: shown with their source, secrets masked, and few changed without a restart."""

import json
from typing import Any

import pytest

from gateway.domain.audit import AuditFilter


async def test_every_setting_is_shown_and_no_secret_is(site_with: Any) -> None:
    secret = "0123456789abcdef-secret"
    async with site_with(mcp_api_key=secret, sources={"mcp_api_key": "environment"}) as site:
        answer = await site.ask("GET", "/api/settings")
        known = {one["name"]: one for one in answer["data"]}
        assert secret not in json.dumps(answer)
        assert (known["mcp_api_key"]["value"], known["mcp_api_key"]["source"]) == ("****", "environment")
        assert (known["upstream_api_key"]["value"], known["upstream_api_key"]["secret"]) == (None, True)
        assert (known["shield_mode"]["value"], known["shield_mode"]["variable"]) == ("block", "GATEWAY_SHIELD_MODE")
        assert "sources" not in known and not known["shield_mode"]["changeable"]


async def test_retention_is_changed_without_a_restart_and_taken_back(site_with: Any) -> None:
    async with site_with() as site:
        runtime, store = site.gateway.runtime_settings, site.gateway.store
        changed = await site.ask("PATCH", "/api/settings", {"retention_traffic_days": 7})
        one = next(one for one in changed["data"] if one["name"] == "retention_traffic_days")
        assert (one["value"], one["default"], one["source"]) == (7, 30, "changed at run time")
        assert await store.db.read(lambda tx: runtime.value(tx, "retention_traffic_days")) == 7
        await site.ask("PATCH", "/api/settings", {"reset": ["retention_traffic_days"]})
        assert await store.db.read(lambda tx: runtime.value(tx, "retention_traffic_days")) == 30
        events = (await site.gateway.audit.page(AuditFilter(action="setting_changed"))).items
        assert [(event.before, event.after) for event in events] == [
            ({"value": 7}, {"value": 30}), ({"value": 30}, {"value": 7}),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"retention_audit_days": -1}, "retention_audit_days"),
        ({"retention_audit_days": 4000}, "retention_audit_days"),
        ({"shield_mode": "observe"}, "shield_mode"),
        ({"reset": ["shield_mode"]}, "reset[0]"),
    ],
)
async def test_nothing_else_is_changed(site_with: Any, body: object, param: str) -> None:
    async with site_with() as site:
        answer = await site.ask("PATCH", "/api/settings", body)
        assert (answer["status"], answer["error"]["param"]) == (400, param)
