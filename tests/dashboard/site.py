"""A gateway with demo data that the browser looks at, and who is signed in there."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from running import READY, ROOT, Answer, Process, Served, environment

ROLES = ("admin", "security_manager", "operator", "viewer", "auditor")
PASSWORD = "correct horse battery staple"
SCREENSHOTS = ROOT / "build" / "screenshots"


@dataclass
class Site:
    """A gateway that is served, and what tests need of it. cookies: of a session for each role."""

    served: Served
    cookies: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Where it is."""
        return self.served.url

    def ask(self, method: str, path: str, body: object = None, *, role: str = "admin", **headers: str) -> Answer:
        """Send a request with the session of a role."""
        fields = dict(headers)
        if role:
            cookie, token = self.cookies[role]
            fields |= {"Cookie": f"service_session={cookie}", "X-CSRF-Token": token}
        return self.served.ask(method, path, body, key=None, headers=fields)

    def soon(self, days: int) -> str:
        """Return the time some days from now as the API writes times."""
        return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def sign_in(self, role: str, password: str = PASSWORD) -> None:
        """Begin a session for a role, whose user has the role's name."""
        answer = self.ask("POST", "/api/auth/login", {"username": role, "password": password}, role="")
        assert answer.status == 200, answer.body
        cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
        self.cookies[role] = (cookie, answer.json["data"]["csrf_token"])


def serve(data_dir: Path | str, *, rbac: str = "true", **settings: str) -> Served:
    """Start the gateway of the checkout, with sign-in or without, on a free port."""
    command = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--data-dir", str(data_dir)]
    popen = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=environment(RBAC_ENABLED=rbac, **settings),
    )  # fmt: skip
    process = Process(popen)
    try:
        return Served(process, int(process.wait_for(READY)[3]), "", Path(data_dir))
    except BaseException:
        process.stop()
        raise


def quoted(text: str) -> str:
    """Write a text as JavaScript does."""
    return json.dumps(text)
