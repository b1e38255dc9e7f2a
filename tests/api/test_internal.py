"""The internal API over the real services: who may come in, and what sign-in, keys, users and sessions answer."""

import base64
import hashlib
import io
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from seeding import seed

from gateway.api.dispatch import Dispatch
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import ROLE_PERMISSIONS, Role
from gateway.domain.users import User
from gateway.http.messages import Headers, Request
from gateway.log import Log
from gateway.operations.every import INTERNAL_OPERATIONS
from gateway.settings import Settings
from gateway.strict_json import read_timestamp

PASSWORD = "correct horse battery staple"
# As the real ones but for the work in it.
DIGEST = hashlib.scrypt(PASSWORD.encode(), salt=bytes(16), n=1024, r=1, p=1, dklen=32)
HASH = f"scrypt$1024$1$1${base64.b64encode(bytes(16)).decode()}${base64.b64encode(DIGEST).decode()}"
RULES = {
    "version": 1,
    "tables": {},
    "rules": [
        {
            "id": "say-please", "name": "Say please", "category": "injection", "severity": "critical", "confidence": 0.9,
            "description": "A made-up attack.", "direction": ["inbound"], "literals": ["open the pod bay doors"],
            "match": ["open the pod bay doors"], "pass": ["close the pod bay"],
        }
    ],
}  # fmt: skip
KEYS = "/api/config/api-keys"
NEW_KEY = {"name": "ci", "scopes": ["shield:scan"]}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    json: Any

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def data(self) -> Any:
        return self.json["data"]


