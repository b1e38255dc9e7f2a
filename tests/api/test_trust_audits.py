"""Posture and trust audits from the API: run, kept, listed, and no number for what was never looked at."""

from typing import Any

from gateway.domain.paging import PageQuery
from gateway.domain.posture import DAY_MS
from gateway.domain.principals import Caller, RequestContext, local


async def test_a_gateway_that_was_never_audited_has_no_posture_score(site_with: Any) -> None:
    async with site_with() as site:
        view = (await site.ask("GET", "/api/posture"))["data"]
        assert view["posture_score"] is None and view["trust_audit"] is None
        assert view["threat_score"] == 0 and len(view["threat"]) == 6
        assert sum(part["limit"] for part in view["threat"]) == 100


async def test_a_trust_audit_is_run_kept_and_listed(site_with: Any) -> None:
    async with site_with() as site:
        made = await site.ask("POST", "/api/trust-audits")
        assert made["status"] == 201
        run = made["data"]
        assert run["id"].startswith("run_") and len(run["checks"]) >= 30
        assert set(run["checks"][0]) == {
            "id", "title", "category", "severity", "status", "evidence", "why", "fix", "refs",
        }  # fmt: skip
        assert run["passed"] + run["warned"] + run["failed"] + run["skipped"] == len(run["checks"])
        again = (await site.ask("POST", "/api/trust-audits"))["data"]
        first = await site.ask("GET", "/api/trust-audits?limit=1")
        assert [one["id"] for one in first["data"]] == [again["id"]]
        rest = await site.ask("GET", f"/api/trust-audits?limit=1&cursor={first['page']['next']}")
        assert rest["data"] == [run] and rest["page"]["next"] is None
        assert (await site.ask("GET", f"/api/trust-audits/{run['id']}"))["data"] == run
        assert (await site.ask("GET", "/api/trust-audits/run_nothing"))["status"] == 404
        view = (await site.ask("GET", "/api/posture"))["data"]
        assert view["posture_score"] == again["score"] and view["trust_audit"] == again
        key = await site.key("shield:read")
        assert (await site.ask("GET", "/api/v1/trust-audits", key=key))["data"][1] == run
        events = (await site.ask("GET", "/api/v1/audit?action=trust_audit_run", key=await site.key("audit:read")))[
            "data"
        ]
        assert [event["resource_id"] for event in events] == [again["id"], run["id"]]


async def test_a_bad_filter_is_told(site_with: Any) -> None:
    async with site_with() as site:
        for target, param in (
            ("/api/posture?since=yesterday", "since"),
            ("/api/trust-audits?limit=0", "limit"),
            ("/api/trust-audits?cursor=abc", "cursor"),
            ("/api/trust-audits?kind=x", "kind"),
        ):
            answer = await site.ask("GET", target)
            assert (answer["status"], answer["error"]["param"]) == (400, param), target
        key = await site.key("agents:read")
        assert (await site.ask("GET", "/api/v1/trust-audits", key=key))["error"]["code"] == "insufficient_scope"


async def test_the_course_of_both_scores_is_kept_one_point_for_all_workers(site_with: Any) -> None:
    async with site_with() as site:
        await site.gateway.trust_audits.record_scores()
        await site.gateway.trust_audits.record_scores()
        noted, now = (await site.ask("GET", "/api/posture"))["data"]["history"]
        for point in (noted, now):
            assert point["posture_score"] is None and point["threat_score"] == 0


async def test_failed_sign_ins_raise_the_threat(site_with: Any) -> None:
    async with site_with() as site:
        audit = site.gateway.audit
        await audit.record(audit.event("sign_in_failed", source="auth", outcome="failed"))
        parts = (await site.ask("GET", "/api/posture"))["data"]["threat"]
        assert {part["name"]: part["points"] for part in parts}["auth_failures"] > 0


async def test_a_policy_that_observes_counts_as_a_bypass_once_a_key_has_it(site_with: Any) -> None:
    async with site_with() as site:
        policy = (await site.ask("POST", "/api/policies", {"name": "lab", "mode": "observe"}))["data"]
        assert await _bypass(site) == 0
        body = {"name": "lab", "scopes": ["shield:scan"], "policy": policy["id"]}
        assert (await site.ask("POST", "/api/config/api-keys", body))["status"] == 201
        assert await _bypass(site) == 15
        run = (await site.ask("POST", "/api/trust-audits"))["data"]
        assert {check["id"]: check["status"] for check in run["checks"]}["keys-observed"] == "warn"


async def test_a_day_after_a_run_the_next_one_is_made_by_itself(site_with: Any) -> None:
    async with site_with() as site:
        audits, store = site.gateway.trust_audits, site.gateway.store
        run = await audits.run(Caller(local("test"), RequestContext(request_id="req_1")))
        await store.db.write(
            lambda tx: tx.execute("UPDATE trust_audits SET occurred_at = :at", {"at": run.occurred_at - DAY_MS})
        )
        await audits.record_scores()
        await audits.record_scores()
        runs = (await audits.page(PageQuery())).items
        assert [one.started_by for one in runs] == ["gateway", "test"]


async def _bypass(site: Any) -> Any:
    parts = (await site.ask("GET", "/api/posture"))["data"]["threat"]
    return next(part["points"] for part in parts if part["name"] == "bypass")
