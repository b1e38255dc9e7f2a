"""Alerts from the API: found by filters, moved through their life, shown with what was done about them."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.alerts import Alert, AlertSource
from gateway.domain.principals import RequestContext
from gateway.errors import BadCredentials, LoginThrottled
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.settings import Settings
from gateway.shield.detections import Severity
from gateway.strict_json import write_time

HOUR_MS = 3_600_000


class Site:
    """A gateway without RBAC, and what is asked of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(self, method: str, target: str, body: object = None, *, key: str = "", **more: str) -> Any:
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= ({"x-service-key": key} if key else {}) | {
            name.replace("_", "-"): text for name, text in more.items()
        }
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, Headers(fields), raw, "127.0.0.1", False, 0.0)
        response = await self.dispatch.handle(request)
        return json.loads(response.body) | {"status": response.status, "headers": dict(response.headers)}

    async def alert(self, subject: str = "prv_1", *, ago_ms: int = 0) -> Alert:
        at = self.gateway.clock.now_at() - ago_ms
        return await self.gateway.store.db.write(
            lambda tx: self.gateway.alerts.raise_event(
                tx,
                source=AlertSource.PROVIDER,
                rule="provider-down",
                severity=Severity.HIGH,
                title="A provider is down",
                description="It refuses connections.",
                subject=subject,
                occurred_at=at,
                evidence=({"attempts": 5},),
            )
        )

    async def settled(self) -> None:
        """Wait until what was queued to be written is written."""
        await self.gateway.store.db.write(lambda tx: None)

    async def move(self, alert: Alert, **body: object) -> Any:
        return await self.ask("PATCH", f"/api/alerts/{alert.id}", body)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    settings = Settings(data_dir=":memory:", rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        yield Site(gateway)


async def test_an_alert_goes_its_way_and_everything_stands_in_its_timeline(site: Site) -> None:
    alert = await site.alert()
    for status in ("acknowledged", "investigating", "resolved"):
        answer = await site.move(alert, status=status, note=f"now {status}")
        assert (answer["status"], answer["data"]["status"]) == (200, status), answer
    shown = (await site.ask("GET", f"/api/alerts/{alert.id}"))["data"]
    assert (shown["acknowledged_by"], shown["assigned_to"], shown["resolved_by"]) == ("local", "local", "local")
    assert (shown["resolution"], shown["version"], shown["evidence"]) == ("now resolved", 4, [{"attempts": 5}])
    steps = [(step["action"], step["note"]) for step in shown["timeline"]]
    assert steps == [
        ("alert_raised", "It refuses connections."),
        ("alert_acknowledged", "now acknowledged"),
        ("alert_investigating", "now investigating"),
        ("alert_resolved", "now resolved"),
    ]


async def test_what_the_gateway_does_by_itself_stands_in_the_timeline_too(site: Site) -> None:
    alert = await site.alert()
    await site.gateway.store.db.write(
        lambda tx: site.gateway.alerts.end_event(
            tx,
            source=AlertSource.PROVIDER,
            rule="provider-down",
            subject="prv_1",
            occurred_at=site.gateway.clock.now_at(),
            resolution="It answers again.",
        )
    )
    assert (await site.alert()).id == alert.id
    steps = (await site.ask("GET", f"/api/alerts/{alert.id}"))["data"]["timeline"]
    assert [(step["action"], step["actor"]) for step in steps[1:]] == [
        ("alert_resolved", "gateway"),
        ("alert_reopened", "gateway"),
    ]


@pytest.mark.parametrize(
    ("first", "then"),
    [("resolved", "acknowledged"), ("investigating", "acknowledged"), ("false_positive", "resolved")],
)
async def test_a_wrong_step_is_a_conflict(site: Site, first: str, then: str) -> None:
    alert = await site.alert()
    assert (await site.move(alert, status=first))["status"] == 200
    answer = await site.move(alert, status=then)
    assert (answer["status"], answer["error"]["param"]) == (409, "status")


async def test_a_suppressed_alert_stays_quiet_until_its_end_and_no_longer(site: Site) -> None:
    quiet, over = await site.alert("prv_1"), await site.alert("prv_2")
    until = write_time(site.gateway.clock.now_at() + HOUR_MS)
    for alert in (quiet, over):
        assert (await site.move(alert, status="suppressed", suppressed_until=until))["data"]["status"] == "suppressed"
    assert (await site.alert("prv_1")).status == "suppressed"
    later = await site.alert("prv_2", ago_ms=-2 * HOUR_MS)
    assert (later.id, later.status, later.suppressed_until_at) == (over.id, "open", None)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"status": "closed"}, "status"),
        ({"status": "suppressed"}, "suppressed_until"),
        ({"status": "suppressed", "suppressed_until": "2001-01-01T00:00:00Z"}, "suppressed_until"),
        ({"status": "suppressed", "suppressed_until": "2999-01-01T00:00:00Z"}, "suppressed_until"),
        ({"status": "suppressed", "suppressed_until": "tomorrow"}, "suppressed_until"),
        ({"status": "suppressed", "suppressed_until": "367d"}, "suppressed_until"),
        ({"status": "suppressed", "suppressed_until": "0s"}, "suppressed_until"),
        ({"status": "suppressed", "acceptance": ""}, "acceptance"),
        ({"acceptance": "ra_nothing"}, "acceptance"),
        ({"status": "resolved", "suppressed_until": "2999-01-01T00:00:00Z"}, "suppressed_until"),
        ({"note": "x" * 1001}, "note"),
        ({"note": "a\u202eb"}, "note"),
        ({"assigned_to": "a\x07b"}, "assigned_to"),
        ({"assigned_to": "a\nb"}, "assigned_to"),
        ({"severity": "low"}, "severity"),
    ],
)
async def test_a_bad_change_is_told_its_field(site: Site, body: dict[str, object], param: str) -> None:
    answer = await site.move(await site.alert(), **body)
    assert (answer["status"], answer["error"]["param"]) == (400, param)