class Site:
    """A gateway, and callers of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.dispatch = Dispatch(gateway)

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        peer: str = "127.0.0.1",
        is_tls: bool = False,
    ) -> Reply:
        path, _, query = target.partition("?")
        fields = {"host": "127.0.0.1:5001"} | ({} if body is None else {"content-type": "application/json"})
        fields |= headers or {}
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, Headers(fields), raw, peer, is_tls, 0.0)
        response = await self.dispatch.handle(request)
        # Streams and documents are no JSON, and nothing here reads them.
        told = json.loads(response.body) if response.body[:1] == b"{" else {}
        return Reply(response.status, dict(response.headers), told)

    async def sign_in(self, username: str, **more: Any) -> "Person":
        reply = await self.ask("POST", "/api/auth/login", {"username": username, "password": PASSWORD}, **more)
        assert reply.status == 200, reply.json
        cookie = reply.headers["set-cookie"].partition(";")[0]
        return Person(self, cookie, reply.data["csrf_token"], reply)


@dataclass
class Person:
    """Somebody with a session."""

    site: Site
    cookie: str
    csrf: str | None
    reply: Reply

    async def ask(self, method: str, target: str, body: object = None, **headers: str) -> Reply:
        fields = {"cookie": self.cookie} | ({"x-csrf-token": self.csrf} if self.csrf else {})
        return await self.site.ask(method, target, body, headers=fields | headers)


async def open_site(path: Path, rbac_enabled: bool, **more: Any) -> AsyncIterator[Site]:
    rules = path / "rules.json"
    rules.write_text(json.dumps(RULES))
    settings = Settings(data_dir=":memory:", rules=str(rules), rbac_enabled=rbac_enabled, **more)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        for number, role in enumerate(Role):
            user = User(f"usr_{number}", role.value, HASH, role, 0, None)
            await seed(gateway.store, lambda tx, user=user: gateway.store.users.insert(tx, user))
        yield Site(gateway)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async for one in open_site(tmp_path, rbac_enabled=True):
        yield one


@pytest.fixture
async def open_house(tmp_path: Path) -> AsyncIterator[Site]:
    """A gateway without RBAC."""
    async for one in open_site(tmp_path, rbac_enabled=False):
        yield one


@pytest.fixture
async def admin(site: Site) -> Person:
    return await site.sign_in("admin")


async def test_an_api_key_is_no_session(site: Site, admin: Person) -> None:
    key = (await admin.ask("POST", KEYS, NEW_KEY)).data["key"]
    for headers in ({"x-service-key": key}, {"authorization": f"Bearer {key}"}):
        assert (await site.ask("GET", KEYS, headers=headers)).code == "not_signed_in"
    assert (await site.ask("GET", "/api/v1/audit", headers={"cookie": admin.cookie})).code == "missing_api_key"


@pytest.mark.parametrize("is_tls", [True, False])
async def test_login_sets_the_cookie_and_answers_what_the_user_may_do(site: Site, is_tls: bool) -> None:
    reply = (await site.sign_in("viewer", is_tls=is_tls)).reply
    assert reply.data["user"] == {"id": "usr_3", "username": "viewer", "role": "viewer"}
    assert reply.data["permissions"] == sorted(ROLE_PERMISSIONS[Role.VIEWER])
    cookie = reply.headers["set-cookie"]
    assert re.fullmatch(
        r"service_session=[\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict(; Secure)?", cookie
    )
    assert cookie.endswith("Secure") is is_tls


async def test_login_refuses_wrong_and_unknown_alike_and_then_makes_wait(site: Site) -> None:
    async def attempt(username: str) -> Reply:
        return await site.ask("POST", "/api/auth/login", {"username": username, "password": "wrong"})

    wrong, unknown = await attempt("admin"), await attempt("nobody")
    assert (wrong.status, wrong.code) == (unknown.status, unknown.code) == (401, "bad_credentials")
    assert wrong.json["error"]["message"] == unknown.json["error"]["message"]
    assert "set-cookie" not in wrong.headers
    for _ in range(4):
        await attempt("admin")
    late = await attempt("admin")
    assert (late.status, late.code) == (429, "login_throttled")
    assert 1 <= int(late.headers["retry-after"]) <= 60


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"username": "admin"}, "invalid_request", "password"),
        ({"username": 1, "password": "x"}, "invalid_request", "username"),
        ({"username": "admin", "password": ["x"]}, "invalid_request", "password"),
        ({"username": "admin", "password": "x", "role": "admin"}, "invalid_request", "role"),
        ({"username": "a" * 257, "password": "x"}, "invalid_request", "username"),
        ({"username": "admin", "password": "x" * 1025}, "invalid_request", "password"),
        ([], "invalid_request", None),
        (b"{", "invalid_json", None),
    ],
)
async def test_a_malformed_login_is_told_what_is_wrong(site: Site, body: object, code: str, param: str | None) -> None:
    reply = await site.ask("POST", "/api/auth/login", body)
    assert (reply.status, reply.code, reply.json["error"]["param"]) == (400, code, param)


async def test_login_of_another_site_is_refused(site: Site) -> None:
    reply = await site.ask(
        "POST", "/api/auth/login", {"username": "admin", "password": PASSWORD}, headers={"origin": "http://evil.test"}
    )
    assert (reply.status, reply.code) == (403, "csrf_failed")
    form = {"content-type": "text/plain"}
    reply = await site.ask("POST", "/api/auth/login", b'{"username":"admin","password":"x"}', headers=form)
    assert reply.status == 415


async def test_the_session_says_who_is_in_until_it_is_over(site: Site, admin: Person) -> None:
    about = await admin.ask("GET", "/api/auth/session")
    assert about.data == admin.reply.data
    out = await admin.ask("POST", "/api/auth/logout")
    assert out.status == 200
    assert out.headers["set-cookie"].startswith("service_session=; Max-Age=0")
    assert (await admin.ask("GET", "/api/auth/session")).code == "not_signed_in"
    assert (await admin.ask("POST", "/api/auth/logout")).code == "not_signed_in"


async def test_signing_in_again_ends_the_session_that_was_sent(site: Site, admin: Person) -> None:
    again = await site.sign_in("admin", headers={"cookie": admin.cookie})
    assert again.cookie != admin.cookie
    assert (await admin.ask("GET", "/api/auth/session")).code == "not_signed_in"


async def test_two_session_cookies_are_none(site: Site, admin: Person) -> None:
    reply = await site.ask("GET", "/api/auth/session", headers={"cookie": f"service_session=x; {admin.cookie}"})
    assert reply.code == "not_signed_in"


async def test_a_password_is_changed_by_its_owner(site: Site, admin: Person) -> None:
    other = await site.sign_in("admin")
    body = {"current_password": PASSWORD, "new_password": "another one, please"}
    wrong = await admin.ask("POST", "/api/auth/password", body | {"current_password": "wrong"})
    assert (wrong.status, wrong.code, wrong.json["error"]["param"]) == (401, "bad_credentials", "current_password")
    short = await admin.ask("POST", "/api/auth/password", body | {"new_password": "short"})
    assert (short.status, short.json["error"]["param"]) == (400, "new_password")
    common = await admin.ask("POST", "/api/auth/password", body | {"new_password": "QWERTYuiop"})
    assert (common.status, common.json["error"]["param"]) == (400, "new_password")
    assert "10,000 most common" in common.json["error"]["message"]
    same = await admin.ask("POST", "/api/auth/password", body | {"new_password": PASSWORD})
    assert (same.status, same.json["error"]["param"]) == (409, "new_password")
    assert (await admin.ask("POST", "/api/auth/password", body)).data == {"sessions_ended": 1}
    assert (await admin.ask("GET", "/api/auth/session")).status == 200
    assert (await other.ask("GET", "/api/auth/session")).status == 401


async def test_a_key_lives_its_whole_life(site: Site, admin: Person) -> None:
    made = await admin.ask("POST", KEYS, NEW_KEY | {"rate_limit": 7, "expires_at": "2099-01-01T00:00:00Z"})
    assert made.status == 201
    assert set(made.data) == {
        "id", "key", "name", "prefix", "scopes", "rate_limit", "status", "created_at", "expires_at",
    }  # fmt: skip
    assert (made.data["status"], made.data["expires_at"]) == ("active", "2099-01-01T00:00:00.000Z")
    one = f"{KEYS}/{made.data['id']}"
    shown = (await admin.ask("GET", one)).data
    assert "key" not in shown
    assert (shown["created_by"], shown["last_used_at"], shown["rotated_from"]) == ("admin", None, None)
    assert (await admin.ask("GET", KEYS)).data == [shown]
    changed = await admin.ask("PATCH", one, {"name": "other", "expires_at": None})
    assert (changed.data["name"], changed.data["expires_at"], changed.data["rate_limit"]) == ("other", None, 7)
    rotated = await admin.ask("POST", f"{one}/rotate", {"grace_seconds": 60})
    assert rotated.status == 201
    assert (rotated.data["rotated_from"], rotated.data["name"]) == (made.data["id"], "other")
    old = (await admin.ask("GET", one)).data
    assert old["status"] == "active"
    assert old["revoked_at"] is not None
    assert (await admin.ask("POST", f"{one}/rotate")).code == "conflict"
    assert (await admin.ask("POST", f"{one}/revoke")).data["status"] == "revoked"
    assert (await admin.ask("POST", f"{one}/revoke")).code == "conflict"
    assert (await admin.ask("PATCH", one, {"name": "late"})).code == "conflict"
    for key, status in ((made.data["key"], 403), (rotated.data["key"], 200)):
        reply = await site.ask("POST", "/api/v1/shield/scan", {"text": "x"}, headers={"x-service-key": key})
        assert reply.status == status
    actions = {event.action for event in (await site.gateway.audit.page(AuditFilter())).items}
    assert {"api_key_created", "api_key_changed", "api_key_rotated", "api_key_revoked", "user_signed_in"} <= actions


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"scopes": ["shield:scan"]}, "name"),
        ({"name": "", "scopes": ["shield:scan"]}, "name"),
        ({"name": 7, "scopes": ["shield:scan"]}, "name"),
        ({"name": "x"}, "scopes"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": "shield:scan"}, "scopes"),
        ({"name": "x", "scopes": ["shield:scan", "everything"]}, "scopes[1]"),
        (NEW_KEY | {"rate_limit": 0}, "rate_limit"),
        (NEW_KEY | {"rate_limit": 10_000_001}, "rate_limit"),
        (NEW_KEY | {"rate_limit": "60"}, "rate_limit"),
        (NEW_KEY | {"rate_limit": True}, "rate_limit"),
        (NEW_KEY | {"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        (NEW_KEY | {"expires_at": "soon"}, "expires_at"),
        (NEW_KEY | {"models": ["a\nb"]}, "models[0]"),
        (NEW_KEY | {"expires_at": "9999-12-31T23:59:59-23:00"}, "expires_at"),
        (NEW_KEY | {"id": "key_1"}, "id"),
        (NEW_KEY | {"key": "svc_" + "0" * 40}, "key"),
    ],
)
async def test_a_bad_key_is_refused_by_field(admin: Person, body: object, param: str) -> None:
    reply = await admin.ask("POST", KEYS, body)
    assert (reply.status, reply.code, reply.json["error"]["param"]) == (400, "invalid_request", param)
    assert (await admin.ask("GET", KEYS)).data == []


async def test_a_key_may_end_so_long_from_now_on_and_its_models_are_without_blanks(site: Site, admin: Person) -> None:
    since_at = site.gateway.clock.now_at()
    made = (await admin.ask("POST", KEYS, NEW_KEY | {"expires_at": "90d", "models": [" echo ", "echo"]})).data
    asked_at = read_timestamp(made["expires_at"], param="expires_at") - 90 * 86_400_000
    assert since_at <= asked_at <= site.gateway.clock.now_at()
    one = f"{KEYS}/{made['id']}"
    changed = (await admin.ask("PATCH", one, {"name": "other"})).data
    assert (changed["expires_at"], changed["models"]) == (made["expires_at"], ["echo"])
    assert (await admin.ask("PATCH", one, {"expires_at": "91d"})).data["expires_at"] > made["expires_at"]
    longest = (await admin.ask("PATCH", one, {"expires_at": "999999d"})).data["expires_at"]
    assert read_timestamp(longest, param="expires_at") >= since_at + 999_999 * 86_400_000
    assert (await admin.ask("PATCH", one, {"expires_at": None})).data["expires_at"] is None


async def test_a_policy_that_is_not_there_is_a_conflict(admin: Person) -> None:
    for policy, status in (("nobody", 409), ("", 400), ("\0", 400)):
        reply = await admin.ask("POST", KEYS, NEW_KEY | {"policy": policy})
        assert (reply.status, reply.json["error"]["param"]) == (status, "policy")


async def test_a_patch_guards_against_lost_updates_and_strange_fields(admin: Person) -> None:
    one = f"{KEYS}/{(await admin.ask('POST', KEYS, NEW_KEY)).data['id']}"
    assert (await admin.ask("PATCH", one, {"name": "a", "version": 1})).data["version"] == 2
    stale = await admin.ask("PATCH", one, {"name": "b", "version": 1})
    assert (stale.status, stale.code) == (409, "conflict")
    stale = await admin.ask("PATCH", one, {"name": "b"}, **{"if-match": '"1"'})
    assert (stale.status, stale.code) == (409, "conflict")
    assert (await admin.ask("PATCH", one, {"name": "c"}, **{"if-match": '"2"'})).data["name"] == "c"
    assert (await admin.ask("PATCH", one, {"name": "d"}, **{"if-match": "*"})).data["name"] == "d"
    two = await admin.ask("PATCH", one, {"name": "e", "version": 3}, **{"if-match": '"4"'})
    assert (two.status, two.json["error"]["param"]) == (409, "version")
    stale = await admin.ask("PATCH", one, {"name": "e", "version": 3}, **{"if-match": "*"})
    assert (stale.status, stale.code) == (409, "conflict")
    assert (await admin.ask("PATCH", one, {"name": "e", "version": 4}, **{"if-match": '"4"'})).data["name"] == "e"
    for body, headers, param in (
        ({"version": {}}, {"if-match": "*"}, "version"),
        ({"version": "5"}, {"if-match": '"5"'}, "version"),
        ({"id": "key_2"}, {}, "id"),
        ({"status": "revoked"}, {}, "status"),
        ({"name": 1}, {}, "name"),
        ({}, {"if-match": "latest"}, "If-Match"),
    ):
        reply = await admin.ask("PATCH", one, body, **headers)
        assert (reply.status, reply.json["error"]["param"]) == (400, param)
    assert (await admin.ask("PATCH", one, [])).status == 400
    assert (await admin.ask("PATCH", f"{one}?x=1", {})).json["error"]["param"] == "x"


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [('"1"', True), ("1", True), ('W/"1"', True), ("*", True), ("", False), ('""', False), ("-1", False), ("x", False)],
)
async def test_the_document_says_which_if_match_is_taken(admin: Person, sent: str, is_taken: bool) -> None:
    one = f"{KEYS}/{(await admin.ask('POST', KEYS, NEW_KEY)).data['id']}"
    reply = await admin.ask("PATCH", one, {}, **{"if-match": sent})
    assert reply.status == (200 if is_taken else 400)
    described = (await admin.ask("GET", "/api/v1/openapi.json")).json["paths"][f"{KEYS}/{{id}}"]["patch"]
    (header,) = (each for each in described["parameters"] if each["name"] == "If-Match")
    assert (re.search(header["schema"]["pattern"], sent) is not None) is is_taken


async def test_a_foreign_or_strange_id_is_not_found(admin: Person) -> None:
    for name in ("key_00000000000000000000000000", "x", "' OR 1=1 --", "usr_0"):
        for method, path in (("GET", ""), ("PATCH", ""), ("POST", "/revoke"), ("POST", "/rotate")):
            reply = await admin.ask(method, f"{KEYS}/{name}{path}", {} if method != "GET" else None)
            assert (reply.status, reply.code) == (404, "not_found")


@pytest.mark.parametrize(
    "body", [{"grace_seconds": -1}, {"grace_seconds": 2_592_001}, {"grace": 1}, {"grace_seconds": "1"}]
)
async def test_a_bad_rotation_changes_nothing(admin: Person, body: object) -> None:
    one = f"{KEYS}/{(await admin.ask('POST', KEYS, NEW_KEY)).data['id']}"
    assert (await admin.ask("POST", f"{one}/rotate", body)).status == 400
    assert (await admin.ask("POST", f"{one}/revoke", {"why": "x"})).json["error"]["param"] == "why"
    assert (await admin.ask("GET", one)).data["version"] == 1


async def test_keys_are_listed_page_by_page(admin: Person) -> None:
    made = [(await admin.ask("POST", KEYS, NEW_KEY)).data["id"] for _ in range(3)]
    assert [one["id"] for one in (await admin.ask("GET", f"{KEYS}?limit=2")).data] == made[:0:-1]
    for query in ("limit=0", "limit=501", "cursor=x", "limti=1"):
        assert (await admin.ask("GET", f"{KEYS}?{query}")).status == 400


async def test_users_are_made_changed_and_kept_out(site: Site, admin: Person) -> None:
    made = await admin.ask("POST", "/api/users", {"username": "eve", "password": PASSWORD, "role": "viewer"})
    assert made.status == 201
    assert set(made.data) == {"id", "username", "role", "status", "created_at", "disabled_at", "version"}
    eve = await site.sign_in("eve")
    assert (await eve.ask("GET", "/api/users")).code == "permission_denied"
    one = f"/api/users/{made.data['id']}"
    assert (await admin.ask("PATCH", one, {"role": "auditor"})).data["role"] == "auditor"
    assert (await eve.ask("GET", "/api/users")).status == 200
    assert (await admin.ask("PATCH", one, {"disabled": True})).data["status"] == "disabled"
    assert (await eve.ask("GET", "/api/auth/session")).code == "not_signed_in"
    login = {"username": "eve", "password": PASSWORD}
    assert (await site.ask("POST", "/api/auth/login", login)).code == "bad_credentials"
    assert (await admin.ask("PATCH", one, {"disabled": False, "password": "another password"})).status == 200
    assert (await site.ask("POST", "/api/auth/login", login)).code == "bad_credentials"
    assert (await site.ask("POST", "/api/auth/login", login | {"password": "another password"})).status == 200
    assert PASSWORD not in json.dumps((await admin.ask("GET", "/api/users")).json)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"username": "x y", "password": PASSWORD, "role": "viewer"}, 400, "username"),
        ({"username": "x", "password": "short", "role": "viewer"}, 400, "password"),
        ({"username": "x", "password": "0" * 12, "role": "viewer"}, 400, "password"),
        ({"username": "some-body", "password": "Some-Body", "role": "viewer"}, 409, "password"),
        ({"username": "x", "password": PASSWORD, "role": "root"}, 400, "role"),
        ({"username": "x", "password": PASSWORD}, 400, "role"),
        ({"username": "x", "password": PASSWORD, "role": "viewer", "id": "usr_1"}, 400, "id"),
        ({"username": "ADMIN", "password": PASSWORD, "role": "viewer"}, 409, "username"),
        ({"username": "x", "password": "password", "role": "viewer"}, 400, "password"),
        ({"username": "x", "password": "12345678", "role": "viewer"}, 400, "password"),
        ({"username": "x", "password": "Sunshine2024", "role": "viewer"}, 400, "password"),
        ({"username": "x", "password": "P@ssw0rd!", "role": "viewer"}, 400, "password"),
    ],
)
async def test_a_bad_user_is_refused_by_field(admin: Person, body: object, status: int, param: str) -> None:
    reply = await admin.ask("POST", "/api/users", body)
    assert (reply.status, reply.json["error"]["param"]) == (status, param)


async def test_the_last_admin_cannot_lock_everybody_out(admin: Person) -> None:
    for body in ({"disabled": True}, {"role": "viewer"}):
        reply = await admin.ask("PATCH", "/api/users/usr_0", body)
        assert (reply.status, reply.code) == (409, "conflict")


async def test_sessions_are_listed_and_ended(site: Site, admin: Person) -> None:
    viewer, second = await site.sign_in("viewer"), await site.sign_in("admin")
    listed = await admin.ask("GET", "/api/sessions")
    assert [one["username"] for one in listed.data] == ["admin", "viewer", "admin"]
    assert "digest" not in json.dumps(listed.json)
    of_viewer = (await admin.ask("GET", "/api/sessions?user_id=usr_3")).data
    assert (await admin.ask("DELETE", f"/api/sessions/{of_viewer[0]['id']}")).data == {"id": of_viewer[0]["id"]}
    assert (await viewer.ask("GET", "/api/auth/session")).code == "not_signed_in"
    assert (await admin.ask("DELETE", f"/api/sessions/{of_viewer[0]['id']}")).code == "not_found"
    assert (await admin.ask("DELETE", "/api/sessions")).data == {"sessions_ended": 1}
    assert (await second.ask("GET", "/api/auth/session")).code == "not_signed_in"
    assert (await admin.ask("GET", "/api/auth/session")).status == 200
    assert (await admin.ask("DELETE", "/api/sessions?user_id=usr_nobody")).code == "not_found"


async def test_without_rbac_this_host_needs_no_user(open_house: Site) -> None:
    made = await open_house.ask("POST", KEYS, NEW_KEY)
    assert made.status == 201
    assert (await open_house.ask("GET", KEYS)).data[0]["created_by"] == "local"
    about = await open_house.ask("GET", "/api/auth/session")
    assert (about.data["user"]["username"], about.data["csrf_token"]) == ("local", None)
    assert (await open_house.ask("DELETE", "/api/sessions")).json["error"]["param"] == "user_id"
    assert (await open_house.ask("POST", "/api/auth/logout")).code == "not_signed_in"
    person = await open_house.sign_in("admin")
    assert (await person.ask("POST", "/api/auth/logout")).status == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:5001", "[::1]:5001", "127.0.0.2", "LOCALHOST:80"])
async def test_without_rbac_every_name_of_this_host_will_do(open_house: Site, host: str) -> None:
    assert (await open_house.ask("GET", KEYS, headers={"host": host}, peer="::1")).status == 200


async def test_the_document_tells_of_every_row_of_the_internal_api(site: Site) -> None:
    paths = (await site.ask("GET", "/api/v1/openapi.json")).json["paths"]
    assert all(method.lower() in paths[path] for method, path in (row.route for row in INTERNAL_OPERATIONS))


async def test_refusals_are_recorded_and_asking_who_is_in_is_not(site: Site, admin: Person) -> None:
    await site.ask("GET", "/api/auth/session")
    await admin.ask("GET", "/api/auth/session", **{"sec-fetch-site": "cross-site"})
    viewer = await site.sign_in("viewer")
    await viewer.ask("GET", KEYS)
    await site.gateway.store.db.write(lambda tx: None)
    events = (await site.gateway.audit.page(AuditFilter())).items
    refused = [(event.reason, event.actor) for event in events if event.action == "session_refused"]
    assert refused == [("permission_denied", "viewer"), ("csrf_failed", "unknown")]
