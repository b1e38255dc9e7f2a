"""Events that leave: records from the API, and what really arrives at receivers of each kind."""

import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream
from certificates import certificate

OUTPUTS = "/api/event-outputs"


@asynccontextmanager
async def receiver(handle: Callable[[SocketStream], Any]) -> AsyncGenerator[int]:
    """Yield the port of a server on this host that lets `handle` have each connection."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield int(listener.extra(SocketAttribute.local_port))
        group.cancel_scope.cancel()


class Hook:
    """A webhook that answers what it is told to, and keeps what it got."""

    def __init__(self, *statuses: int, location: str = "") -> None:
        self.statuses = list(statuses)
        self.location = location
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.came = anyio.Event()

    async def __call__(self, stream: SocketStream) -> None:
        async with stream:
            raw = b""
            while b"\r\n\r\n" not in raw:
                raw += await stream.receive()
            head, _, body = raw.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")[1:]
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            assert len(headers) == len(lines), "a header is there twice"
            while len(body) < int(headers["content-length"]):
                body += await stream.receive()
            status = self.statuses.pop(0) if self.statuses else 200
            place = f"location: {self.location}\r\n" if self.location else ""
            await stream.send(f"HTTP/1.1 {status} X\r\n{place}content-length: 0\r\nconnection: close\r\n\r\n".encode())
            self.got.append((headers, body))
            self.came.set()

    async def next(self) -> tuple[dict[str, str], dict[str, Any], bytes]:
        with anyio.fail_after(15):
            while not self.got:
                self.came = anyio.Event()
                await self.came.wait()
        headers, body = self.got.pop(0)
        return headers, json.loads(body), body


@asynccontextmanager
async def sending(site: Any) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        group.start_soon(site.gateway.event_sender.run)
        yield
        group.cancel_scope.cancel()


async def output(site: Any, **fields: Any) -> Any:
    answer = await site.ask("POST", OUTPUTS, {"name": "siem", "allow_private": True, **fields})
    assert answer["status"] == 201, answer
    return answer["data"]


async def until(site: Any, is_so: Callable[[Any], bool]) -> Any:
    with anyio.fail_after(15):
        while not is_so(one := (await site.ask("GET", OUTPUTS))["data"][0]):  # noqa: ASYNC110 - seen from outside alone
            await anyio.sleep(0.02)
    return one


async def test_a_webhook_gets_signed_events_and_its_secret_is_told_once(site_with: Any, attack: str) -> None:
    hook = Hook()
    async with site_with() as site, receiver(hook) as port:
        made = await output(site, kind="webhook", target=f"http://127.0.0.1:{port}/webhook")
        assert made["secret"].startswith("whsec_") and made["secret_source"] == "stored"
        shown = (await site.ask("GET", OUTPUTS))["data"][0]
        assert shown["secret"] is None and made["secret"] not in json.dumps(shown)
        key = await site.key("shield:scan")
        await site.ask("POST", "/api/v1/shield/scan", {"text": attack}, key=key)
        types = []
        async with sending(site):
            while "alert.opened" not in types:
                headers, body, raw = await hook.next()
                types.append(body["type"])
                signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
                secret = base64.b64decode(made["secret"].removeprefix("whsec_"))
                right = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
                assert headers["webhook-signature"] == f"v1,{right}"
                assert set(body) == {"type", "timestamp", "data"} and attack not in raw.decode()
        assert {"audit.api_key_created", "audit.shield_scan_block"} <= set(types)


async def test_a_webhook_that_fails_gets_the_event_again_under_the_same_id(site_with: Any) -> None:
    hook = Hook(500, 200)
    async with site_with() as site, receiver(hook) as port:
        await output(site, kind="webhook", target=f"http://127.0.0.1:{port}/", kinds=["audit"])
        async with sending(site):
            first, _, _ = await hook.next()
            second, _, _ = await hook.next()
            assert first["webhook-id"] == second["webhook-id"]
            one = await until(site, lambda one: one["sent"] >= 1)
        assert one["last_error"] == "The webhook answered 500." and one["failed"] == 0


async def test_an_event_that_a_webhook_refuses_is_counted_and_the_next_one_goes_on(site_with: Any) -> None:
    hook = Hook(400)
    async with site_with() as site, receiver(hook) as port:
        await output(site, kind="webhook", target=f"http://127.0.0.1:{port}/", kinds=["audit"])
        await site.key("shield:scan")
        async with sending(site):
            first, _, _ = await hook.next()
            second, _, _ = await hook.next()
            assert first["webhook-id"] != second["webhook-id"]
            await until(site, lambda one: one["failed"] == 1 and one["sent"] >= 1)
        text = (await site.send("GET", "/metrics")).body.decode()
        assert 'gateway_events_out_total{output="siem",outcome="failed"} 1' in text
        assert 'gateway_events_out_total{output="siem",outcome="sent"}' in text


async def test_a_webhook_that_is_gone_is_switched_off(site_with: Any) -> None:
    hook = Hook(410)
    async with site_with() as site, receiver(hook) as port:
        await output(site, kind="webhook", target=f"http://127.0.0.1:{port}/")
        async with sending(site):
            await until(site, lambda one: not one["enabled"])


async def test_a_redirect_is_not_followed(site_with: Any) -> None:
    hook = Hook(302, location="http://169.254.169.254/latest/meta-data/")
    async with site_with() as site, receiver(hook) as port:
        made = await output(site, kind="webhook", target=f"http://127.0.0.1:{port}/")
        tried = (await site.ask("POST", f"{OUTPUTS}/{made['id']}/test"))["data"]
        assert (tried["ok"], tried["reason"]) == (False, "The webhook answered 302.")


async def test_syslog_over_tcp_counts_octets_and_forges_no_line(site_with: Any) -> None:
    got: list[bytes] = []
    is_there = anyio.Event()

    async def handle(stream: SocketStream) -> None:
        async with stream:
            raw = b""
            while True:
                try:
                    raw += await stream.receive()
                except anyio.EndOfStream:
                    return
                while b" " in raw and len(raw) >= (begin := raw.index(b" ") + 1) + (count := int(raw[: begin - 1])):
                    got.append(raw[begin : begin + count])
                    raw = raw[begin + count :]
                    if b"evil" in got[-1]:
                        is_there.set()

    async with site_with() as site, receiver(handle) as port:
        await output(site, kind="syslog", target=f"tcp://127.0.0.1:{port}")
        audit = site.gateway.audit
        event = audit.event('evil"] \n<13>1 forged', source="api", reason="a\nb\x1b[31m\x00")
        await audit.record(event)
        async with sending(site):
            with anyio.fail_after(15):
                await is_there.wait()
    for message in got:
        assert message.startswith(b"<") and b">1 " in message[:8]
        assert all(32 <= byte < 127 for byte in message)
    evil = next(message for message in got if b"evil" in message)
    assert b'type="audit.evil\\"\\] _<13>1 forged"' in evil
    data = json.loads(evil[evil.index(b"] {") + 2 :])
    assert data["id"] == event.id and data["reason"] == "a\nb\x1b[31m\ufffd"


async def test_syslog_over_udp_sends_one_message_a_datagram(site_with: Any) -> None:
    async with site_with() as site, await anyio.create_udp_socket(local_host="127.0.0.1") as udp:
        port = udp.extra(SocketAttribute.local_port)
        made = await output(site, kind="syslog", target=f"udp://127.0.0.1:{port}")
        assert (await site.ask("POST", f"{OUTPUTS}/{made['id']}/test"))["data"]["ok"]
        with anyio.fail_after(10):
            message, _ = await udp.receive()
        assert message.startswith(b"<110>1 ") and b'type="test"' in message


async def test_an_output_sends_in_the_format_that_is_chosen_until_another_one_is(site_with: Any) -> None:
    async with site_with() as site, await anyio.create_udp_socket(local_host="127.0.0.1") as udp:
        port = udp.extra(SocketAttribute.local_port)
        made = await output(site, kind="syslog", target=f"udp://127.0.0.1:{port}", format="cef")
        assert made["format"] == "cef"
        with anyio.fail_after(10):
            await site.ask("POST", f"{OUTPUTS}/{made['id']}/test")
            message, _ = await udp.receive()
            assert b"] CEF:0|Security Gateway|Security Gateway|" in message
            changed = await site.ask("PATCH", f"{OUTPUTS}/{made['id']}", {"format": "ocsf"})
            assert changed["data"]["format"] == "ocsf"
            await site.ask("POST", f"{OUTPUTS}/{made['id']}/test")
            message, _ = await udp.receive()
        assert json.loads(message.partition(b"] ")[2])["class_uid"] == 6003
        wrong = await site.ask("POST", OUTPUTS, {"name": "x", "kind": "jsonl", "target": "e.jsonl", "format": "leef"})
        assert wrong["status"] == 400 and wrong["error"]["param"] == "format"


@pytest.mark.parametrize("form", ["ocsf", "cef"])
async def test_a_webhook_signs_what_it_sends_in_every_format(site_with: Any, form: str, attack: str) -> None:
    hook = Hook()
    async with site_with() as site, receiver(hook) as port:
        target = f"http://127.0.0.1:{port}/webhook"
        made = await output(site, kind="webhook", target=target, format=form, kinds=["alert"])
        key = await site.key("shield:scan")
        await site.ask("POST", "/api/v1/shield/scan", {"text": attack}, key=key)
        async with sending(site):
            with anyio.fail_after(15):
                while not hook.got:
                    hook.came = anyio.Event()
                    await hook.came.wait()
        headers, raw = hook.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
    secret = base64.b64decode(made["secret"].removeprefix("whsec_"))
    right = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{right}" and attack not in raw.decode()
    if form == "ocsf":
        assert headers["content-type"] == "application/json"
        assert json.loads(raw)["class_uid"] == 2004 and json.loads(raw)["finding_info"]["title"]
    else:
        assert headers["content-type"].startswith("text/plain") and raw.startswith(b"CEF:0|")


async def test_syslog_over_tls_checks_who_receives(
    site_with: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    got: list[bytes] = []
    is_there = anyio.Event()

    async def handle(stream: SocketStream) -> None:
        try:
            async with await TLSStream.wrap(stream, ssl_context=context, server_side=True) as wrapped:
                got.append(await wrapped.receive())
                is_there.set()
        except (anyio.BrokenResourceError, anyio.EndOfStream, ssl.SSLError):
            await anyio.aclose_forcefully(stream)  # whoever came does not trust us

    async with site_with() as site, receiver(handle) as port:
        made = await output(site, kind="syslog", target=f"tls://localhost:{port}")
        path = f"{OUTPUTS}/{made['id']}/test"
        refused = (await site.ask("POST", path))["data"]
        assert not refused["ok"] and got == []
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        assert (await site.ask("POST", path))["data"]["ok"]
        with anyio.fail_after(10):
            await is_there.wait()
    length, _, message = got[0].partition(b" ")
    assert len(message) == int(length) and message.startswith(b"<110>1 ")


async def test_json_lines_are_kept_in_a_folder_for_their_owner_alone(site_with: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with site_with(data_dir=str(folder)) as site:
        await output(site, kind="jsonl", target="events.jsonl")
        await site.key("shield:scan")
        async with sending(site):
            await until(site, lambda one: one["waiting"] == 0 and one["sent"] > 1)
    file = folder / "events" / "events.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["type"] == "audit.event_output_created" and lines[1]["type"] == "audit.api_key_created"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


async def test_filters_let_through_what_is_wanted_alone(site_with: Any, tmp_path: Path, attack: str) -> None:
    folder = tmp_path / "data"
    async with site_with(data_dir=str(folder)) as site:
        await output(site, kind="jsonl", target="events.jsonl", kinds=["audit"], min_severity="high")
        await site.ask("POST", "/api/v1/shield/scan", {"text": attack}, key=await site.key("shield:scan"))
        async with sending(site):
            one = await until(site, lambda one: one["waiting"] == 0)
    lines = [json.loads(line) for line in (folder / "events" / "events.jsonl").read_text().splitlines()]
    assert [line["type"] for line in lines] == ["audit.shield_scan_block"] and one["sent"] == 1


@pytest.mark.parametrize("kinds", [["alert"], ["alert", "audit"]])
async def test_an_alert_that_comes_back_leaves_again(
    site_with: Any, tmp_path: Path, attack: str, kinds: list[str]
) -> None:
    folder = tmp_path / "data"
    async with site_with(data_dir=str(folder)) as site:
        await output(site, kind="jsonl", target="events.jsonl", kinds=kinds, min_severity="high")
        key = await site.key("shield:scan")
        await site.ask("POST", "/api/v1/shield/scan", {"text": attack}, key=key)
        alert = (await site.ask("GET", "/api/alerts"))["data"][0]["id"]
        assert (await site.ask("PATCH", f"/api/alerts/{alert}", {"status": "resolved"}))["status"] == 200
        async with sending(site):
            await until(site, lambda one: one["waiting"] == 0)
            await site.ask("POST", "/api/v1/shield/scan", {"text": attack}, key=key)
            await until(site, lambda one: one["sent"] >= (2 if len(kinds) == 1 else 4))
    lines = [json.loads(line) for line in (folder / "events" / "events.jsonl").read_text().splitlines()]
    types = [line["type"] for line in lines if line["type"].startswith("alert.")]
    assert types == ["alert.opened", "alert.reopened"]
    (again,) = [line for line in lines if line["type"] == "alert.reopened"]
    assert (again["data"]["id"], again["data"]["status"], again["data"]["count"]) == (alert, "open", 2)


async def test_what_is_too_far_behind_is_dropped_and_counted(site_with: Any, tmp_path: Path) -> None:
    async with site_with(data_dir=str(tmp_path / "data")) as site:
        await output(site, kind="jsonl", target="events.jsonl", min_severity="critical")
        audit = site.gateway.audit

        def many(tx: Any) -> None:
            for _ in range(10_050):
                audit.append(tx, audit.event("made_up", source="api"))

        await site.gateway.store.db.write(many)
        async with sending(site):
            one = await until(site, lambda one: one["waiting"] == 0)
        assert one["dropped"] == 51


async def test_only_one_process_of_a_database_sends(site_with: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    async with site_with(data_dir=folder) as first, site_with(data_dir=folder) as second:
        await output(first, kind="jsonl", target="events.jsonl")
        async with sending(first):
            await until(first, lambda one: one["sent"] >= 1)
            with anyio.fail_after(5):
                await second.gateway.event_sender.run()  # ends at once: another has the lease


async def test_while_no_output_is_on_nobody_takes_the_lease(site_with: Any) -> None:
    async with site_with() as site:
        sender = site.gateway.event_sender

        async def has_taken_it() -> bool:
            with anyio.move_on_after(0.1 if await sender.has_outputs() else 5) as waited:
                await sender.run()
            assert waited.cancelled_caught is await sender.has_outputs()
            rows = await site.gateway.store.db.read(lambda tx: tx.query("SELECT name FROM leases"))
            return "event_outputs" in {row["name"] for row in rows}

        assert not await has_taken_it()
        made = await output(site, kind="jsonl", target="events.jsonl", enabled=False)
        assert not await has_taken_it()
        one = f"{OUTPUTS}/{made['id']}"
        assert (await site.ask("PATCH", one, {"enabled": True, "version": 1}))["status"] == 200
        assert await has_taken_it()
        assert (await site.ask("PATCH", one, {"enabled": False, "version": 2}))["status"] == 200
        assert not await sender.has_outputs()


async def test_an_output_is_changed_tried_and_removed(site_with: Any) -> None:
    async with site_with() as site:
        made = await output(
            site, kind="webhook", target="https://hooks.example.com/a", secret="env:GATEWAY_PROVIDER_HOOK"
        )
        assert made["secret"] is None and made["secret_source"] == "env:GATEWAY_PROVIDER_HOOK"
        one = f"{OUTPUTS}/{made['id']}"
        changed = (await site.ask("PATCH", one, {"enabled": False, "min_severity": "high", "version": 1}))["data"]
        assert (changed["enabled"], changed["min_severity"], changed["version"]) == (False, "high", 2)
        assert (await site.ask("PATCH", one, {"enabled": True, "version": 1}))["status"] == 409
        tried = (await site.ask("POST", f"{one}/test"))["data"]
        assert not tried["ok"] and "GATEWAY_PROVIDER_HOOK" in tried["reason"]
        assert (await site.ask("POST", OUTPUTS, {"name": "SIEM", "kind": "jsonl", "target": "a.jsonl"}))[
            "status"
        ] == 409
        assert (await site.ask("DELETE", one))["status"] == 200
        assert (await site.ask("DELETE", one))["status"] == 404
        events = (await site.ask("GET", "/api/audit?resource_type=event_output"))["data"]
        assert {event["action"].removeprefix("event_output_") for event in events} == {
            "created", "changed", "tested", "removed",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"kind": "carrier-pigeon", "target": "x"}, "kind"),
        ({"kind": "webhook", "target": "ftp://a.example"}, "target"),
        ({"kind": "webhook", "target": "http://169.254.169.254/"}, "target"),
        ({"kind": "webhook", "target": "http://169.254.169.254/", "allow_private": True}, "target"),
        ({"kind": "webhook", "target": "http://127.0.0.1:9/"}, "target"),
        ({"kind": "webhook", "target": "https://a.example/", "secret": "short"}, "secret"),
        ({"kind": "syslog", "target": "tcp://10.0.0.1:514"}, "target"),
        ({"kind": "syslog", "target": "tcp://metadata.google.internal:514", "allow_private": True}, "target"),
        ({"kind": "syslog", "target": "http://a.example"}, "target"),
        ({"kind": "syslog", "target": "udp://a.example:514", "secret": "env:A"}, "secret"),
        ({"kind": "jsonl", "target": "/etc/passwd"}, "target"),
        ({"kind": "jsonl", "target": "../a.jsonl"}, "target"),
        ({"kind": "jsonl", "target": "a.jsonl", "kinds": []}, "kinds"),
        ({"kind": "jsonl", "target": "a.jsonl", "min_severity": "loud"}, "min_severity"),
        ({"kind": "jsonl", "target": "a.jsonl", "name": "a\nb"}, "name"),
        ({"kind": "jsonl", "target": "a.jsonl", "colour": "red"}, "colour"),
    ],
)
async def test_a_bad_output_is_told_its_field(site_with: Any, fields: dict[str, Any], param: str) -> None:
    async with site_with() as site:
        answer = await site.ask("POST", OUTPUTS, {"name": "siem", **fields})
        assert (answer["status"], answer["error"]["param"]) == (400, param), answer


@pytest.mark.parametrize(
    ("kind", "target", "change", "param"),
    [
        ("webhook", "https://a.example/", {"target": "events.jsonl"}, "target"),
        ("webhook", "https://a.example/", {"target": "udp://a.example:514"}, "target"),
        ("webhook", "http://127.0.0.1:9/", {"allow_private": False}, "target"),
        ("syslog", "udp://a.example:514", {"target": "https://a.example/"}, "target"),
        ("syslog", "udp://127.0.0.1:514", {"allow_private": False}, "target"),
        ("syslog", "udp://a.example:514", {"secret": "env:A"}, "secret"),
        ("jsonl", "events.jsonl", {"target": "tls://a.example:514"}, "target"),
    ],
)
async def test_what_does_not_go_with_what_an_output_is_is_a_conflict(
    site_with: Any, kind: str, target: str, change: dict[str, Any], param: str
) -> None:
    async with site_with() as site:
        one = f"{OUTPUTS}/{(await output(site, kind=kind, target=target, allow_private=True))['id']}"
        answer = await site.ask("PATCH", one, change)
        assert (answer["status"], answer["error"]["code"], answer["error"]["param"]) == (409, "conflict", param)
        assert (await site.ask("GET", OUTPUTS))["data"][0]["version"] == 1


@pytest.mark.parametrize(
    ("kind", "target", "other"),
    [
        ("webhook", "https://a.example/", "ftp://a.example"),
        ("syslog", "udp://a.example:514", "udp://a.example:0"),
        ("jsonl", "events.jsonl", "../a.jsonl"),
    ],
)
async def test_a_bad_target_is_told_in_a_change_too(site_with: Any, kind: str, target: str, other: str) -> None:
    async with site_with() as site:
        one = f"{OUTPUTS}/{(await output(site, kind=kind, target=target))['id']}"
        answer = await site.ask("PATCH", one, {"target": other})
        assert (answer["status"], answer["error"]["param"]) == (400, "target")


async def test_a_receiver_that_hangs_holds_up_no_other(site_with: Any, tmp_path: Path) -> None:
    async def handle(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    async with site_with(data_dir=str(tmp_path / "data")) as site, receiver(handle) as port:
        await output(site, name="file", kind="jsonl", target="events.jsonl")
        await output(site, name="hangs", kind="webhook", target=f"http://127.0.0.1:{port}/")
        async with sending(site):
            await until(site, lambda one: one["waiting"] == 0 and one["sent"] >= 2)
            await site.key("shield:scan")
            await until(site, lambda one: one["waiting"] == 0 and one["sent"] >= 3)
