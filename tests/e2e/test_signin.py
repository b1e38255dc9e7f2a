"""Sign-in through the real archive: first admin, cookie, CSRF, keys, throttling, two workers, and the command line."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from running import Answer, Served, start

KEYS = "/api/config/api-keys"
PASSWORD = "correct horse battery staple"


@dataclass
class Person:
    """Somebody with a session."""

    site: Served
    cookie: str
    csrf: str

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {"Cookie": self.cookie, "X-CSRF-Token": self.csrf, **headers}
        return self.site.ask(method, path, body, key=None, headers=sent)


def login(site: Served, username: str, password: str, **headers: str) -> Answer:
    body = {"username": username, "password": password}
    return site.ask("POST", "/api/auth/login", body, key=None, headers=headers)


def sign_in(site: Served, username: str, password: str) -> Person:
    answer = login(site, username, password)
    assert answer.status == 200, answer.body
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return Person(site, cookie, answer.json["data"]["csrf_token"])


def first_password(site: Served) -> str:
    return re.search(r"password: (\S+)", (site.data_dir / "first-credentials.txt").read_text())[1]


@pytest.fixture(scope="module")
def site(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with RBAC and two workers."""
    served = start(archive, tmp_path_factory.mktemp("rbac"), "--workers", "2", RBAC_ENABLED="true")
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line for line in served.process.lines)


@pytest.fixture(scope="module")
def admin(site: Served) -> Person:
    return sign_in(site, "admin", first_password(site))


def test_the_first_admin_signs_in_and_every_worker_knows_the_session(site: Served, admin: Person) -> None:
    for _ in range(8):
        answer = admin.ask("GET", "/api/auth/session")
        assert answer.json["data"]["user"]["username"] == "admin"
    assert site.ask("GET", "/api/auth/session", key=None).code == "not_signed_in"


def test_a_key_is_made_rotated_and_revoked_and_holds_on_every_worker(site: Served, admin: Person) -> None:
    made = admin.ask("POST", KEYS, {"name": "ci", "scopes": ["shield:scan"]})
    assert made.status == 201
    old = made.json["data"]
    rotated = admin.ask("POST", f"{KEYS}/{old['id']}/rotate", {"grace_seconds": 3600})
    new = rotated.json["data"]
    scan = ("POST", "/api/v1/shield/scan", {"text": "hello"})
    for _ in range(4):
        assert site.ask(*scan, key=old["key"]).status == site.ask(*scan, key=new["key"]).status == 200
    assert admin.ask("GET", f"{KEYS}/{new['id']}").json["data"]["last_used_at"] is not None
    assert admin.ask("POST", f"{KEYS}/{old['id']}/revoke").status == 200
    for _ in range(8):
        assert site.ask(*scan, key=old["key"]).code == "key_revoked"
        assert site.ask(*scan, key=new["key"]).status == 200


def test_a_change_needs_the_token_and_our_own_page(site: Served, admin: Person) -> None:
    for headers in ({"X-CSRF-Token": "x" * 64}, {"Origin": "http://evil.test"}, {"Sec-Fetch-Site": "cross-site"}):
        assert admin.ask("POST", KEYS, {}, **headers).code == "csrf_failed"
    own = admin.ask("POST", KEYS, {}, Origin=site.url, **{"Sec-Fetch-Site": "same-origin"})
    assert own.code == "invalid_request"
    assert site.ask("POST", KEYS, {}, key=None).code == "not_signed_in"


def test_users_made_on_the_command_line_sign_in_and_are_kept_out_at_once(site: Served) -> None:
    made = site.command("users", "create", "--username", "eve", "--role", "viewer")
    assert made.returncode == 0, made.stderr
    eve = sign_in(site, "eve", made.stdout.strip())
    assert eve.ask("GET", KEYS).code == "permission_denied"
    assert site.command("users", "passwd", "eve", "--password-stdin", stdin=PASSWORD + "\n").stdout == ""
    assert eve.ask("GET", "/api/auth/session").code == "not_signed_in"
    eve = sign_in(site, "eve", PASSWORD)
    assert site.command("users", "disable", "eve").returncode == 0
    assert eve.ask("GET", "/api/auth/session").code == "not_signed_in"
    assert login(site, "eve", PASSWORD).code == "bad_credentials"
    listed = json.loads(site.command("users", "list", "--json").stdout)
    assert [(user["username"], user["status"]) for user in listed] == [("admin", "active"), ("eve", "disabled")]
    last = site.command("users", "disable", "admin")
    assert (last.returncode, "last admin" in last.stderr) == (2, True)


def test_a_key_is_rotated_on_the_command_line(site: Served, admin: Person) -> None:
    old = admin.ask("POST", KEYS, {"name": "ci", "scopes": ["shield:scan"]}).json["data"]
    done = site.command("keys", "rotate", old["id"], "--grace-seconds", "0")
    assert re.fullmatch(r"svc_[0-9a-f]{40}", done.stdout.strip())
    scan = ("POST", "/api/v1/shield/scan", {"text": "hello"})
    assert site.ask(*scan, key=old["key"]).code == "key_revoked"
    assert site.ask(*scan, key=done.stdout.strip()).status == 200


def test_failures_are_counted_over_all_workers_and_no_header_helps(site: Served) -> None:
    codes = [login(site, "mallory", "wrong", **{"X-Forwarded-For": f"203.0.113.{n}"}).code for n in range(7)]
    assert codes == ["bad_credentials"] * 5 + ["login_throttled"] * 2
    throttled = login(site, "mallory", "wrong")
    assert 1 <= int(throttled.headers["retry-after"]) <= 60
    assert login(site, "admin", first_password(site)).status == 200


def test_what_happened_is_in_the_audit_log_and_its_chain_holds(site: Served, admin: Person) -> None:
    codes = [login(site, "trudy", PASSWORD).code for _ in range(6)]
    assert codes == ["bad_credentials"] * 5 + ["login_throttled"]
    assert site.ask("GET", KEYS, key=None, headers={"Cookie": "service_session=" + "x" * 43}).code == "not_signed_in"
    made = admin.ask("POST", KEYS, {"name": "ci", "scopes": ["shield:scan"]}).json["data"]
    assert admin.ask("POST", f"{KEYS}/{made['id']}/rotate", {"grace_seconds": 60}).status < 300
    assert admin.ask("POST", f"{KEYS}/{made['id']}/revoke").status == 200
    events = site.ask("GET", "/api/v1/audit?limit=1000").json["data"]
    actions = {event["action"] for event in events}
    assert {
        "user_signed_in", "sign_in_failed", "sign_in_throttled", "session_refused",
        "api_key_created", "api_key_rotated", "api_key_revoked",
    } <= actions  # fmt: skip
    text = json.dumps(events)
    assert admin.csrf not in text
    assert admin.cookie.partition("=")[2] not in text
    assert PASSWORD not in text
    assert "trudy" not in text
    assert "mallory" not in text
    assert site.command("audit", "verify").returncode == 0


def test_without_rbac_this_host_needs_no_session_and_others_names_do_not_work(gateway: Served) -> None:
    assert gateway.ask("GET", KEYS, key=None).status == 200
    assert gateway.ask("POST", KEYS, {"name": "x", "scopes": ["shield:scan"]}, key=None).status == 201
    assert gateway.ask("GET", KEYS, key=None, headers={"Host": "evil.test"}).status == 403
    assert gateway.ask("GET", KEYS, key=None, headers={"Origin": "http://evil.test"}).code == "access_denied"
    assert gateway.ask("GET", KEYS, key=None, headers={"X-Forwarded-For": "203.0.113.9"}).code == "access_denied"
