"""The files of deploy/ for proxies, containers and monitoring fit the gateway: names, ports, paths, and a real nginx."""

import http.client
import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import certificate
from proxies import NAME, Proxies, adapted
from running import ROOT, Served, free_port, start

from gateway import settings
from gateway.metrics import FAMILIES

DEPLOY = ROOT / "deploy"
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
SERIES = {family.name + suffix: family for family in FAMILIES for suffix in SUFFIXES[family.kind]}
OF_PROMETHEUS = {"instance", "job", "le"}


def rules() -> list[str]:
    """Return the expressions of the alerting rules. An expression is one line, or the indented lines behind `>-`."""
    text = (DEPLOY / "prometheus" / "alerts.yml").read_text("utf-8")
    return re.findall(r"expr: (?:>-\n)?((?:.*\n)(?: {10}.*\n)*?)(?= {8}\w)", text)


def panels() -> list[dict[str, Any]]:
    return json.loads((DEPLOY / "grafana" / "dashboard.json").read_text("utf-8"))["panels"]


def targets() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


@pytest.mark.parametrize("expression", [*rules(), *targets()])
def test_an_expression_names_metrics_and_labels_that_the_gateway_has(expression: str) -> None:
    named = set(re.findall(r"\b(?:gateway|gen_ai_client)_\w+", expression))
    series = named & set(SERIES)
    assert series or expression.startswith("up{")
    labels = {label for name in series for label in SERIES[name].labels} | OF_PROMETHEUS
    used = set(re.findall(r"[{,]\s*(\w+)\s*[=!]", expression))
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        used |= set(re.split(r"[,\s]+", group.strip()))
    assert used <= labels and named - series <= labels


def test_there_are_rules_and_panels_for_every_part() -> None:
    assert len(rules()) == 10 and len(targets()) > 15
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken = "".join([*rules(), *targets()])
    lacking = {family.name for family in FAMILIES} - {name for name in (f.name for f in FAMILIES) if name in taken}
    assert lacking <= {"gateway_upstream_requests_total", "gateway_upstream_seconds"}  # providers show the same


def test_the_gateway_really_has_these_metrics(gateway: Served) -> None:
    assert gateway.scan("hello").status == 200
    told = set(re.findall(r"^# TYPE (\S+)", gateway.ask("GET", "/metrics").body.decode(), re.MULTILINE))
    assert told == {family.name for family in FAMILIES}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(DEPLOY / "prometheus" / "alerts.yml")])
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_caddy_takes_its_file() -> None:
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "caddy" / "Caddyfile")]
    assert subprocess.run(command).returncode == 0


@pytest.mark.parametrize(
    "file", ["compose.yaml", "kubernetes/gateway.yaml", "kubernetes/many-hosts.yaml", "Containerfile"]
)
def test_every_variable_of_a_deployment_is_a_setting(file: str) -> None:
    text = (DEPLOY / file).read_text("utf-8")
    named = set(re.findall(r"^\s+([A-Z]+_[A-Z_]+):|name: ([A-Z]+_[A-Z_]+)[,\n]|\b(\w+)=\S+\s", text, re.MULTILINE))
    found = {name for groups in named for name in groups if name.startswith(("GATEWAY_", "MCP_", "RBAC_"))}
    known = {settings.variable(row) for row in settings.rows()}
    # Of a provider's key, and of Caddy.
    assert "RBAC_ENABLED" in found
    assert found - known <= {"GATEWAY_PROVIDER_OPENAI", "GATEWAY_NAME", "GATEWAY_ADDRESS"}


def test_the_probes_of_a_deployment_are_answered_without_a_key(gateway: Served) -> None:
    paths = set(re.findall(r'path: "?(/[^\s",]+)', (DEPLOY / "kubernetes" / "gateway.yaml").read_text("utf-8")))
    assert paths == {"/api/v1/health", "/api/v1/health?ready=true"}
    assert {gateway.ask("GET", path, key=None).status for path in paths} == {200}


class Through:
    """A client that comes through nginx, from another address of this host."""

    def __init__(self, served: Served, port: int, plain_port: int, cert: str) -> None:
        self.served, self.port, self.plain_port = served, port, plain_port
        self.context = ssl.create_default_context(cafile=cert)
        self.context.check_hostname = False

    def ask(self, method: str, path: str, body: object = None, *, is_plain: bool = False, **headers: str) -> Any:
        """Return the answer, read to its end, with the bytes as `text`."""
        come_from = ("127.0.0.2", 0)
        if is_plain:
            connection = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=30, source_address=come_from)
        else:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=30, source_address=come_from, context=self.context
            )
        sent = {"Host": NAME, "Content-Type": "application/json", **headers}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        connection.close()
        return answer


@pytest.fixture
def through(archive: Path, tmp_path: Path, proxies: Proxies) -> Iterator[Through]:
    """A gateway with sign-in behind nginx with the file of deploy/, whose ports and paths are those of the test."""
    cert, key = certificate(tmp_path, f"DNS:{NAME}")
    served = start(archive, tmp_path / "data", RBAC_ENABLED="true", GATEWAY_TRUSTED_PROXIES="127.0.0.1")
    port, plain_port = free_port(), free_port()
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "listen 80": f"listen 127.0.0.1:{plain_port}",
        "/etc/ssl/gateway/cert.pem": cert,
        "/etc/ssl/gateway/key.pem": key,
        "http://127.0.0.1:5001": served.url,
    }
    proxies.nginx(adapted(DEPLOY / "nginx" / "gateway.conf", changes), port)
    yield Through(served, port, plain_port, cert)
    assert served.process.stop() == 0


def test_through_nginx_the_api_streams_and_the_dashboard_signs_in_safely(through: Through) -> None:
    redirect = through.ask("GET", "/x?a=1", is_plain=True)
    assert (redirect.status, redirect.headers["location"]) == (308, f"https://{NAME}/x?a=1")
    page = through.ask("GET", "/")
    assert page.status == 200 and page.headers["strict-transport-security"]
    assert through.ask("GET", "/metrics").status == 404
    hello = [{"role": "user", "content": "Tell me about the harbour."}]
    stream = through.ask(
        "POST",
        "/api/v2/chat/completions",
        {"model": "echo", "stream": True, "messages": hello},
        Authorization=f"Bearer {through.served.key}",
    )
    assert stream.status == 200 and stream.text.endswith("data: [DONE]\n\n")
    found = re.search(r"password: (\S+)", (through.served.data_dir / "first-credentials.txt").read_text())
    assert found
    signed = through.ask("POST", "/api/auth/login", {"username": "admin", "password": found[1]})
    assert signed.status == 200 and "secure" in signed.headers["set-cookie"].lower()
    cookie = signed.headers["set-cookie"].partition(";")[0]
    assert through.ask("GET", "/api/users", Cookie=cookie).status == 200
    assert through.ask("GET", "/api/users").status == 401


def test_through_nginx_the_audit_log_has_the_address_that_nginx_saw(through: Through) -> None:
    claim = {"X-Forwarded-For": "198.51.100.7"}
    refused = through.ask("GET", "/api/v1/models", Authorization=f"Bearer svc_{'0' * 40}", **claim)
    assert refused.status == 401
    path = f"/api/v1/audit?request_id={json.loads(refused.text)['error']['request_id']}"
    events = json.loads(through.ask("GET", path, **{"X-Service-Key": through.served.key}).text)["data"]
    assert [event["ip"] for event in events] == ["127.0.0.2"]
