"""An operator may try a text without a trace; a program with a key may not."""

from pathlib import Path
from typing import Any

from open_site import ATTACK, Site, open_site, sign_in

from gateway.domain.audit import AuditFilter
from gateway.domain.principals import Role


async def left(site: Site, fleet_key: str) -> dict[str, Any]:
    """Return whatever a scan leaves behind, but for what shows that somebody looked."""
    answers = {
        path: (await site.ask("GET", path))["data"] for path in ("/api/traffic", "/api/alerts?scope=all", "/api/agents")
    }
    answers["summary"] = (await site.ask("GET", "/api/traffic/summary"))["data"]["totals"]
    answers["threat"] = (await site.ask("GET", "/api/posture"))["data"]["threat"]
    answers["rules"] = [one["hits"] for one in (await site.ask("GET", "/api/shield/rules"))["data"]]
    answers["audit"] = [event.id for event in (await site.gateway.audit.page(AuditFilter())).items]
    metrics = (await site.ask("GET", "/metrics", key=fleet_key))["text"]
    answers["metrics"] = [line for line in metrics.splitlines() if line.startswith("gateway_scans_total{")]
    return answers


async def test_a_text_that_is_tried_is_judged_alike_and_leaves_no_trace(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        key = (await site.key(scopes=["shield:scan", "fleet:read"]))["key"]
        before = await left(site, key)
        for text in (ATTACK, "hello"):
            tried = await site.ask("POST", "/api/shield/scan", {"text": text, "record": False})
            assert tried["status"] == 200
            assert await left(site, key) == before, text
            counted = (await site.ask("POST", "/api/shield/scan", {"text": text, "record": True}))["data"]
            same = ("verdict", "score", "detections", "stats", "action")
            assert [tried["data"][name] for name in same] == [counted[name] for name in same]
            await site.gateway.store.db.write(lambda tx: None)
            after = await left(site, key)
            assert len(after["/api/traffic"]) == len(before["/api/traffic"]) + 1
            before = after
        assert before["/api/alerts?scope=all"] and before["metrics"]


async def test_a_program_cannot_ask_for_a_scan_that_is_not_recorded(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        key = (await site.key())["key"]
        for value in (False, True):
            answer = await site.ask("POST", "/api/v1/shield/scan", {"text": ATTACK, "record": value}, key=key)
            assert (answer["status"], answer["error"]["param"]) == (400, "record")
        refused = await site.ask("POST", "/api/shield/scan", {"text": "hi", "record": "no"})
        assert (refused["status"], refused["error"]["param"]) == (400, "record")


async def test_a_chat_that_is_tried_is_judged_alike_and_leaves_only_who_tried_it(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        key = (await site.key(scopes=["fleet:read"]))["key"]
        before = await left(site, key)
        before.pop("audit")
        for text, status in ((ATTACK, 400), ("hello", 200)):
            body = {"model": "echo", "messages": [{"role": "user", "content": text}]}
            assert (await site.ask("POST", "/api/shield/chat", body))["status"] == status
            after = await left(site, key)
            del after["audit"]
            assert after == before, text
        events = (await site.gateway.audit.page(AuditFilter(action="chat_tried"))).items
        assert [event.outcome for event in events] == ["success", "refused"]
        assert ATTACK not in repr(events) and "detections" not in repr(events)


async def test_a_text_and_a_chat_are_tried_under_a_policy_or_as_a_key(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        policy = (await site.ask("POST", "/api/policies", {"name": "watch", "mode": "observe", "block_score": 100}))[
            "data"
        ]
        key = await site.key(policy="watch", models=["echo"])
        chat = {"model": "echo", "messages": [{"role": "user", "content": ATTACK}]}
        for name, value in (("policy", policy["id"]), ("policy", "watch"), ("key", key["id"])):
            assert (await site.ask("POST", f"/api/shield/chat?{name}={value}", chat))["status"] == 200, name
            tried = await site.ask("POST", "/api/shield/scan", {"text": ATTACK, "record": False, name: value})
            assert tried["data"]["verdict"] == "REVIEW", name
        other = await site.ask("POST", f"/api/shield/chat?key={key['id']}", chat | {"model": "other"})
        assert other["error"]["code"] == "access_denied"
        for query, code in ((f"?policy=watch&key={key['id']}", 409), ("?policy=none", 404), ("?key=key_none", 404)):
            assert (await site.ask("POST", f"/api/shield/chat{query}", chat))["status"] == code, query
        recorded = await site.ask("POST", "/api/shield/scan", {"text": ATTACK, "policy": "watch"})
        assert (recorded["status"], recorded["error"]["param"]) == (409, "record")


async def test_a_trial_is_no_way_around_policies_and_keys(tmp_path: Path) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        operator, manager = await sign_in(site, Role.OPERATOR), await sign_in(site, Role.SECURITY_MANAGER)
        await manager.ask("POST", "/api/policies", {"name": "lax", "mode": "observe"})
        chat = {"model": "echo", "messages": [{"role": "user", "content": ATTACK}]}
        refused = await operator.ask("POST", "/api/shield/chat?policy=lax", chat)
        assert (refused["status"], refused["error"]["code"]) == (403, "permission_denied")
        assert (await manager.ask("POST", "/api/shield/chat?policy=lax", chat))["status"] == 200
        (event,) = (await site.gateway.audit.page(AuditFilter(action="chat_tried"))).items
        assert (event.details["verdict"], event.details["action"]) == ("BLOCK", "observed")

        async def key(*scopes: str) -> str:
            wanted = {"name": "k", "scopes": scopes}
            return str((await operator.ask("POST", "/api/config/api-keys", wanted))["data"]["id"])

        hello = chat | {"messages": [{"role": "user", "content": "hello"}]}
        scanner, denied, revoked = (
            await key("shield:scan"),
            await key("chat:completions"),
            await key("chat:completions"),
        )
        wanted = {"list": "deny", "type": "KEY", "value": denied, "force": True}
        assert (await manager.ask("POST", "/api/access", wanted))["status"] == 201
        assert (await operator.ask("POST", f"/api/config/api-keys/{revoked}/revoke"))["status"] == 200
        for one, status in ((scanner, 409), (denied, 403), (revoked, 409)):
            assert (await operator.ask("POST", f"/api/shield/chat?key={one}", hello))["status"] == status
