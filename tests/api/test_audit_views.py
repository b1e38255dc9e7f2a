"""The audit log for a security team: a page, the state of its chain, and the whole of it as a file."""

import csv
import io
import json
from typing import Any

from gateway.domain.audit import AuditEvent, chain
from gateway.schema import decode


async def body_of(response: Any) -> bytes:
    assert response.stream is not None
    return b"".join([piece async for piece in response.stream])


async def test_the_internal_page_has_the_filters_of_the_public_one(site_with: Any) -> None:
    async with site_with() as site:
        await site.key("shield:scan")
        page = await site.ask("GET", "/api/audit?action=api_key_created&limit=1")
        assert [event["action"] for event in page["data"]] == ["api_key_created"]
        assert (await site.ask("GET", "/api/audit?limit=1001"))["error"]["param"] == "limit"
        assert (await site.ask("GET", "/api/audit?colour=red"))["error"]["param"] == "colour"


async def test_the_chain_is_checked_on_from_its_newest_checkpoint(site_with: Any) -> None:
    async with site_with() as site:
        await site.key("shield:scan")
        first = (await site.ask("GET", "/api/audit/chain"))["data"]
        assert first["ok"] and first["checked"] >= 1 and first["checkpoints"] == []
        await site.gateway.audit_chain.checkpoint()
        await site.key("shield:scan")
        second = (await site.ask("GET", "/api/audit/chain"))["data"]
        assert second["ok"] and second["checked"] == 1
        (mark,) = second["checkpoints"]
        assert mark["seq"] == second["chains"][0]["last_seq"] - 1


async def test_a_look_at_a_long_chain_stops_and_says_so_but_a_checkpoint_does_not(site_with: Any) -> None:
    async with site_with() as site:
        for _ in range(3):
            await site.key("shield:scan")
        status = await site.gateway.audit_chain.status(1)
        assert status.ok and not status.complete
        await site.gateway.audit_chain.checkpoint()
        status = await site.gateway.audit_chain.status(1)
        assert status.ok and status.complete and status.checked == 0


async def test_a_chain_that_was_rewritten_is_not_what_its_checkpoint_says(site_with: Any) -> None:
    async with site_with() as site:
        await site.key("shield:scan")
        await site.gateway.audit_chain.checkpoint()
        await site.gateway.store.db.write(
            lambda tx: tx.execute("UPDATE audit_events SET hash = :hash", {"hash": "0" * 64})
        )
        status = (await site.ask("GET", "/api/audit/chain"))["data"]
        assert not status["ok"] and "checkpoint" in status["reason"]
        await site.gateway.audit_chain.checkpoint()
        alerts = (await site.ask("GET", "/api/v1/alerts", key=await site.key("alerts:read")))["data"]
        assert [alert["rule"] for alert in alerts] == ["audit-chain-broken"]
        assert alerts[0]["severity"] == "critical"


async def test_an_export_as_json_lines_can_be_verified_by_anybody(site_with: Any) -> None:
    async with site_with() as site:
        for _ in range(3):
            await site.key("shield:scan")
        response = await site.send("GET", "/api/audit/export")
        headers = dict(response.headers)
        assert headers["content-type"].startswith("application/x-ndjson")
        assert headers["content-disposition"].startswith('attachment; filename="audit-')
        assert "sandbox" in headers["content-security-policy"]
        events = [decode(AuditEvent, json.loads(line)) for line in (await body_of(response)).splitlines()]
        assert events[-1].action == "audit_exported"
        previous = "0" * 64
        for event in events:
            assert chain(previous, event) == event.hash
            previous = event.hash


async def test_an_export_keeps_to_its_filter_and_its_form(site_with: Any) -> None:
    async with site_with() as site:
        await site.key("shield:scan")
        response = await site.send("GET", "/api/audit/export?action=api_key_created")
        lines = (await body_of(response)).splitlines()
        assert [json.loads(line)["action"] for line in lines] == ["api_key_created"]
        assert (await site.ask("GET", "/api/audit/export?format=xml"))["error"]["param"] == "format"
        assert (await site.ask("GET", "/api/audit/export?cursor=x"))["error"]["param"] == "cursor"


async def test_no_cell_of_an_exported_table_is_a_formula(site_with: Any) -> None:
    async with site_with() as site:
        audit = site.gateway.audit
        for reason in ("=1+1", "@SUM(A1)", "+1", "-1", " =1", '"=1', "\t=1", "a\nb"):
            await audit.record(audit.event("made_up", source="api", reason=reason))
        response = await site.send("GET", "/api/audit/export?format=csv&action=made_up")
        assert dict(response.headers)["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO((await body_of(response)).decode(), newline="")))
        reasons = [row["reason"] for row in rows]
        assert reasons == ["'=1+1", "'@SUM(A1)", "'+1", "'-1", "' =1", "'\"=1", "' =1", "a b"]
        assert list(rows[0])[:3] == ["id", "seq", "timestamp"] and "hash" in rows[0]


async def test_a_long_log_is_exported_in_pieces_whole_and_in_order(site_with: Any) -> None:
    async with site_with() as site:
        audit, store = site.gateway.audit, site.gateway.store

        def many(tx: Any) -> None:
            for number in range(1200):
                audit.append(tx, audit.event("made_up", source="api", details={"number": number}))

        await store.db.write(many)
        response = await site.send("GET", "/api/audit/export?action=made_up")
        pieces = [piece async for piece in response.stream]
        assert len(pieces) == 3
        numbers = [json.loads(line)["details"]["number"] for line in b"".join(pieces).splitlines()]
        assert numbers == list(range(1200))