async def test_a_suppression_may_be_told_from_now_on(site: Site) -> None:
    alert, year_ms, clock = await site.alert(), 366 * 24 * HOUR_MS, site.gateway.clock
    earliest = write_time(clock.now_at() + year_ms)
    moved = await site.move(alert, status="suppressed", suppressed_until="366d")
    assert earliest <= moved["data"]["suppressed_until"] <= write_time(clock.now_at() + year_ms)


async def test_a_suppression_by_what_is_not_there_is_a_conflict(site: Site) -> None:
    answer = await site.move(await site.alert(), status="suppressed", acceptance="ra_nothing")
    assert (answer["status"], answer["error"]["param"]) == (409, "acceptance")


async def test_who_saw_an_older_version_is_told_so(site: Site) -> None:
    alert = await site.alert()
    assert (await site.move(alert, assigned_to="kim", version=1))["data"]["version"] == 2
    assert (await site.move(alert, assigned_to="lou", version=1))["error"]["param"] == "version"
    assert (await site.ask("PATCH", f"/api/alerts/{alert.id}", {"assigned_to": ""}, if_match='"2"'))["data"][
        "assigned_to"
    ] is None


async def test_an_alert_that_is_not_there_is_not_found(site: Site) -> None:
    for method, body in (("GET", None), ("PATCH", {"note": "x"})):
        assert (await site.ask(method, "/api/alerts/alr_none", body))["error"]["code"] == "not_found"


async def test_the_filters_find_what_they_name(site: Site) -> None:
    first, second = await site.alert("prv_1"), await site.alert("prv_2", ago_ms=3 * HOUR_MS)
    await site.move(first, status="resolved", note="done")
    await site.move(second, assigned_to="kim")

    async def found(query: str) -> list[str]:
        return [alert["id"] for alert in (await site.ask("GET", "/api/alerts" + query))["data"]]

    assert await found("") == [second.id, first.id]
    assert await found("?scope=active") == [second.id]
    assert await found("?scope=terminal&source=provider") == [first.id]
    assert await found("?assigned_to=kim&rule=provider-down") == [second.id]
    assert await found("?severity=low") == []
    assert await found("?since=1h") == [first.id]
    assert await found("?until=1h") == [second.id]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("status=done", "status"),
        ("severity=HIGH", "severity"),
        ("source=moon", "source"),
        ("scope=some", "scope"),
        ("since=yesterday", "since"),
        ("until=2026-02-30", "until"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=1e2", "limit"),
        ("cursor=abc", "cursor"),
        ("colour=red", "colour"),
        ("status=open&status=open", "status"),
    ],
)
async def test_nonsense_in_a_filter_is_told_its_parameter(site: Site, query: str, param: str) -> None:
    answer = await site.ask("GET", "/api/alerts?" + query)
    assert (answer["status"], answer["error"]["param"]) == (400, param)


async def test_a_cursor_goes_on_in_its_own_list_alone(site: Site) -> None:
    for number in range(5):
        await site.alert(f"prv_{number}")
    page = await site.ask("GET", "/api/alerts?limit=2")
    other = await site.ask("GET", "/api/alerts?scope=active&cursor=" + page["page"]["next"])
    assert other["error"]["param"] == "cursor"


async def test_somebody_who_tries_out_keys_is_one_alert(site: Site) -> None:
    for number in range(60):
        answer = await site.ask("GET", "/api/v1/alerts", key=f"svc_{number % 2:040x}")
        assert answer["status"] == 401
    site.gateway.authentication.refusals.flush()
    await site.settled()
    (alert,) = (await site.ask("GET", "/api/alerts?source=auth"))["data"]
    assert (alert["rule"], alert["severity"]) == ("many-invalid-keys", "high")
    assert alert["evidence"][0]["ip"] == "127.0.0.1"


async def test_a_few_wrong_keys_are_no_alert(site: Site) -> None:
    for _ in range(5):
        await site.ask("GET", "/api/v1/alerts", key=f"svc_{1:040x}")
    site.gateway.authentication.refusals.flush()
    await site.settled()
    assert (await site.ask("GET", "/api/alerts?source=auth"))["data"] == []


async def test_a_throttled_sign_in_is_an_alert(site: Site) -> None:
    context = RequestContext(request_id="req_1", ip="192.0.2.9")
    for _ in range(12):
        with pytest.raises((BadCredentials, LoginThrottled)):
            await site.gateway.signin.begin("nobody", "wrong-password", context)
    await site.settled()
    (alert,) = (await site.ask("GET", "/api/alerts?source=auth"))["data"]
    assert (alert["rule"], alert["evidence"]) == ("login-throttled", [{"ip": "192.0.2.9"}])


async def test_a_caller_on_the_deny_list_is_an_alert(site: Site) -> None:
    made = await site.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": ["alerts:read"]})
    entry = {"list": "deny", "type": "KEY", "value": made["data"]["id"], "reason": "test", "force": True}
    answer = await site.ask("POST", "/api/access", entry)
    assert answer["status"] == 201, answer
    assert (await site.ask("GET", "/api/v1/alerts", key=made["data"]["key"]))["status"] == 403
    await site.settled()
    (alert,) = (await site.ask("GET", "/api/alerts?source=access"))["data"]
    assert (alert["rule"], alert["key_prefix"]) == ("access-denied", made["data"]["prefix"])


async def test_a_suppression_by_a_risk_acceptance_lasts_as_long_as_that(site: Site) -> None:
    until = write_time(site.gateway.clock.now_at() + 24 * HOUR_MS)
    wanted = {"scope": "rule", "rule": "provider-down", "reason": "Being replaced next week.", "until": until}
    alert = await site.alert()
    made = await site.ask("POST", "/api/risk-acceptances", wanted)
    assert made["status"] == 201, made
    moved = (await site.move(alert, status="suppressed", acceptance=made["data"]["id"]))["data"]
    assert (moved["status"], moved["acceptance"]) == ("suppressed", made["data"]["id"])
    assert (await site.alert()).status == "suppressed"
    assert (await site.ask("DELETE", "/api/risk-acceptances/" + made["data"]["id"]))["status"] == 200
    assert (await site.alert()).status == "open"
    answer = await site.move(alert, status="suppressed", acceptance=made["data"]["id"])
    assert (answer["status"], answer["error"]["param"]) == (409, "acceptance")


async def test_a_chat_that_the_access_list_refuses_is_an_alert(site: Site) -> None:
    made = await site.ask("POST", "/api/config/api-keys", {"name": "ci", "scopes": ["chat:completions"]})
    entry = {"list": "deny", "type": "MODEL", "value": "echo", "reason": "test"}
    denied = (await site.ask("POST", "/api/access", entry))["data"]["id"]
    body = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
    answer = await site.ask("POST", "/api/v1/chat/completions", body, key=made["data"]["key"])
    assert answer["status"] == 403
    (alert,) = (await site.ask("GET", "/api/alerts?source=access&rule=access-denied"))["data"]
    assert alert["evidence"][0]["access_entry"] == denied
